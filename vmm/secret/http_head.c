/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/base64.h"
#include "vmm/secret/http_query.h"
#include "vmm/secret/span.h"
#include "vmm/secret/token_request.h"

struct reader {
	const struct http_target *target;
	struct http_request *request;
	char *reason;
	unsigned int hosts, lengths, codings; /* fields of each kind */
	bool connection_upgrade;
	bool upgrade_field;
};

static int refuse(const struct reader *reader, const char *text)
{
	snprintf(reader->reason, HTTP_REASON_BYTES, "%s", text);
	return -1;
}

long http_head_length(const char *bytes, size_t length, const char **reason)
{
	size_t line = 0; /* where the last one began */

	for (size_t i = 0; i < length; i++) {
		const unsigned char byte = (unsigned char)bytes[i];

		if (byte == '\r') {
			if (i + 1 == length)
				break;
			if (bytes[i + 1] == '\n')
				continue;
			*reason = "has a carriage return that ends no line";
			return -1;
		}
		if (byte == '\n') {
			if (i == 0 || bytes[i - 1] != '\r') {
				*reason = "has a line that ends without a carriage return";
				return -1;
			}
			if (i - line == 1 && line == 0) {
				*reason = "begins with an empty line";
				return -1;
			}
			if (i - line == 1)
				return (long)(i + 1);
			line = i + 1;
		} else if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
			*reason = "has a control character in its head";
			return -1;
		}
	}
	if (length >= LIMIT_SECRET_HEAD_BYTES) {
		*reason = "has a head of more than 64 KiB";
		return -1;
	}
	return 0;
}

bool http_is_token(const char *text, size_t length)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < length; i++) {
		const char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (!c || !strchr(marks, c)))
			return false;
	}
	return length > 0;
}

/* As some servers understand names: content_length is Content-Length to them. */
static bool name_is(struct span name, const char *text)
{
	if (name.length != strlen(text))
		return false;
	for (size_t i = 0; i < name.length; i++) {
		char c = name.at[i] == '_' ? '-' : name.at[i];

		if (strncasecmp(&c, &text[i], 1) != 0)
			return false;
	}
	return true;
}

/* Whether the list (RFC 9110, 5.6.1) has this word. */
static bool list_has(struct span list, const char *word)
{
	while (list.length) {
		const char *comma = memchr(list.at, ',', list.length);
		const size_t length = comma ? (size_t)(comma - list.at) : list.length;

		if (span_is(span_trim((struct span){list.at, length}), word))
			return true;
		list.at += length + (comma != NULL);
		list.length -= length + (comma != NULL);
	}
	return false;
}

/* The secret whose placeholder is in there, or -1. */
static int find_placeholder(const struct reader *reader, struct span span)
{
	const struct secret_set *secrets = reader->target->secrets;

	for (unsigned int i = 0; i < secrets->count; i++) {
		if (memmem(span.at, span.length, secrets->secrets[i].placeholder,
			   secrets->secrets[i].length))
			return (int)i;
	}
	return -1;
}

static int refuse_placeholder(const struct reader *reader, int secret, const char *where)
{
	snprintf(reader->reason, HTTP_REASON_BYTES, "has the placeholder of %s %s",
		 reader->target->secrets->secrets[secret].name, where);
	return -1;
}

/* What a text may not have anywhere. */
static int check_absent(const struct reader *reader, struct span span, const char *where)
{
	int found = find_placeholder(reader, span);

	return found < 0 ? 0 : refuse_placeholder(reader, found, where);
}

/* Puts the host's secrets in. Returns how many times, or -1. */
static int put_secrets(const struct reader *reader, struct span value)
{
	const struct http_target *target = reader->target;
	int found, count = 0;

	while ((found = find_placeholder(reader, value)) >= 0) {
		const struct secret *secret = &target->secrets->secrets[found];
		char *at = memmem(value.at, value.length, secret->placeholder, secret->length);

		if (!secret_is_for(secret, target->host, target->port))
			return refuse_placeholder(reader, found, "and goes to another host");
		memcpy(at, secret->value, secret->length);
		reader->request->uses[secret_owner(target->secrets, (unsigned int)found)]++;
		count++;
	}
	return count;
}

/* Basic (RFC 7617): the secret is in what is encoded, or is the whole of it. As long as before, so
 * also when it is encoded again. What is no base64 in its one form is left alone. */
