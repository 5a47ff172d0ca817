/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/token_request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/span.h"

static bool is_endpoint(const struct secret *secret, const struct http_target *target,
			struct span path)
{
	const struct secret_host *place = &secret->hosts[secret->endpoint_host];

	return path.length && strlen(secret->endpoint_path) == path.length &&
	       memcmp(secret->endpoint_path, path.at, path.length) == 0 &&
	       place->port == target->port && strcmp(place->name, target->host) == 0;
}

/* The path of an endpoint that is asked for by POST, in the set's own memory; NULL: of none. */
static const char *find_path(struct span line, const struct http_target *target)
{
	static const char post[] = "POST ", version[] = " HTTP/1.1";
	const size_t around = strlen(post) + strlen(version);
	struct span path = {line.at + strlen(post), line.length - around};

	if (line.length <= around || memcmp(line.at, post, strlen(post)) != 0 ||
	    memcmp(path.at + path.length, version, strlen(version)) != 0)
		return NULL;
	for (unsigned int i = 0; i < target->secrets->count; i++) {
		if (is_endpoint(&target->secrets->secrets[i], target, path))
			return target->secrets->secrets[i].endpoint_path;
	}
	return NULL;
}

/* What is said behind it (charset=utf-8) makes no difference for what is in ASCII. */
static enum http_token_kind read_kind(struct span value)
{
	const char *end = memchr(value.at, ';', value.length);
	const struct span type =
		span_trim((struct span){value.at, end ? (size_t)(end - value.at) : value.length});

	if (span_is(type, "application/x-www-form-urlencoded"))
		return HTTP_TOKEN_FORM;
	return span_is(type, "application/json") ? HTTP_TOKEN_JSON : HTTP_TOKEN_NONE;
}

/* Notes what a field says about the kind of the body: twice, or packed, is none. */
static void read_field(struct span line, struct http_token_request *token, unsigned int *types)
{
	const char *colon = memchr(line.at, ':', line.length);
	const struct span name = {line.at, colon ? (size_t)(colon - line.at) : line.length};
	const struct span value = {line.at + name.length + (colon != NULL),
				   line.length - name.length - (colon != NULL)};

	if (span_is(name, "Content-Type")) {
		token->kind = read_kind(span_trim(value));
		(*types)++;
	}
	if (span_is(name, "Content-Encoding"))
		*types += 2;
}

struct http_token_request token_request_read(const char *head, size_t length,
					     const struct http_target *target)
{
	struct http_token_request token = {0};
	const char *at = head, *end = memmem(head, length, "\r\n", 2);
	unsigned int types = 0;

	if (end)
		token.path = find_path((struct span){(char *)(uintptr_t)head, (size_t)(end - head)},
				       target);
	while (token.path && end && end != at) {
		at = end + 2;
		end = memmem(at, length - (size_t)(at - head), "\r\n", 2);
		if (end)
			read_field((struct span){(char *)(uintptr_t)at, (size_t)(end - at)}, &token,
				   &types);
	}
	if (!token.path || types != 1)
		token.kind = HTTP_TOKEN_NONE;
	return token;
}

/* Whether what begins at @at is the whole of a value: of a field of the form, or of a string. */
static bool is_whole(const char *body, size_t length, const char *at, size_t place,
		     enum http_token_kind kind)
{
	const size_t before = (size_t)(at - body), behind = before + place;

	if (kind == HTTP_TOKEN_JSON)
		return before && at[-1] == '"' && behind < length && body[behind] == '"' &&
		       (before < 2 || at[-2] != '\\');
	return before && at[-1] == '=' && (behind == length || strchr("&\r\n", body[behind]));
}

/* Whether it stands there as it is: another length has been told already. */
static bool stands_as_it_is(const struct secret *secret, enum http_token_kind kind)
{
	return !strpbrk(secret->value, kind == HTTP_TOKEN_JSON ? "\"\\" : "&+%;#");
}

static int put(struct span body, const struct secret *secret, enum http_token_kind kind,
	       unsigned int *uses, char *reason)
{
	char *from = body.at, *at;

	while ((at = memmem(from, body.length - (size_t)(from - body.at), secret->placeholder,
			    secret->length))) {
		from = at + secret->length;
		if (!is_whole(body.at, body.length, at, secret->length, kind))
			continue;
		if (!stands_as_it_is(secret, kind)) {
			snprintf(reason, HTTP_REASON_BYTES,
				 "has the placeholder of %s in its body, and the secret has a "
				 "character that cannot stand there",
				 secret->name);
			return -1;
		}
		memcpy(at, secret->value, secret->length);
		(*uses)++;
	}
	return 0;
}

int token_request_rewrite(char *body, size_t length, const struct http_target *target,
			  struct http_request *request, char reason[HTTP_REASON_BYTES])
{
	const struct http_token_request *token = &request->token;
	struct span path = {(char *)(uintptr_t)token->path, strlen(token->path)};
	int error = 0;

	for (unsigned int i = 0; !error && i < target->secrets->count; i++) {
		const struct secret *secret = &target->secrets->secrets[i];

		if (is_endpoint(secret, target, path))
			error = put((struct span){body, length}, secret, token->kind,
				    &request->uses[secret_owner(target->secrets, i)], reason);
	}
	return error;
}
