/* SPDX-License-Identifier: Apache-2.0 */
/* Where the body of a request ends (RFC 9112, 6 and 7.1). It passes as it is. Pure. */
#ifndef MVAGENT_SECRET_HTTP_BODY_H
#define MVAGENT_SECRET_HTTP_BODY_H

#include <sys/types.h>

#include "vmm/secret/http_head.h"

enum http_body_state {
	HTTP_BODY_DONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNK_SIZE, /* the line before a chunk */
	HTTP_BODY_CHUNK,
	HTTP_BODY_CHUNK_END, /* the line after it */
	HTTP_BODY_TRAILER,
};

#define HTTP_BODY_LINE_BYTES 1024

struct http_body {
	enum http_body_state state;
	uint64_t left;        /* of the body, or of the chunk */
	size_t trailer_bytes; /* so far */
	size_t line_length;
	char line[HTTP_BODY_LINE_BYTES]; /* that has begun, its CR included */
};

/* What follows the head of @request. */
void http_body_begin(struct http_body *body, const struct http_request *request);

/* Looks at the next bytes. Returns how many of them belong to the body: fewer than there are only
 * when it is done. -1 with @reason (static, as of http_head_length). */
ssize_t http_body_take(struct http_body *body, const char *bytes, size_t length,
		       const char **reason);

/* Looks for placeholders in the next bytes that are no head: none belongs there. 0; or -1 with
 * @reason, and they may not be sent. */
int http_contents_check(struct stream_search *search, const struct secret_set *secrets,
			const void *bytes, size_t length, char reason[HTTP_REASON_BYTES]);

#endif