static int put_basic(const struct reader *reader, struct span value)
{
	char plain[LIMIT_SECRET_HEAD_BYTES];
	struct span encoded = span_trim((struct span){value.at + 5, value.length - 5});
	int count = put_secrets(reader, encoded);
	long length = count ? 0 : base64_decode(encoded.at, encoded.length, plain);

	if (length > 0)
		count = put_secrets(reader, (struct span){plain, (size_t)length});
	if (count > 0 && length > 0)
		base64_encode(plain, (size_t)length, encoded.at);
	explicit_bzero(plain, length > 0 ? (size_t)length : 0);
	return count < 0 ? -1 : 0;
}

static int read_host(struct reader *reader, struct span value)
{
	const char *colon = memchr(value.at, ':', value.length);
	const size_t length = colon ? (size_t)(colon - value.at) : value.length;
	char port[8];

	snprintf(port, sizeof(port), ":%u", reader->target->port);
	if (reader->hosts++)
		return refuse(reader, "has more than one Host");
	if (!span_is((struct span){value.at, length}, reader->target->host) ||
	    (colon && !span_is((struct span){value.at + length, value.length - length}, port)))
		return refuse(reader, "asks for another host (Host) than the one it connects to");
	return 0;
}

static int read_length(struct reader *reader, struct span value)
{
	uint64_t number = 0;

	if (reader->lengths++)
		return refuse(reader, "has more than one Content-Length");
	if (!value.length || value.length > 18)
		return refuse(reader, "has a Content-Length that is no number");
	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return refuse(reader, "has a Content-Length that is no number");
		number = 10 * number + (uint64_t)(value.at[i] - '0');
	}
	reader->request->body_length = number;
	return 0;
}

static int read_coding(struct reader *reader, struct span value)
{
	if (reader->codings++ || !span_is(value, "chunked"))
		return refuse(reader, "has a Transfer-Encoding other than chunked");
	reader->request->chunked = true;
	return 0;
}

/* What an answer would be packed in could not be looked through for a secret. */
static void ask_for_nothing_packed(struct span name, struct span value)
{
	static const char identity[] = "identity";

	if (name_is(name, "Accept-Encoding") || name_is(name, "A-IM") ||
	    (name_is(name, "TE") && !span_is(value, "trailers")))
		memset(value.at, ' ', value.length);
	/* So are messages of gRPC and Connect, one by one. */
	if (name_is(name, "grpc-accept-encoding") || name_is(name, "connect-accept-encoding")) {
		memset(value.at, ' ', value.length);
		if (value.length >= strlen(identity))
			memcpy(value.at, identity, strlen(identity));
	}
	/* There must be one; one that nobody knows is not agreed to: RFC 6455, 9.1. */
	if (name_is(name, "Sec-WebSocket-Extensions") && value.length) {
		memset(value.at, ' ', value.length);
		value.at[0] = 'x';
	}
}

/* Those that say where a request ends or what becomes of the connection. 1: it was one of them. */
static int read_framing(struct reader *reader, struct span name, struct span value)
{
	int error;

	if (name_is(name, "Host"))
		error = read_host(reader, value);
	else if (name_is(name, "Content-Length"))
		error = read_length(reader, value);
	else if (name_is(name, "Transfer-Encoding"))
		error = read_coding(reader, value);
	else if (name_is(name, "Connection")) {
		reader->connection_upgrade |= list_has(value, "upgrade");
		error = check_absent(reader, value, "in Connection");
	} else if (name_is(name, "Upgrade")) {
		reader->upgrade_field = true;
		error = span_is(value, "websocket")
				? 0
				: refuse(reader, "asks for another protocol (Upgrade)");
	} else {
		return 0;
	}
	if (!error && memchr(name.at, '_', name.length))
		error = refuse(reader, "has a field whose name some take for another");
	return error ? error : 1;
}

static int read_field(struct reader *reader, struct span line)
{
	const char *colon = memchr(line.at, ':', line.length);
	struct span name, value;
	int result;

	if (strchr(" \t", line.at[0]))
		return refuse(reader, "has a field that goes on in the next line");
	name = (struct span){line.at, colon ? (size_t)(colon - line.at) : 0};
	if (!http_is_token(name.at, name.length))
		return refuse(reader, "has a line in its head that is no field");
	value = span_trim((struct span){line.at + name.length + 1, line.length - name.length - 1});
	result = check_absent(reader, name, "in the name of a field");
	result = result ? result : read_framing(reader, name, value);
	if (result)
		return result < 0 ? -1 : 0;
	ask_for_nothing_packed(name, value);
	if (name_is(name, "Authorization") && value.length > 6 &&
	    strncasecmp(value.at, "Basic ", 6) == 0)
		return put_basic(reader, value);
	return put_secrets(reader, value) < 0 ? -1 : 0;
}

