/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest says at the start of a stream to mvagent-relay (SESSION_PORT_RELAY), and what
 * mvagent-relay tells the supervisor.
 *
 * CONNECT: name (or an address as text) and port. The answer is one byte, enum relay_status; after
 * RELAY_CONNECTED the stream is the connection, both ways with ends of their own. The guest need
 * not wait for it to send.
 * OFFER: no name, port 0. The answer waits until somebody on the host connects to a published port:
 * then RELAY_CONNECTED and the guest's port, little endian, and the stream is that connection.
 * SIGN: no name, port 0. After RELAY_CONNECTED the stream leads to the host's ssh-agent, by
 * mvagent-sign.
 */
#ifndef MVAGENT_WIRE_RELAY_H
#define MVAGENT_WIRE_RELAY_H

#include <stddef.h>
#include <stdint.h>

#define RELAY_VERSION 1U

enum relay_kind { RELAY_CONNECT = 1, RELAY_OFFER, RELAY_SIGN };

enum relay_status {
	RELAY_CONNECTED, /* or for OFFER: somebody has connected */
	RELAY_DENIED,    /* by the policy */
	RELAY_FAILED,    /* the name has no address, nobody answers, too many connections */
};

/* On the wire: version, kind, port (little endian), length of the name, zero; then the name. */
#define RELAY_HEADER_BYTES  6U
#define RELAY_NAME_BYTES    255U
#define RELAY_REQUEST_BYTES (RELAY_HEADER_BYTES + RELAY_NAME_BYTES)
#define RELAY_OFFER_BYTES   3U /* of the answer */

struct relay_request {
	enum relay_kind kind;
	uint16_t port;
	uint8_t name_length;
	char name[RELAY_NAME_BYTES + 1]; /* any bytes; terminated after decoding */
};

/* Returns the length. */
size_t relay_encode_request(const struct relay_request *request,
			    uint8_t bytes[RELAY_REQUEST_BYTES]);

/* Decodes the request at the start of @bytes. Returns how many bytes it took, 0 when it is not
 * complete yet, or -EPROTO. */
int relay_decode_request(const uint8_t *bytes, size_t length, struct relay_request *request);

enum relay_event_type {
	RELAY_EVENT_DENIED = 1, /* text: a sentence that says why */
	RELAY_EVENT_FAILED,     /* text: what went wrong */
	RELAY_EVENT_ENDED,      /* a connection is over: sent, received */
	RELAY_EVENT_SECRET, /* of mvagent-secret: text, a secret's name, was put in sent times */
	RELAY_EVENT_MASKED, /* of mvagent-secret: the same, masked in answers received times */
	RELAY_EVENT_WALLS,  /* text, a process's name, is confined by sent: enum jail_wall */
	RELAY_EVENT_SPENT,  /* no more bytes may be moved: text */
	RELAY_EVENT_SIGNED, /* of mvagent-sign: text, a sentence */
	RELAY_EVENT_UNTOLD, /* so many had no room to be told. sent: denials and failures; received:
			       connections that are over */
	RELAY_EVENT_TOKEN,  /* of mvagent-secret: text, a secret's name; so many tokens (received)
			       that  its server gave out were replaced */
};

#define RELAY_EVENT_TEXT_BYTES 1024

/* One packet of a SOCK_SEQPACKET pair. Both ends are of one build. Strings are terminated. */
struct relay_event {
	uint32_t type;
	uint32_t port;
	uint64_t sent;     /* by the guest, bytes */
	uint64_t received; /* by the guest */
	char host[RELAY_NAME_BYTES + 1];
	char text[RELAY_EVENT_TEXT_BYTES];
	uint64_t microseconds; /* of RELAY_EVENT_ENDED: for how long it was open */
};

/* RELAY_EVENT_WALLS of @process. 0 or -errno. */
int relay_tell_walls(int event_fd, const char *process, uint8_t walls);

#endif
