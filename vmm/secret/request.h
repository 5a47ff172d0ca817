/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a guest says to one server: requests, one after the other, whose heads are rewritten and
 * whose bodies pass. It comes in pieces. Pure.
 */
#ifndef MVAGENT_SECRET_REQUEST_H
#define MVAGENT_SECRET_REQUEST_H

#include "vmm/secret/http_body.h"

/* At most so much is given at once. */
#define REQUEST_PIECE_BYTES 16384U
#define REQUEST_ROOM        (LIMIT_SECRET_HEAD_BYTES + REQUEST_PIECE_BYTES)

enum request_state {
	REQUEST_HEAD,
	REQUEST_BODY,
	REQUEST_TOKEN,  /* a body that is waited for, for a secret may be put into it */
	REQUEST_WAITS,  /* for what the server says to an Upgrade */
	REQUEST_OPAQUE, /* it is HTTP no more: a WebSocket */
};

/* So many may wait for their answers: one bit of .heads each. */
#define REQUEST_UNANSWERED 64U

/* Zero before use, but for .target. */
struct request_stream {
	struct http_target target;
	enum request_state state;
	uint64_t begun;    /* requests whose head was sent */
	uint64_t answered; /* of these, whose final answer has begun */
	uint64_t heads;    /* which of the last ones are of HEAD */
	uint64_t uses[LIMIT_SECRETS];
	bool last; /* there may be no further one */
	struct http_body body;
	struct http_request token;      /* of REQUEST_TOKEN */
	struct stream_search search;    /* for placeholders where none belongs */
	char reason[HTTP_REASON_BYTES]; /* once it is refused, as what follows "its request " */
	size_t length;
	char bytes[REQUEST_ROOM]; /* that wait: an incomplete head, or what follows one */
};

/* Adds the guest's next bytes, at most REQUEST_PIECE_BYTES; not while request_is_full. */
void request_add(struct request_stream *request, const void *bytes, size_t length);
bool request_is_full(const struct request_stream *request);

/* Takes what may leave now, at most @size bytes of it (at least LIMIT_SECRET_HEAD_BYTES). Returns
 * its length, 0 when nothing may; -1: .reason says what is wrong, and nothing more may leave. */
ssize_t request_take(struct request_stream *request, char *bytes, size_t size);

/* The server agrees to an Upgrade. Whether that was asked for. */
bool request_upgraded(struct request_stream *request);

/* The final answer to the first one that has none begins; an Upgrade is then not agreed to. Whether
 * it has no body, whatever it says: it is to HEAD. */
bool request_answered(struct request_stream *request);

/* Whether it ends here as it should: between two requests. */
bool request_is_between(const struct request_stream *request);

#endif
