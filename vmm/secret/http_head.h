/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1.1 request of the guest (RFC 9112): looked at strictly, so that the server
 * cannot understand it in another way than we do, and changed in its place: placeholders become
 * secrets of the same length (longer only in a query). Pure.
 */
#ifndef MVAGENT_SECRET_HTTP_HEAD_H
#define MVAGENT_SECRET_HTTP_HEAD_H

#include "vmm/secret/secret.h"

#define HTTP_REASON_BYTES 512

/* To whom a request goes, and what there is to be put into it. */
struct http_target {
	const char *host;
	uint16_t port;
	const struct secret_set *secrets; /* all; those of the host are put in */
};

enum http_token_kind { HTTP_TOKEN_NONE, HTTP_TOKEN_FORM, HTTP_TOKEN_JSON };

/* A request for tokens: vmm/secret/token_request.h. */
struct http_token_request {
	enum http_token_kind kind; /* of its body; NONE: it is none */
	const char *path;          /* of the endpoint */
};

struct http_request {
	bool chunked;
	uint64_t body_length; /* unless it is chunked */
	bool upgrade;         /* to a WebSocket, if the server agrees */
	bool head;            /* of HEAD, whose answer has no body */
	bool overlooked;      /* it has a body where hardly one belongs: some servers take that for
				 the next request */
	struct http_token_request token;
	unsigned int uses[LIMIT_SECRETS];
};

/* Returns the length of the head at the start of @bytes, its empty line included; 0 when it is not
 * complete; -1 when it can be none, with @reason, as what follows "its request " (static). */
long http_head_length(const char *bytes, size_t length, const char **reason);

/* Reads a head of that @length, and puts the secrets in: it may be longer then. 0; or -1 with
 * @reason (as above): then nothing of it may be sent. */
int http_head_rewrite(char head[LIMIT_SECRET_HEAD_BYTES], size_t *length,
		      const struct http_target *target, struct http_request *request,
		      char reason[HTTP_REASON_BYTES]);

/* RFC 9110, 5.6.2 */
bool http_is_token(const char *text, size_t length);

/* Whether @length bytes (without CRLF) may be a field of a trailer: well formed, and none that says
 * where something ends. */
bool http_is_trailer(const char *line, size_t length);

#endif
