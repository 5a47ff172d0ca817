/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for tokens (OAuth: RFC 6749, 6): the only ones in whose body a secret is put, and only
 * one whose token endpoint that is. Pure.
 */
#ifndef MVAGENT_SECRET_TOKEN_REQUEST_H
#define MVAGENT_SECRET_TOKEN_REQUEST_H

#include "vmm/secret/http_head.h"

/* Whether a head is that of one: POST to the very path of an endpoint at the target, and of the
 * body's two kinds. http_head_rewrite has found nothing wrong with it. */
struct http_token_request token_request_read(const char *head, size_t length,
					     const struct http_target *target);

/* Puts secrets into its body, each where its placeholder is the whole of a value. As long as
 * before. 0; or -1 with @reason. What placeholders are left is for the caller. */
int token_request_rewrite(char *body, size_t length, const struct http_target *target,
			  struct http_request *request, char reason[HTTP_REASON_BYTES]);

#endif
