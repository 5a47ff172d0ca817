/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads and trailers of HTTP/2 (RFC 9113, 8): what the frames say, as the fields of HTTP/1.1 that
 * mean the same. Those of a request are looked at and changed as such, by http_head.h, and are then
 * fields of HTTP/2 again: so what holds for the one holds for the other. Pure.
 */
#ifndef MVAGENT_SECRET_HTTP2_HEAD_H
#define MVAGENT_SECRET_HTTP2_HEAD_H

#include <nghttp2/nghttp2.h>

#include "vmm/secret/http_head.h"
#include "vmm/secret/masker.h"

#define HTTP2_PSEUDO_MAX 4U /* :method, :scheme, :authority and :path */
#define HTTP2_FIELDS_MAX (LIMIT_SECRET_HEAD_FIELDS + HTTP2_PSEUDO_MAX)

/* Where a field is in .bytes, as "name: value" and CRLF. */
struct http2_field {
	uint32_t name, name_length, value, value_length;
	bool never_indexed; /* RFC 7541, 6.2.3: nor by us */
};

/* A head or a trailer, while its fields come. */
struct http2_head {
	const char *objection; /* to what has come, as what follows "its request "; NULL: none */
	unsigned int count, pseudo_count; /* of all fields, and of those that begin with ':' */
	struct http2_field fields[HTTP2_FIELDS_MAX];
	size_t length, text_length;
	char bytes[LIMIT_SECRET_HEAD_BYTES];
	char text[LIMIT_SECRET_HEAD_BYTES]; /* of a request, in HTTP/1.1 */
	size_t wire_count;
	nghttp2_nv wire[HTTP2_FIELDS_MAX]; /* what is to be sent, until the next _begin */
};

/* Forgets what was there. */
void http2_head_begin(struct http2_head *head);

/* The next field. What cannot be passed on is an objection. */
void http2_head_add(struct http2_head *head, const void *name, size_t name_length,
		    const void *value, size_t value_length, bool never_indexed);

/* The head of a request is complete; @ends: and so is the request. Puts the secrets in. 0; or -1
 * with @reason (as of http_head_rewrite), and nothing of it may be sent. @request: .chunked if it
 * has a body of no known length. */
int http2_head_rewrite(struct http2_head *head, bool ends, const struct http_target *target,
		       struct http_request *request, char reason[HTTP_REASON_BYTES]);

/* The trailer of a request is complete. 0 or -1 with @reason. Placeholders are for the caller. */
int http2_head_check_trailer(struct http2_head *head, char reason[HTTP_REASON_BYTES]);

/* The head or trailer of an answer is complete: secrets in it are masked. @masker holds nothing,
 * before and after. Returns the status, 0 where there is none (in a trailer); or -1: .objection. */
int http2_head_mask(struct http2_head *head, struct masker *masker);

/* Whether a field of that name has a value that begins like that. */
bool http2_head_says(struct http2_head *head, const char *name, const char *beginning);

/* What is to be sent are the fields as they came. */
void http2_head_take_as_is(struct http2_head *head);

/* Fields for a trailer that was kept: @length of .bytes. */
void http2_head_restore(struct http2_head *head, const char *bytes, size_t length);

#endif
