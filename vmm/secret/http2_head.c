/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http2_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/span.h"

static const char chunked_line[] = "Transfer-Encoding: chunked\r\n";

void http2_head_begin(struct http2_head *head)
{
	explicit_bzero(head->bytes, head->length);
	explicit_bzero(head->text, head->text_length);
	head->objection = NULL;
	head->count = head->pseudo_count = 0;
	head->length = head->text_length = head->wire_count = 0;
}

/* RFC 9113, 8.2.1: what would not be in the same place of a line. */
static bool is_value(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return false;
	}
	return true;
}

/* A token (RFC 9110, 5.6.2) in small letters: RFC 9113, 8.2. */
static bool is_name(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] >= 'A' && text[i] <= 'Z')
			return false;
	}
	return http_is_token(text, length);
}

static const char *find_objection(const struct http2_head *head, struct span name,
				  struct span value)
{
	const bool pseudo = name.length && name.at[0] == ':';

	if (head->length + name.length + value.length + 4 > sizeof(head->bytes))
		return "has a head of more than 64 KiB";
	if (head->count - head->pseudo_count >= LIMIT_SECRET_HEAD_FIELDS)
		return "has more than 256 fields";
	if (pseudo && head->pseudo_count == HTTP2_PSEUDO_MAX)
		return "has more fields that begin with a colon than there are";
	if (pseudo && head->pseudo_count < head->count)
		return "has a field that begins with a colon behind others";
	if (!is_name(name.at + pseudo, name.length - pseudo))
		return "has a field whose name none has";
	if (!is_value(value.at, value.length))
		return "has a control character in its head";
	return NULL;
}

static void append(struct http2_head *head, const void *bytes, size_t length)
{
	if (length)
		memcpy(head->bytes + head->length, bytes, length);
	head->length += length;
}

void http2_head_add(struct http2_head *head, const void *name, size_t name_length,
		    const void *value, size_t value_length, bool never_indexed)
{
	struct http2_field *field = &head->fields[head->count];

	if (head->objection)
		return;
	head->objection = find_objection(head, (struct span){(char *)(uintptr_t)name, name_length},
					 (struct span){(char *)(uintptr_t)value, value_length});
	if (head->objection)
		return;
	head->pseudo_count += ((const char *)name)[0] == ':';
	head->count++;
	*field = (struct http2_field){
		.name = (uint32_t)head->length,
		.name_length = (uint32_t)name_length,
		.value = (uint32_t)(head->length + name_length + 2),
		.value_length = (uint32_t)value_length,
		.never_indexed = never_indexed,
	};
	append(head, name, name_length);
	append(head, ": ", 2);
	append(head, value, value_length);
	append(head, "\r\n", 2);
}

static struct span name_of(struct http2_head *head, const struct http2_field *field)
{
	return (struct span){head->bytes + field->name, field->name_length};
}

static struct span value_of(struct http2_head *head, const struct http2_field *field)
{
	return (struct span){head->bytes + field->value, field->value_length};
}

static void add_wire(struct http2_head *head, struct span name, struct span value,
		     bool never_indexed)
{
	head->wire[head->wire_count++] = (nghttp2_nv){
		.name = (uint8_t *)name.at,
		.namelen = name.length,
		.value = (uint8_t *)value.at,
		.valuelen = value.length,
		.flags = never_indexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE,
	};
}

static int refuse(char reason[HTTP_REASON_BYTES], const char *text)
{
	snprintf(reason, HTTP_REASON_BYTES, "%s", text);
	return -1;
}

/* The parts of a request that are a line of its head in HTTP/1.1, and its Host. */
struct parts {
	struct span method, scheme, authority, path;
};

/* Each of them once, and no other: not :protocol either, which asks for a tunnel (RFC 8441). */
static int read_parts(struct http2_head *head, struct parts *parts, char reason[HTTP_REASON_BYTES])
{
	struct {
		const char *name;
		struct span *value;
	} known[] = {
		{":method", &parts->method},
		{":scheme", &parts->scheme},
		{":authority", &parts->authority},
		{":path", &parts->path},
	};

	*parts = (struct parts){0};
	for (unsigned int i = 0; i < head->pseudo_count; i++) {
		const struct span name = name_of(head, &head->fields[i]);
		size_t j = 0;

		while (j < ARRAY_SIZE(known) && !span_is(name, known[j].name))
			j++;
		if (j == ARRAY_SIZE(known))
			return refuse(reason, "asks for a tunnel, or has a field that begins with "
					      "a colon and that none has");
		if (known[j].value->at)
			return refuse(reason, "has the same field twice that begins with a colon");
		*known[j].value = value_of(head, &head->fields[i]);
	}
	if (!parts->method.at || !http_is_token(parts->method.at, parts->method.length))
		return refuse(reason, "has no method");
	if (span_is(parts->method, "CONNECT"))
		return refuse(reason, "asks for a tunnel");
	if (!parts->authority.at)
		return refuse(reason, "has no :authority");
	if (!parts->path.at || !parts->scheme.at || !span_is(parts->scheme, "https"))
		return refuse(reason, "asks for no path by https");
	return 0;
}

