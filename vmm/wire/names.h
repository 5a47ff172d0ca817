/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the guest's resolver asks the supervisor about names (SESSION_PORT_NAMES); there is a
 * supervisor to ask in every run, also when nothing is allowed. First the host greets: which
 * addresses are allowed as such, and how many OFFERs (relay.h) it would like to have. Then the
 * guest asks about one name after the other, and gets one answer to each: the ports of it that are
 * allowed, none when the name is not.
 */
#ifndef MVAGENT_WIRE_NAMES_H
#define MVAGENT_WIRE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"

/* Little endian. Greeting: count of offers, what there is to be (NAMES_PROXY, NAMES_SSH_AGENT),
 * count of addresses; each: family (4 or 6), 16 bytes, uint16 port. */
#define NAMES_PROXY           1U
#define NAMES_SSH_AGENT       2U
#define NAMES_GREETING_HEADER 3U
#define NAMES_ADDRESS_BYTES   19U
#define NAMES_GREETING_BYTES  (NAMES_GREETING_HEADER + LIMIT_ROUTE_ADDRESSES * NAMES_ADDRESS_BYTES)

struct names_address {
	uint8_t version; /* 4 or 6 */
	uint8_t bytes[16];
	uint16_t port;
};

struct names_greeting {
	uint8_t offers;
	bool proxy;
	bool ssh_agent;
	uint8_t address_count;
	struct names_address addresses[LIMIT_ROUTE_ADDRESSES];
};

/* Where that proxy listens in the guest: beyond the addresses that names get (guest/ways.c). */
#define NAMES_PROXY_ADDRESS "127.77.255.1"
#define NAMES_PROXY_PORT    3128U

/* Question: length of the name, the name. */
#define NAMES_QUESTION_BYTES 256U

/* Answer: count of ports, the ports. */
#define NAMES_ANSWER_BYTES (1U + 2U * LIMIT_ROUTE_PORTS)

struct names_answer {
	uint8_t port_count;
	uint16_t ports[LIMIT_ROUTE_PORTS];
};

size_t names_encode_greeting(const struct names_greeting *greeting,
			     uint8_t bytes[NAMES_GREETING_BYTES]);
size_t names_encode_answer(const struct names_answer *answer, uint8_t bytes[NAMES_ANSWER_BYTES]);

/* Each returns how many bytes it took, 0 when there are not enough yet, or -EPROTO. */
int names_decode_greeting(const uint8_t *bytes, size_t length, struct names_greeting *greeting);
int names_decode_answer(const uint8_t *bytes, size_t length, struct names_answer *answer);

#endif
