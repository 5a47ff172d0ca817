/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/dns.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* RFC 1035, 4.1.1 */
#define HEADER_BYTES             12U
#define FLAG_RESPONSE            0x8000U
#define FLAGS_OPCODE             0x7800U
#define FLAG_AUTHORITATIVE       0x0400U
#define FLAG_RECURSION_DESIRED   0x0100U
#define FLAG_RECURSION_AVAILABLE 0x0080U

enum { RCODE_NONE, RCODE_FORMAT = 1, RCODE_NO_NAME = 3, RCODE_NOT_IMPLEMENTED = 4 };

/* RFC 1035, 3.2.2; RFC 3596, 2.1; RFC 1035, 3.2.3. Of the other types nothing is known here. */
enum { TYPE_A = 1, TYPE_PTR = 12, TYPE_AAAA = 28, TYPE_ANY = 255 };
enum { CLASS_INTERNET = 1, CLASS_ANY = 255 };

/* Nothing here changes while a program lives, but a name may be refused later: it is asked again.
 */
#define TTL_SECONDS 60U

struct question {
	char name[DNS_NAME_BYTES]; /* in small letters */
	bool odd;                  /* it has bytes that no name here has */
	uint16_t type;
	uint16_t class;
	size_t end; /* its end in the request */
};

struct response {
	uint8_t *bytes;
	size_t length;
	unsigned int answers;
};

static uint16_t get16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void put16(struct response *response, unsigned int value)
{
	response->bytes[response->length++] = (uint8_t)(value >> 8);
	response->bytes[response->length++] = (uint8_t)value;
}