/* RFC 9113, 8.2.2: they are of a connection, which is another one behind us. */
static bool is_of_connection(struct span name)
{
	static const char *const names[] = {
		"connection",        "keep-alive", "proxy-connection",
		"transfer-encoding", "upgrade",    "http2-settings",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (span_is(name, names[i]))
			return true;
	}
	return false;
}

static void write_text(struct http2_head *head, const void *bytes, size_t length, bool *fits)
{
	*fits = *fits && length <= sizeof(head->text) - head->text_length;
	if (!*fits || !length)
		return;
	memcpy(head->text + head->text_length, bytes, length);
	head->text_length += length;
}

/* Whether it fits. */
static bool write_first_lines(struct http2_head *head, const struct parts *parts)
{
	static const char version[] = " HTTP/1.1\r\nHost: ";
	bool fits = true;

	write_text(head, parts->method.at, parts->method.length, &fits);
	write_text(head, " ", 1, &fits);
	write_text(head, parts->path.at, parts->path.length, &fits);
	write_text(head, version, sizeof(version) - 1, &fits);
	write_text(head, parts->authority.at, parts->authority.length, &fits);
	write_text(head, "\r\n", 2, &fits);
	return fits;
}

/* A Host beside :authority must be the same (RFC 9113, 8.3.1), and then says nothing: it is left
 * out. One that differs stays, and is refused as the second one. */
static void leave_host_out(struct http2_head *head, const struct parts *parts)
{
	unsigned int left = head->pseudo_count;

	for (unsigned int i = head->pseudo_count; i < head->count; i++) {
		const struct span value = value_of(head, &head->fields[i]);

		if (span_is(name_of(head, &head->fields[i]), "host") &&
		    value.length == parts->authority.length &&
		    strncasecmp(value.at, parts->authority.at, value.length) == 0)
			continue;
		head->fields[left++] = head->fields[i];
	}
	head->count = left;
}

/* Writes the request's head as HTTP/1.1 has it. 0 or -1 with @reason. */
static int write_request(struct http2_head *head, const struct parts *parts, bool ends,
			 char reason[HTTP_REASON_BYTES])
{
	bool fits = write_first_lines(head, parts), has_length = false;

	for (unsigned int i = head->pseudo_count; i < head->count; i++) {
		const struct http2_field *field = &head->fields[i];
		const struct span name = name_of(head, field);

		if (is_of_connection(name))
			return refuse(reason, "has a field of HTTP/1.1's that HTTP/2 has not");
		has_length |= span_is(name, "content-length");
		/* The whole line, with its end. */
		write_text(head, name.at, field->value + field->value_length + 2 - field->name,
			   &fits);
	}
	if (!ends && !has_length)
		write_text(head, chunked_line, sizeof(chunked_line) - 1, &fits);
	write_text(head, "\r\n", 2, &fits);
	return fits ? 0 : refuse(reason, "has a head of more than 64 KiB");
}

/* The next line of HTTP/1.1 in @rest, without its end; what stays is what follows. */
static struct span take_line(struct span *rest)
{
	const char *end = memmem(rest->at, rest->length, "\r\n", 2);
	const size_t length = end ? (size_t)(end - rest->at) : rest->length;
	const struct span line = {rest->at, length};

	rest->at += length + (end ? 2 : 0);
	rest->length -= length + (end ? 2 : 0);
	return line;
}

/* Parts a line into name and value. */
static void part_line(struct span line, struct span *name, struct span *value)
{
	const char *colon = memchr(line.at, ':', line.length);
	const size_t length = colon ? (size_t)(colon - line.at) : line.length;

	*name = (struct span){line.at, length};
	*value = (struct span){line.at + length + (colon != NULL),
			       line.length - length - (colon != NULL)};
	*value = span_trim(*value);
}

/* Whether a secret was put in, or something taken out: that is not to be kept by those who pack
 * heads. */
static bool has_changed(struct span came, struct span value)
{
	return came.length != value.length || memcmp(came.at, value.at, value.length) != 0;
}

