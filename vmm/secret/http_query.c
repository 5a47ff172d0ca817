/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http_query.h"

#include <stdio.h>
#include <string.h>

#include "vmm/secret/percent.h"
#include "vmm/secret/span.h"

/* A head whose query is changed. */
struct rewrite {
	char *head;
	size_t *length;
	struct span query;
	const struct http_target *target;
	struct http_request *request;
	char *reason;
};

/* In "METHOD SP TARGET SP VERSION": what it is made of is looked at later. */
static struct span find_query(char *head, size_t length)
{
	const char *end = memchr(head, '\r', length);
	const char *version = end ? memrchr(head, ' ', (size_t)(end - head)) : NULL;
	const char *mark = version ? memchr(head, '?', (size_t)(version - head)) : NULL;
	const char *fragment = mark ? memchr(head, '#', (size_t)(version - head)) : NULL;
	struct span query = {head, 0};

	if (!mark || (fragment && fragment < mark))
		return query;
	query.at = head + (mark - head) + 1;
	query.length = (size_t)((fragment ? fragment : version) - mark) - 1;
	return query;
}

static int check_use(struct rewrite *rewrite, const struct secret *secret)
{
	const struct http_target *target = rewrite->target;

	if (!secret_is_for(secret, target->host, target->port)) {
		snprintf(rewrite->reason, HTTP_REASON_BYTES,
			 "has the placeholder of %s and goes to another host", secret->name);
		return -1;
	}
	if (!secret->in_query) {
		snprintf(rewrite->reason, HTTP_REASON_BYTES,
			 "has the placeholder of %s in its query, where it may be kept and shown; "
			 "--secret-query %s would put the secret there",
			 secret->name, secret->name);
		return -1;
	}
	return 0;
}

/* @made bytes instead of @length of the query that begin at @at. */
static int replace(struct rewrite *rewrite, char *at, size_t length, const char *text, size_t made)
{
	char *behind = at + length;

	if (*rewrite->length - length + made > LIMIT_SECRET_HEAD_BYTES) {
		snprintf(rewrite->reason, HTTP_REASON_BYTES, "has a head of more than 64 KiB");
		return -1;
	}
	memmove(at + made, behind, *rewrite->length - (size_t)(behind - rewrite->head));
	memcpy(at, text, made);
	*rewrite->length += made - length;
	rewrite->query.length += made - length;
	return 0;
}

/* Each occurrence of one form of a placeholder. */
static int put(struct rewrite *rewrite, unsigned int index, const char *place, size_t length)
{
	const struct secret *secret = &rewrite->target->secrets->secrets[index];
	char value[3 * LIMIT_SECRET_BYTES];
	size_t done = 0, made;
	int error = 0;
	char *at;

	made = percent_write(secret->value, secret->value, secret->length, false, value);
	while (!error && (at = memmem(rewrite->query.at + done, rewrite->query.length - done, place,
				      length))) {
		error = check_use(rewrite, secret);
		error = error ? error : replace(rewrite, at, length, value, made);
		if (error)
			break;
		rewrite->request->uses[secret_owner(rewrite->target->secrets, index)]++;
		done = (size_t)(at - rewrite->query.at) + made;
	}
	explicit_bzero(value, sizeof(value));
	return error;
}

/* As it is, and as programs write it that encode '.' or ':' as well. */
static int put_forms(struct rewrite *rewrite, unsigned int index)
{
	const struct secret *secret = &rewrite->target->secrets->secrets[index];
	char place[3 * LIMIT_SECRET_BYTES];
	int error = put(rewrite, index, secret->placeholder, secret->length);

	for (int small = 0; !error && small < 2; small++) {
		const size_t length = percent_write(secret->placeholder, secret->placeholder,
						    secret->length, small, place);

		if (length != secret->length)
			error = put(rewrite, index, place, length);
	}
	return error;
}

int http_query_rewrite(char *head, size_t *length, const struct http_target *target,
		       struct http_request *request, char reason[HTTP_REASON_BYTES])
{
	struct rewrite rewrite = {
		.head = head,
		.length = length,
		.query = find_query(head, *length),
		.target = target,
		.request = request,
		.reason = reason,
	};
	int error = 0;

	for (unsigned int i = 0; !error && rewrite.query.length && i < target->secrets->count; i++)
		error = put_forms(&rewrite, i);
	return error;
}