static char small_letter(uint8_t byte)
{
	return (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
}

/* The name as labels (RFC 1035, 3.1); a pointer has no place in a question. Returns whether it is
 * one, and moves @at behind it. */
static bool read_name(struct question *question, const uint8_t *request, size_t length, size_t *at)
{
	size_t used = 0;

	for (;;) {
		uint8_t label;

		if (*at >= length)
			return false;
		label = request[(*at)++];
		if (label == 0)
			break;
		if (label > 63 || label > length - *at || used + label + 1U >= DNS_NAME_BYTES)
			return false;
		if (used)
			question->name[used++] = '.';
		for (; label; label--) {
			uint8_t byte = request[(*at)++];

			question->odd |= byte <= ' ' || byte >= 0x7f || byte == '.';
			question->name[used++] = small_letter(byte);
		}
	}
	question->name[used] = '\0';
	return true;
}

static bool read_question(struct question *question, const uint8_t *request, size_t length)
{
	size_t at = HEADER_BYTES;

	*question = (struct question){0};
	if (get16(request + 4) != 1 || !read_name(question, request, length, &at) ||
	    length - at < 4)
		return false;
	question->type = get16(request + at);
	question->class = get16(request + at + 2);
	question->end = at + 4;
	return true;
}

/* A record about the question's own name, to which it points (RFC 1035, 4.1.4). The caller appends
 * @data_length bytes. */
static void begin_record(struct response *response, uint16_t type, size_t data_length)
{
	put16(response, 0xc000U | HEADER_BYTES);
	put16(response, type);
	put16(response, CLASS_INTERNET);
	put16(response, 0);
	put16(response, TTL_SECONDS);
	put16(response, (unsigned int)data_length);
	response->answers++;
}

static void append(struct response *response, const void *data, size_t length)
{
	memcpy(response->bytes + response->length, data, length);
	response->length += length;
}

/* @name is one that DNS_NAME_BYTES hold, of labels that are none too long. */
static void append_name(struct response *response, const char *name)
{
	while (*name) {
		size_t label = strcspn(name, ".");

		response->bytes[response->length++] = (uint8_t)label;
		append(response, name, label);
		name += label + (name[label] == '.');
	}
	response->bytes[response->length++] = 0;
}

/* RFC 6761, 6.3: localhost and all below it are this machine, whatever else is known. */
static bool is_localhost(const char *name)
{
	static const char localhost[] = "localhost";
	size_t length = strlen(name), tail = sizeof(localhost) - 1;

	return length >= tail && strcmp(name + length - tail, localhost) == 0 &&
	       (length == tail || name[length - tail - 1] == '.');
}

static int answer_localhost(struct response *response, const struct question *question)
{
	const struct in_addr address = {htonl(INADDR_LOOPBACK)};

	if (question->type == TYPE_A || question->type == TYPE_ANY) {
		begin_record(response, TYPE_A, sizeof(address));
		append(response, &address, sizeof(address));
	}
	if (question->type == TYPE_AAAA || question->type == TYPE_ANY) {
		begin_record(response, TYPE_AAAA, sizeof(in6addr_loopback));
		append(response, &in6addr_loopback, sizeof(in6addr_loopback));
	}
	return RCODE_NONE;
}

/* Takes the address out of d.c.b.a.in-addr.arpa (RFC 1035, 3.5). */
static bool parse_reverse(const char *name, struct in_addr *address)
{
	unsigned int a, b, c, d;
	int end = 0;

	if (sscanf(name, "%3u.%3u.%3u.%3u.in-addr.arpa%n", &d, &c, &b, &a, &end) != 4 || !end ||
	    name[end] || a > 255 || b > 255 || c > 255 || d > 255)
		return false;
	address->s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
	return true;
}

static int answer_reverse(const struct dns_names *names, struct response *response,
			  const struct question *question, struct in_addr address)
{
	char name[DNS_NAME_BYTES] = "localhost";

	if (address.s_addr != htonl(INADDR_LOOPBACK) &&
	    !names->find_address(names->context, address, name))
		return RCODE_NO_NAME;
	if (question->type == TYPE_PTR || question->type == TYPE_ANY) {
		begin_record(response, TYPE_PTR, strlen(name) + 2);
		append_name(response, name);
	}
	return RCODE_NONE;
}

/* Appends what is known. Returns the code. A name that is known has an IPv4 address and nothing
 * else: other questions get an empty answer, so that programs go on with what they have. */
static int answer_question(const struct dns_names *names, struct response *response,
			   const struct question *question)
{
	struct in_addr address;

	if (question->odd || !question->name[0] ||
	    (question->class != CLASS_INTERNET && question->class != CLASS_ANY))
		return RCODE_NO_NAME;
	if (is_localhost(question->name))
		return answer_localhost(response, question);
	if (parse_reverse(question->name, &address))
		return answer_reverse(names, response, question, address);
	if (!names->find(names->context, question->name, &address))
		return RCODE_NO_NAME;
	if (question->type == TYPE_A || question->type == TYPE_ANY) {
		begin_record(response, TYPE_A, sizeof(address));
		append(response, &address, sizeof(address));
	}
	return RCODE_NONE;
}

size_t dns_answer(const struct dns_names *names, const uint8_t *request, size_t length,
		  uint8_t response[DNS_RESPONSE_BYTES])
{
	struct response made = {.bytes = response, .length = HEADER_BYTES};
	struct question question;
	unsigned int flags, code;
	bool readable;

	if (length < HEADER_BYTES || get16(request + 2) & FLAG_RESPONSE)
		return 0;
	flags = get16(request + 2);
	readable = read_question(&question, request, length);
	/* The question is sent back as it came: programs compare it, also its letters' case. */
	if (readable)
		append(&made, request + HEADER_BYTES, question.end - HEADER_BYTES);
	if (flags & FLAGS_OPCODE)
		code = RCODE_NOT_IMPLEMENTED;
	else if (!readable)
		code = RCODE_FORMAT;
	else
		code = (unsigned int)answer_question(names, &made, &question);
	memset(response, 0, HEADER_BYTES);
	memcpy(response, request, 2);
	flags = FLAG_RESPONSE | FLAG_AUTHORITATIVE | FLAG_RECURSION_AVAILABLE |
		(flags & (FLAGS_OPCODE | FLAG_RECURSION_DESIRED)) | code;
	response[2] = (uint8_t)(flags >> 8);
	response[3] = (uint8_t)flags;
	response[5] = readable;
	response[7] = (uint8_t)made.answers;
	return made.length;
}