/* What is sent: the fields of the text, which are those that came, in their order. */
static void make_wire(struct http2_head *head, const struct parts *parts, bool chunked)
{
	static char method[] = ":method", scheme[] = ":scheme", authority[] = ":authority",
		    path[] = ":path";
	struct span rest = {head->text, head->text_length}, line = take_line(&rest), name, value;
	const char *version = memrchr(line.at, ' ', line.length);
	const struct span target = {line.at + parts->method.length + 1,
				    (size_t)(version - line.at) - parts->method.length - 1};

	part_line(take_line(&rest), &name, &value);
	add_wire(head, (struct span){method, 7}, parts->method, false);
	add_wire(head, (struct span){scheme, 7}, parts->scheme, false);
	add_wire(head, (struct span){authority, 10}, value, false);
	add_wire(head, (struct span){path, 5}, target, has_changed(parts->path, target));
	rest.length -= 2 + (chunked ? sizeof(chunked_line) - 1 : 0);
	for (unsigned int i = head->pseudo_count; rest.length; i++) {
		part_line(take_line(&rest), &name, &value);
		add_wire(head, name, value,
			 head->fields[i].never_indexed ||
				 has_changed(value_of(head, &head->fields[i]), value));
	}
}

int http2_head_rewrite(struct http2_head *head, bool ends, const struct http_target *target,
		       struct http_request *request, char reason[HTTP_REASON_BYTES])
{
	const char *why = "";
	struct parts parts;
	long length;

	if (head->objection)
		return refuse(reason, head->objection);
	if (read_parts(head, &parts, reason))
		return -1;
	leave_host_out(head, &parts);
	if (write_request(head, &parts, ends, reason))
		return -1;
	length = http_head_length(head->text, head->text_length, &why);
	if (length != (long)head->text_length)
		return refuse(reason, length < 0 ? why : "is not what it seems");
	if (http_head_rewrite(head->text, &head->text_length, target, request, reason) < 0)
		return -1;
	make_wire(head, &parts, request->chunked);
	return 0;
}

bool http2_head_says(struct http2_head *head, const char *name, const char *beginning)
{
	for (unsigned int i = 0; i < head->count; i++) {
		const struct span value = value_of(head, &head->fields[i]);

		if (span_is(name_of(head, &head->fields[i]), name) &&
		    value.length >= strlen(beginning) &&
		    strncasecmp(value.at, beginning, strlen(beginning)) == 0)
			return true;
	}
	return false;
}

void http2_head_take_as_is(struct http2_head *head)
{
	for (unsigned int i = 0; i < head->count; i++)
		add_wire(head, name_of(head, &head->fields[i]), value_of(head, &head->fields[i]),
			 head->fields[i].never_indexed);
}

int http2_head_check_trailer(struct http2_head *head, char reason[HTTP_REASON_BYTES])
{
	bool good = !head->pseudo_count && head->length <= LIMIT_SECRET_TRAILER_BYTES;

	if (head->objection)
		return refuse(reason, head->objection);
	for (unsigned int i = 0; good && i < head->count; i++) {
		const struct http2_field *field = &head->fields[i];

		good = http_is_trailer(head->bytes + field->name,
				       field->value + field->value_length - field->name) &&
		       !is_of_connection(name_of(head, field));
	}
	if (!good)
		return refuse(reason, "has a trailer that cannot be passed on");
	http2_head_take_as_is(head);
	return 0;
}

/* RFC 9113, 8.3.2: three digits; RFC 9113, 8.6: but 101. 0: none, -1: something else. */
static int read_status(struct http2_head *head)
{
	const struct span value = value_of(head, &head->fields[0]);
	int status = 0;

	if (!head->pseudo_count)
		return 0;
	if (head->pseudo_count != 1 || !span_is(name_of(head, &head->fields[0]), ":status") ||
	    value.length != 3)
		return -1;
	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -1;
		status = 10 * status + value.at[i] - '0';
	}
	return status < 100 || status == 101 ? -1 : status;
}

int http2_head_mask(struct http2_head *head, struct masker *masker)
{
	char out[sizeof(masker->bytes)];
	size_t made = 0, taken;
	int status;

	status = head->objection ? -1 : read_status(head);
	if (status < 0) {
		head->objection = head->objection ? head->objection : "has a status that is none";
		return -1;
	}
	/* As long as before: so each field is where it was. */
	for (size_t done = 0; done < head->length; done += taken) {
		size_t length;

		taken = (size_t)bytes_minimum(MASKER_PIECE_BYTES, head->length - done);
		length = masker_put(masker, head->bytes + done, taken, out);
		memcpy(head->bytes + made, out, length);
		made += length;
	}
	made += masker_flush(masker, head->bytes + made);
	masker->length = masker->passed = 0;
	http2_head_take_as_is(head);
	return made == head->length ? status : -1;
}

void http2_head_restore(struct http2_head *head, const char *bytes, size_t length)
{
	struct span rest = {(char *)(uintptr_t)bytes, length};

	http2_head_begin(head);
	while (rest.length) {
		struct span name, value;

		part_line(take_line(&rest), &name, &value);
		http2_head_add(head, name.at, name.length, value.at, value.length, true);
	}
	http2_head_take_as_is(head);
}
