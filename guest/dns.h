/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to questions by DNS (RFC 1035) about names that are known here, and NXDOMAIN for all
 * others: at once, and for good. Pure: a request in, a response out.
 */
#ifndef GUEST_DNS_H
#define GUEST_DNS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_NAME_BYTES     254 /* a name as text without its last dot, and a NUL */
#define DNS_RESPONSE_BYTES 1024

/* Who knows names. They come in small letters and without a dot at the end. */
struct dns_names {
	void *context;
	/* Whether there is such a name, and its address. */
	bool (*find)(void *context, const char *name, struct in_addr *address);
	/* Whether an address has a name, and which. */
	bool (*find_address)(void *context, struct in_addr address, char name[DNS_NAME_BYTES]);
};

/* Returns the response's length, or 0 when none is due (a response, or too short to be a request).
 */
size_t dns_answer(const struct dns_names *names, const uint8_t *request, size_t length,
		  uint8_t response[DNS_RESPONSE_BYTES]);

#endif