/* RFC 9110, 9.3: what a body of theirs means is nowhere said. */
static bool has_no_use_for_bodies(struct span method)
{
	static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "TRACE"};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (span_is(method, methods[i]))
			return true;
	}
	return false;
}

/* METHOD SP TARGET SP HTTP/1.x */
static int read_first_line(struct reader *reader, struct span line, bool *old)
{
	const char *space = memchr(line.at, ' ', line.length);
	const size_t method = space ? (size_t)(space - line.at) : 0;
	const char *last = memrchr(line.at, ' ', line.length);
	struct span target, version;

	if (!http_is_token(line.at, method) || last == space)
		return refuse(reader, "begins with a line that is none of HTTP");
	target = (struct span){line.at + method + 1, (size_t)(last - line.at) - method - 1};
	version = (struct span){line.at + (last - line.at) + 1,
				line.length - (size_t)(last - line.at) - 1};
	*old = version.length == 8 && memcmp(version.at, "HTTP/1.0", 8) == 0;
	if (!*old && (version.length != 8 || memcmp(version.at, "HTTP/1.1", 8) != 0))
		return refuse(reader, "is not of HTTP/1.1");
	if (!target.length ||
	    (target.at[0] != '/' && !(target.length == 1 && target.at[0] == '*' && method == 7 &&
				      memcmp(line.at, "OPTIONS", 7) == 0)))
		return refuse(reader, "does not ask for a path");
	for (size_t i = 0; i < target.length; i++) {
		if (target.at[i] <= ' ' || target.at[i] > '~')
			return refuse(reader, "asks for a path with characters that none has");
	}
	/* What follows is no HTTP to the server, if it agrees: RFC 9110, 9.3.6. */
	if (method == 7 && memcmp(line.at, "CONNECT", 7) == 0)
		return refuse(reader, "asks for a tunnel");
	reader->request->head = method == 4 && memcmp(line.at, "HEAD", 4) == 0;
	reader->request->overlooked = has_no_use_for_bodies((struct span){line.at, method});
	return check_absent(reader, line, "in its first line, where it may be kept and shown");
}

/* What the fields say together. */
static int check_all(struct reader *reader, bool old)
{
	struct http_request *request = reader->request;

	if (reader->hosts != 1)
		return refuse(reader, "has no Host");
	if (reader->lengths && reader->codings)
		return refuse(reader, "has both a Content-Length and a Transfer-Encoding");
	if (old && reader->codings)
		return refuse(reader, "has a Transfer-Encoding, which HTTP/1.0 does not know");
	request->overlooked &= request->chunked || request->body_length;
	request->upgrade = reader->upgrade_field && reader->connection_upgrade;
	if (reader->upgrade_field && (!request->upgrade || old))
		return refuse(reader, "has an Upgrade without its Connection");
	if (request->upgrade && (request->chunked || request->body_length))
		return refuse(reader, "has an Upgrade and a body");
	return 0;
}

int http_head_rewrite(char head[LIMIT_SECRET_HEAD_BYTES], size_t *length,
		      const struct http_target *target, struct http_request *request,
		      char reason[HTTP_REASON_BYTES])
{
	struct reader reader = {.target = target, .request = request, .reason = reason};
	unsigned int count = 0;
	bool old = false;
	char *at = head, *end;
	int error;

	*request = (struct http_request){0};
	if (http_query_rewrite(head, length, target, request, reason) < 0)
		return -1;
	/* Each line ends in CRLF and has neither of them: http_head_length. */
	for (; (end = memchr(at, '\r', *length - (size_t)(at - head))) != at; at = end + 2) {
		struct span line = {at, (size_t)(end - at)};

		if (count == 0)
			error = read_first_line(&reader, line, &old);
		else if (count > LIMIT_SECRET_HEAD_FIELDS)
			error = refuse(&reader, "has more than 256 fields");
		else
			error = read_field(&reader, line);
		if (error)
			return error;
		count++;
	}
	request->token = token_request_read(head, *length, target);
	return check_all(&reader, old);
}

bool http_is_trailer(const char *line, size_t length)
{
	static const char *const not_there[] = {"Host",    "Content-Length", "Transfer-Encoding",
						"Upgrade", "Connection",     "Trailer"};
	const char *colon = memchr(line, ':', length);
	const struct span name = {(char *)(uintptr_t)line, colon ? (size_t)(colon - line) : 0};

	for (size_t i = 0; i < ARRAY_SIZE(not_there); i++) {
		if (name_is(name, not_there[i]))
			return false;
	}
	return http_is_token(name.at, name.length);
}
