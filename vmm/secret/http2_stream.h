/* SPDX-License-Identifier: Apache-2.0 */
/* What waits on its way through one stream of HTTP/2, in each direction. */
#ifndef MVAGENT_SECRET_HTTP2_STREAM_H
#define MVAGENT_SECRET_HTTP2_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/stream_search.h"
#include "vmm/secret/http_head.h"
#include "vmm/secret/masker.h"
#include "vmm/secret/token_scan.h"

/* A body on its way. As much as the window of its sender allows. */
struct http2_pipe {
	bool over;         /* nothing more comes */
	char *bytes;       /* allocated, NULL while there is nothing */
	size_t size;       /* of that */
	size_t at, length; /* what is in there */
	char *trailer;     /* fields that come behind it, allocated; NULL: none */
	size_t trailer_length;
};

/* What a masker holds of an answer, between two of its pieces. */
struct http2_rest {
	size_t length, passed;
	char *bytes; /* allocated */
};

struct http2_stream {
	struct http2 *http2;
	struct http2_stream *next;
	int32_t guest_id, server_id; /* 0: it is not open, or not any more */
	bool answered;               /* the final head of an answer is on its way to the guest */
	bool told_all;               /* and so is the end of it */
	bool deaf;                   /* nothing more of the request goes to the server */
	bool mute;                   /* nothing more of the answer goes to the guest */
	bool ours;                   /* .down is what we say: no server has said it */
	bool without_body;           /* a request of a kind that hardly has one */
	bool grpc;                   /* a call */
	struct http2_pipe up, down;
	struct http_request token; /* one for tokens: .token.kind */
	struct http2_pipe held;    /* its body, until it is complete */
	struct token_scan *tokens; /* those of the answer, allocated; NULL: there are none */
	struct http2_rest rest;
	struct stream_search search; /* for placeholders where none belongs */
};

/* 0 or -ENOMEM. */
int http2_pipe_add(struct http2_pipe *pipe, const void *bytes, size_t length);

/* Takes up to @size bytes out. Returns how many. */
size_t http2_pipe_take(struct http2_pipe *pipe, void *bytes, size_t size);

/* Keeps the fields of a trailer. 0 or -ENOMEM. */
int http2_pipe_keep_trailer(struct http2_pipe *pipe, const char *bytes, size_t length);

/* Forgets what is in there. Returns how many bytes of a body that were. */
size_t http2_pipe_empty(struct http2_pipe *pipe);

/* Masks a piece of the stream's answer (at most MASKER_PIECE_BYTES) into its .down, by a masker
 * that holds nothing before and after. 0 or -ENOMEM. */
int http2_stream_mask(struct http2_stream *stream, struct masker *masker, const void *bytes,
		      size_t length);

/* The same with at most TOKEN_SCAN_BYTES, less the tokens in them. 0, -ENOMEM, or -EPROTO with the
 * reason in .tokens. */
int http2_stream_replace(struct http2_stream *stream, struct masker *masker, const void *bytes,
			 size_t length);

/* What a masker held leaves as well (masker_flush). 0 or -ENOMEM. */
int http2_stream_flush(struct http2_stream *stream, struct masker *masker);

/* Forgets what there is of an answer. Returns how many bytes of the server's that were. */
size_t http2_stream_empty_answer(struct http2_stream *stream);

/* Frees all that it has, and itself. */
void http2_stream_free(struct http2_stream *stream);

#endif
