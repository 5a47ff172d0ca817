/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a server says to one guest: answers, one after the other (RFC 9112), whose secrets are
 * masked. Heads pass as they are otherwise, and so do bodies; but chunks are made anew, for a
 * secret may lie across the border of two. Pure.
 */
#ifndef MVAGENT_SECRET_RESPONSE_H
#define MVAGENT_SECRET_RESPONSE_H

#include "vmm/secret/masker.h"
#include "vmm/secret/request.h"
#include "vmm/secret/token_scan.h"

enum response_state {
	RESPONSE_STATUS, /* the first line of a head */
	RESPONSE_FIELDS,
	RESPONSE_LENGTH,     /* a body of so many bytes */
	RESPONSE_CHUNK_SIZE, /* the line before a chunk */
	RESPONSE_CHUNK,
	RESPONSE_CHUNK_END, /* the line after it */
	RESPONSE_TRAILER,
	RESPONSE_OPAQUE, /* until the end: a body without a length, or a WebSocket */
};

#define RESPONSE_LINE_BYTES 1024 /* of each line so much is looked at */
#define RESPONSE_ROOM       (sizeof(((struct masker *)0)->bytes) + 64)

/* Zero before use, but for .request, .tokens and .masker.table. */
struct response_stream {
	struct request_stream *request; /* what is answered; it is told */
	struct token_scan *tokens;      /* NULL: the server gives out none */
	struct masker masker;
	enum response_state state;
	int status;
	uint64_t left;    /* of the body, or of the chunk */
	bool has_length;  /* the head has said one */
	bool chunked;     /* it has said so */
	bool framing;     /* the field before was one of those */
	bool line_is_cut; /* there was more of it */
	size_t line_length;
	char line[RESPONSE_LINE_BYTES]; /* that has begun */
	const char *reason;             /* once it is refused, as what follows "its answer " */
};

/* Takes from the server's next bytes (at least one, at most MASKER_PIECE_BYTES) as many as can be
 * understood at once; @taken: how many. What may leave now goes to @out, which has RESPONSE_ROOM.
 * Returns its length, or -1: .reason says what is wrong, and nothing more may leave. */
ssize_t response_take(struct response_stream *response, const char *bytes, size_t length,
		      size_t *taken, char *out);

/* What waits to be told from a secret may leave (masker_flush), into RESPONSE_ROOM. */
size_t response_flush(struct response_stream *response, char *out);

/* Whether no answer has begun of which more is to come. */
bool response_is_between(const struct response_stream *response);

#endif
