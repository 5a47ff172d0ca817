/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of mvagent-secret: placeholders, heads and bodies of requests, what servers say.
 * tests/relay/secret_driver.py has the rest, with real peers. */
#include "vmm/secret/request.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/base64.h"
#include "vmm/secret/response.h"

#define VALUE "the-secret-of-this-test"
#define PLACE "PLACEHOLDER-of-the-test"
#define OTHER "PLACEHOLDER-of-another-"

static struct secret make(const char *name, const char *value, const char *place, const char *host)
{
	struct secret made = {.length = strlen(value), .host_count = 1};

	snprintf(made.name, sizeof(made.name), "%s", name);
	snprintf(made.value, sizeof(made.value), "%s", value);
	snprintf(made.placeholder, sizeof(made.placeholder), "%s", place);
	snprintf(made.hosts[0].name, sizeof(made.hosts[0].name), "%s", host);
	made.hosts[0].port = 443;
	return made;
}

static struct secret_set *make_set(void)
{
	struct secret_set *set = calloc(1, sizeof(*set));

	assert_non_null(set);
	set->count = 2;
	set->secrets[0] = make("KEY", VALUE, PLACE, "api.test");
	set->secrets[1] = make("OTHER", "the-secret-of-elsewhere", OTHER, "else.test");
	return set;
}

static void test_placeholders(void **state)
{
	static const struct {
		const char *value, *beginning, *letters;
	} cases[] = {
		{"sk-ant-api03-abcdefghijABCDEFGHIJ0123456789", "sk-ant-api03-", NULL},
		{"ghp_abcdefghijABCDEFGHIJ0123456789", "ghp_", NULL},
		{"0123456789012345", "", "0123456789"},
		{"0123456789abcdef0123456789abcdef", "", "0123456789abcdef"},
		{"sk-short", "", NULL},
		{"........", "", NULL},
		{"-_/+=-_/+=-_/+=", "", NULL},
	};
	char dotted[] = "abcdefghijkl.mnopqrstu.vwxyzabc";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct secret first = make("X", cases[i].value, "", "a"), second = first;

		assert_null(secret_objection(first.value, first.length));
		assert_int_equal(secret_make_placeholder(&first), 0);
		assert_int_equal(secret_make_placeholder(&second), 0);
		assert_int_equal(strlen(first.placeholder), strlen(cases[i].value));
		assert_memory_equal(first.placeholder, cases[i].beginning,
				    strlen(cases[i].beginning));
		assert_string_not_equal(first.placeholder, first.value);
		assert_string_not_equal(first.placeholder, second.placeholder);
		if (cases[i].letters)
			assert_int_equal(strspn(first.placeholder, cases[i].letters), first.length);
	}
	{
		struct secret secret = make("X", dotted, "", "a");

		assert_int_equal(secret_make_placeholder(&secret), 0);
		assert_true(secret.placeholder[12] == '.' && secret.placeholder[22] == '.');
	}
	assert_non_null(secret_objection("short", 5));
	assert_non_null(secret_objection("two words of it", 15));
	assert_non_null(secret_objection("a-line\nof-two-lines", 19));
	assert_non_null(secret_objection("\xc3\xa4-not-ascii", 12));
}

static void test_set_is_handed_over(void **state)
{
	struct secret_set *set = make_set(), *read_set = calloc(1, sizeof(*read_set));
	int fd = secret_set_write(set);
	uint8_t byte;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(secret_set_read(read_set, fd), 0);
	assert_memory_equal(set, read_set, sizeof(*set));
	assert_true(secret_is_for(&read_set->secrets[0], "api.test", 443));
	assert_false(secret_is_for(&read_set->secrets[0], "api.test", 80));
	assert_false(secret_is_for(&read_set->secrets[0], "else.test", 443));
	/* It was overwritten, all of it. */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	while (read(fd, &byte, 1) == 1)
		assert_int_equal(byte, 0);
	close(fd);
	set->secrets[0].length++;
	fd = secret_set_write(set);
	assert_int_equal(secret_set_read(read_set, fd), -EINVAL);
	close(fd);
	secret_set_wipe(set);
	assert_int_equal(set->count, 0);
	free(read_set);
	free(set);
}

static void test_base64(void **state)
{
	static const char *const broken[] = {
		"", "a", "YQ", "YQ=", "Y===", "YR==", "YWJ=", "YW=J", "Y WJ", "=WJj", "YQ==YQ=="};
	char plain[64], text[64];

	(void)state;
	for (size_t length = 1; length < 40; length++) {
		char bytes[40];
		size_t encoded = (length + 2) / 3 * 4;

		for (size_t i = 0; i < length; i++)
			bytes[i] = (char)(37 * i + 11 * length);
		base64_encode(bytes, length, text);
		assert_int_equal(base64_decode(text, encoded, plain), (long)length);
		assert_memory_equal(plain, bytes, length);
	}
	base64_encode("user:pass", 9, text);
	assert_memory_equal(text, "dXNlcjpwYXNz", 12);
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		assert_int_equal(base64_decode(broken[i], strlen(broken[i]), plain), -1);
}

/* Sends @text in pieces of @piece bytes. What left is in @out; -1 when it was refused. */
static ssize_t pass(struct request_stream *request, const char *text, size_t length, size_t piece,
		    char *out, size_t size)
{
	size_t done = 0, left = 0;

	while (done < length) {
		size_t count = bytes_minimum(piece, length - done);
		ssize_t taken;

		if (request_is_full(request))
			break;
		request_add(request, text + done, count);
		done += count;
		while ((taken = request_take(request, out + left, size - left)) > 0)
			left += (size_t)taken;
		if (taken < 0)
			return -1;
	}
	return (ssize_t)left;
}

/* Whatever the pieces are: all of it leaves as @wanted, or it is refused for @reason. */
static void expect_stream(const char *text, const char *wanted, const char *reason)
{
	const size_t size = LIMIT_SECRET_HEAD_BYTES + strlen(text) + 1;
	struct secret_set *set = make_set();
	char *out = malloc(size);

	assert_non_null(out);
	for (size_t piece = 1; piece < 40; piece += piece < 4 ? 1 : 17) {
		struct request_stream *request = calloc(1, sizeof(*request));
		ssize_t length;

		assert_non_null(request);
		request->target = (struct http_target){"api.test", 443, set};
		length = pass(request, text, strlen(text), piece, out, size);
		if (reason) {
			assert_int_equal(length, -1);
			if (!strstr(request->reason, reason))
				fail_msg("'%s' instead of '%s'", request->reason, reason);
		} else {
			if (length < 0)
				fail_msg("%s", request->reason);
			assert_int_equal(length, strlen(wanted));
			assert_memory_equal(out, wanted, (size_t)length);
			assert_true(request_is_between(request));
		}
		free(request);
	}
	free(out);
	free(set);
}

#define HOST "Host: api.test\r\n"

static void test_requests(void **state)
{
	static const char *const same[] = {
		"GET / HTTP/1.1\r\n" HOST "\r\n",
		"GET /a?b=c HTTP/1.0\r\nhost:api.test:443 \t\r\nX: \xc3\xa4\t.\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"
		"GET / HTTP/1.1\r\n" HOST "\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
		"5\r\nhello\r\n0A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\nx: y\r\n\r\n"
		"GET / HTTP/1.1\r\n" HOST "\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		expect_stream(same[i], same[i], NULL);
	expect_stream("GET / HTTP/1.1\r\n" HOST "Authorization: Bearer " PLACE "\r\nx: " PLACE
		      "," PLACE "\r\n\r\n",
		      "GET / HTTP/1.1\r\n" HOST "Authorization: Bearer " VALUE "\r\nx: " VALUE
		      "," VALUE "\r\n\r\n",
		      NULL);
	/* base64 of user: and either */
	expect_stream("GET / HTTP/1.1\r\n" HOST
		      "Authorization: basic dXNlcjpQTEFDRUhPTERFUi1vZi10aGUtdGVzdA==\r\n\r\n",
		      "GET / HTTP/1.1\r\n" HOST
		      "Authorization: basic dXNlcjp0aGUtc2VjcmV0LW9mLXRoaXMtdGVzdA==\r\n\r\n",
		      NULL);
	expect_stream("GET / HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n",
		      "GET / HTTP/1.1\r\n" HOST "Accept-Encoding:     \r\n\r\n", NULL);
	expect_stream("GET / HTTP/1.1\r\n" HOST "Sec-WebSocket-Extensions: abc; d\r\n"
		      "Authorization: Basic " PLACE "\r\n\r\n",
		      "GET / HTTP/1.1\r\n" HOST "Sec-WebSocket-Extensions: x     \r\n"
		      "Authorization: Basic " VALUE "\r\n\r\n",
		      NULL);
}

static const struct {
	const char *text, *reason;
} refused[] = {
	{"GET /" PLACE " HTTP/1.1\r\n" HOST "\r\n", "placeholder of KEY in its first line"},
	{"GET /" PLACE "?a=b HTTP/1.1\r\n" HOST "\r\n", "placeholder of KEY in its first line"},
	{"GET /?a=" PLACE " HTTP/1.1\r\n" HOST "\r\n", "--secret-query KEY"},
	{"GET /?a=" OTHER " HTTP/1.1\r\n" HOST "\r\n", "OTHER and goes to another host"},
	{"GET /#?a=" PLACE " HTTP/1.1\r\n" HOST "\r\n", "placeholder of KEY in its first line"},
	{"GET /?a#" PLACE " HTTP/1.1\r\n" HOST "\r\n", "placeholder of KEY in its first line"},
	{PLACE " / HTTP/1.1\r\n" HOST "\r\n", "placeholder of KEY in its first line"},
	{"GET / HTTP/1.1\r\n" HOST PLACE ": x\r\n\r\n", "in the name of a field"},
	{"GET / HTTP/1.1\r\n" HOST "x: " OTHER "\r\n\r\n", "goes to another host"},
	{"GET / HTTP/1.1\r\n" HOST "Connection: " PLACE "\r\n\r\n", "in Connection"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 23\r\n\r\n" PLACE, "no header"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nx: " PLACE "\r\n\r\n",
	 "no header"},
	{"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "asks for another host"},
	{"GET / HTTP/1.1\r\nHost: api.test.evil\r\n\r\n", "asks for another host"},
	{"GET / HTTP/1.1\r\nHost: api.test:80\r\n\r\n", "asks for another host"},
	{"GET / HTTP/1.1\r\nHost: api.test:443:443\r\n\r\n", "asks for another host"},
	{"GET / HTTP/1.1\r\nHost:\r\n\r\n", "asks for another host"},
	{"GET / HTTP/1.1\r\n" HOST "HOST: api.test\r\n\r\n", "more than one Host"},
	{"GET / HTTP/1.1\r\n\r\n", "has no Host"},
	{"\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "empty line"},
	{"GET  / HTTP/1.1\r\n" HOST "\r\n", "does not ask for a path"},
	{"GET http://api.test/ HTTP/1.1\r\n" HOST "\r\n", "does not ask for a path"},
	{"GET * HTTP/1.1\r\n" HOST "\r\n", "does not ask for a path"},
	{"CONNECT evil.test:443 HTTP/1.1\r\n" HOST "\r\n", "does not ask for a path"},
	{"CONNECT / HTTP/1.1\r\n" HOST "\r\n", "asks for a tunnel"},
	{"GET / HTTP/1.1\r\n" HOST "Authorization: Basic " OTHER "\r\n\r\n",
	 "goes to another host"},
	{"GET / HTTP/2.0\r\n" HOST "\r\n", "not of HTTP/1.1"},
	{"GET / http/1.1\r\n" HOST "\r\n", "not of HTTP/1.1"},
	{"GET /\r\n" HOST "\r\n", "none of HTTP"},
	{"GET / x HTTP/1.1\r\n" HOST "\r\n", "characters that none has"},
	{"GET / HTTP/1.1\n" HOST "\r\n", "without a carriage return"},
	{"GET / HTTP/1.1\r\n" HOST "x: \r y\r\n\r\n", "ends no line"},
	{"GET / HTTP/1.1\r\n" HOST "x: \1\r\n\r\n", "control character"},
	{"GET / HTTP/1.1\r\n" HOST " x: y\r\n\r\n", "goes on in the next line"},
	{"GET / HTTP/1.1\r\n" HOST "x : y\r\n\r\n", "no field"},
	{"GET / HTTP/1.1\r\n" HOST "xy\r\n\r\n", "no field"},
	{"GET / HTTP/1.1\r\n" HOST ": y\r\n\r\n", "no field"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\ncontent-length: 1\r\n\r\n",
	 "more than one Content-Length"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", "no number"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", "no number"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", "no number"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", "no number"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", "no number"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
	 "has both"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "other than chunked"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n",
	 "other than chunked"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
	 "chunked\r\n\r\n",
	 "control character"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer_Encoding: chunked\r\n\r\n", "some take for another"},
	{"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
	{"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nxGET / HTTP/1.1\r\n" HOST "\r\n",
	 "some servers overlook"},
	{"OPTIONS / HTTP/1.1\r\n" HOST
	 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
	 "some servers overlook"},
	{"GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n", "without its Connection"},
	{"GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: upgrade\r\n\r\n",
	 "another protocol"},
	{"GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST
	 "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
	 "not the first"},
};

static void test_requests_that_are_refused(void **state)
{
	static const char *const bodies[] = {"5;x\r\nhello\r\n",
					     "5 \r\nhello\r\n",
					     "\r\n",
					     "g\r\n",
					     "0x5\r\nhello\r\n",
					     "5\nhello\r\n",
					     "5\r\nhelloo\r\n",
					     "1000000000000000\r\n",
					     "0\r\nContent-Length: 5\r\n\r\n",
					     "0\r\nx\r\n\r\n",
					     "-5\r\n"};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		expect_stream(refused[i].text, NULL, refused[i].reason);
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		snprintf(text, sizeof(text),
			 "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%s",
			 bodies[i]);
		expect_stream(text, NULL, "has a");
	}
}

static void test_bounds_of_a_head(void **state)
{
	const char *reason = NULL;
	char *head = malloc(LIMIT_SECRET_HEAD_BYTES);

	(void)state;
	assert_non_null(head);
	memset(head, 'x', LIMIT_SECRET_HEAD_BYTES);
	assert_int_equal(http_head_length(head, LIMIT_SECRET_HEAD_BYTES - 1, &reason), 0);
	assert_int_equal(http_head_length(head, LIMIT_SECRET_HEAD_BYTES, &reason), -1);
	assert_non_null(strstr(reason, "64 KiB"));
	free(head);
}

/* What a server says in two pieces: what the guest gets. */
static size_t mask(const struct secret_set *set, const char *text, size_t cut, bool flush,
		   char *out)
{
	struct masker *masker = calloc(1, sizeof(*masker));
	struct mask_table *table = NULL;
	size_t length;

	assert_non_null(masker);
	assert_int_equal(mask_table_create(&table, set), 0);
	masker->table = table;
	length = masker_put(masker, text, cut, out);
	if (flush)
		length += masker_flush(masker, out + length);
	length += masker_put(masker, text + cut, strlen(text) - cut, out + length);
	length += masker_flush(masker, out + length);
	assert_false(masker_is_holding(masker));
	mask_table_destroy(table);
	free(masker);
	return length;
}

static void test_masking(void **state)
{
	/* Whole, cut short, with others behind, and as base64 has it at its three places. */
	static const char text[] =
		"{\"a\": \"" VALUE "\", \"b\": \"the-secret-of-thatthe-secre" VALUE
		"the-secret-of-elsewhere the-secr dXNlcjp0aGUtc2VjcmV0LW9mLXRoaXMtdGVzdA== "
		"YTp0aGUtc2VjcmV0LW9mLXRoaXMtdGVzdA== OnRoZS1zZWNyZXQtb2YtdGhpcy10ZXN0 the";
	static const char masked[] =
		"{\"a\": \"" PLACE "\", \"b\": \"PLACEHOLDER-of-tatPLACEHOLD" PLACE OTHER
		" the-secr dXNlcjpQTEFDRUhPTERFUi1vZi10aGUtdGVzdA== "
		"YTpQTEFDRUhPTERFUi1vZi10aGUtdGVzdA== OnBMQUNFSE9MREVSLW9mLXRoZS10ZXN0 the";
	struct secret_set *set = make_set();
	char out[2 * LIMIT_SECRET_BYTES + MASKER_PIECE_BYTES];

	(void)state;
	assert_int_equal(strlen(text), strlen(masked));
	for (size_t cut = 0; cut <= strlen(text); cut++) {
		assert_int_equal(mask(set, text, cut, false, out), strlen(text));
		out[strlen(text)] = '\0';
		assert_memory_equal(out, masked, strlen(text));
	}
	/* When the first piece was not held for long: at most its few first bytes are the secret's.
	 */
	for (size_t cut = 0; cut <= strlen(VALUE); cut++) {
		assert_int_equal(mask(set, VALUE, cut, true, out), strlen(VALUE));
		if (cut > 8 && cut < strlen(VALUE))
			assert_memory_equal(out, PLACE, strlen(PLACE));
		if (cut > 0)
			assert_memory_equal(out + 8, PLACE + 8, strlen(PLACE) - 8);
	}
	/* Of a short one it is half. */
	set->secrets[0] = make("KEY", "sh0rt+/=", "PLACEPLA", "api.test");
	assert_int_equal(mask(set, "a sh0rt+ b sh0r c sh0rt%2B%2F%3D", 9, false, out), 32);
	assert_memory_equal(out, "a PLACEP b sh0r c PLACE%50%4C%41", 32);
	free(set);
}

/* A secret that is the start of another one, whichever was given first, and wherever it is cut. */
static void test_masking_of_one_in_another(void **state)
{
	struct secret_set *set = make_set();
	char out[2 * LIMIT_SECRET_BYTES + MASKER_PIECE_BYTES];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		set->secrets[i] = make("LONG", "abcdefgh12345678", "ABCDEFGHIJKLMNOP", "api.test");
		set->secrets[1 - i] = make("SHORT", "abcdefgh", "QRSTUVWX", "api.test");
		for (size_t cut = 0; cut <= 29; cut++) {
			assert_int_equal(
				mask(set, "[abcdefgh12345678] [abcdefgh]", cut, false, out), 29);
			assert_memory_equal(out, "[ABCDEFGHIJKLMNOP] [QRSTUVWX]", 29);
		}
		assert_int_equal(mask(set, "abcdefgh12345678", 8, true, out), 16);
		assert_memory_equal(out, "QRSTUVWXIJKLMNOP", 16);
		assert_int_equal(mask(set, "abcdefgh", 8, true, out), 8);
		assert_memory_equal(out, "QRSTUVWX", 8);
	}
	free(set);
}

/* What a server says in pieces of @piece bytes to @heads (bits) of 64 requests. What the guest gets
 * is in @out; the length, or -1. */
static ssize_t answer(const char *text, size_t piece, uint64_t heads, char *out)
{
	struct request_stream *request = calloc(1, sizeof(*request));
	struct response_stream *response = calloc(1, sizeof(*response));
	struct secret_set *set = make_set();
	struct mask_table *table = NULL;
	char *some = malloc(RESPONSE_ROOM);
	size_t length = 0, taken;
	ssize_t count = 0;

	assert_true(request && response && some);
	assert_int_equal(mask_table_create(&table, set), 0);
	request->begun = REQUEST_UNANSWERED;
	request->heads = heads;
	response->request = request;
	response->masker.table = table;
	for (size_t done = 0; count >= 0 && done < strlen(text); done += taken) {
		count = response_take(response, text + done,
				      (size_t)bytes_minimum(piece, strlen(text) - done), &taken,
				      some);
		if (count > 0)
			memcpy(out + length, some, (size_t)count);
		length += count > 0 ? (size_t)count : 0;
	}
	if (count < 0)
		assert_non_null(response->reason);
	length += response_flush(response, out + length);
	mask_table_destroy(table);
	free(some);
	free(set);
	free(response);
	free(request);
	return count < 0 ? -1 : (ssize_t)length;
}

/* @got has what is told without the lines around chunks; NULL: the text itself, masked. */
static void check_answer(const char *text, const char *got, size_t piece, uint64_t heads)
{
	char out[4096], wanted[4096], plain[4096];
	const char *body = got ? strstr(got, "\r\n\r\n") + 4 : NULL, *at;
	ssize_t length = answer(text, piece, heads, out);
	size_t made;

	assert_true(length >= 0);
	out[length] = '\0';
	assert_null(strstr(out, VALUE));
	if (!got) {
		snprintf(wanted, sizeof(wanted), "%s", text);
		memcpy(strstr(wanted, VALUE) ? strstr(wanted, VALUE) : wanted,
		       strstr(wanted, VALUE) ? PLACE : wanted,
		       strstr(wanted, VALUE) ? strlen(PLACE) : 0);
		assert_string_equal(out, wanted);
		return;
	}
	made = (size_t)(body - got);
	memcpy(plain, out, made);
	for (at = out + made; strncmp(at, "0\r\n", 3) != 0;) {
		char *end;
		size_t size = strtoul(at, &end, 16);

		memcpy(plain + made, end + 2, size);
		made += size;
		assert_memory_equal(end + 2 + size, "\r\n", 2);
		at = end + 2 + size + 2;
	}
	snprintf(plain + made, sizeof(plain) - made, "%s", at);
	assert_string_equal(plain, got);
}

#define OK_     "HTTP/1.1 200 OK\r\n"
#define CHUNKS_ OK_ "transfer-encoding:  gzip ,Chunked \r\n\r\n"

static void test_answers(void **state)
{
	static const struct {
		const char *text, *got;
		uint64_t heads;
	} cases[] = {
		{OK_ "Content-Length: 3\r\n\r\nabc" OK_ "\r\n" VALUE, NULL, 0},
		{OK_ "Content-Length: 9\n\n" OK_ "x: " VALUE "\r\n\r\nabc", NULL, 1},
		{CHUNKS_ "HTTP/1.0 204\r\n\r\nHTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n" OK_
			 "Content-Length: 0\r\n\r\nHTTP/1.1 103 x\r\n\r\n" OK_ "\r\nrest",
		 NULL, 1},
		{CHUNKS_
		 "3\r\nthe\r\n00B;a=\"b\"\r\n-secret-of-\r\n9 \r\nthis-test\r\n0\r\nx: y\r\n"
		 "\r\n" OK_ "Content-Length: 1\r\n\r\n.",
		 CHUNKS_ PLACE "0\r\nx: y\r\n\r\n" OK_ "Content-Length: 1\r\n\r\n.", 0},
		{CHUNKS_ "D\r\nthe-secret-of\r\n0\r\n\r\n", CHUNKS_ "PLACEHOLDER-o0\r\n\r\n", 0},
	};
	static const char *const broken[] = {
		"SSH-2.0-openssh\r\n",
		"HTTP/2 200\r\n",
		"HTTP/1.1 20x\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		OK_ "Content-Length: 3\r\nContent-Length: 4\r\n",
		OK_ "Content-Length: +3\r\n",
		OK_ "Transfer-Encoding: chunked, gzip\r\n",
		OK_ "Transfer-Encoding:\r\n chunked\r\n",
		CHUNKS_ "x\r\n",
		CHUNKS_ "\r\n",
		CHUNKS_ "5 5\r\n",
		CHUNKS_ "1\r\naa\r\n",
		CHUNKS_ "1000000000000000\r\n",
	};
	char out[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t piece = 1; piece < 100; piece += 9)
			check_answer(cases[i].text, cases[i].got, piece, cases[i].heads);
	}
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		assert_int_equal(answer(broken[i], 1, 0, out), -1);
		assert_int_equal(answer(broken[i], 1000, 0, out), -1);
	}
}

static void test_search(void **state)
{
	const struct stream_text texts[] = {{"needle", 6}, {"nee", 3}, {"x", 1}};
	static const char text[] = "nneeneedlx";

	(void)state;
	for (size_t cut = 0; cut < 6; cut++) {
		struct stream_search search = {0};
		const char *whole = "needle";

		assert_int_equal(stream_search_piece(&search, texts, 1, whole, cut), -1);
		assert_int_equal(stream_search_piece(&search, texts, 1, whole + cut, 6 - cut), 0);
	}
	for (size_t piece = 1; piece < 5; piece++) {
		struct stream_search search = {0};
		bool nee = false, x = false;

		for (size_t at = 0; at < strlen(text); at += piece) {
			int found = stream_search_piece(&search, texts, 3, text + at,
							bytes_minimum(piece, strlen(text) - at));

			assert_int_not_equal(found, 0);
			nee |= found == 1;
			x |= found == 2;
		}
		assert_true(nee && (x || piece == 4));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placeholders),
		cmocka_unit_test(test_set_is_handed_over),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_requests_that_are_refused),
		cmocka_unit_test(test_bounds_of_a_head),
		cmocka_unit_test(test_masking),
		cmocka_unit_test(test_masking_of_one_in_another),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_search),
	};

	return cmocka_run_group_tests_name("secret parts", tests, NULL, NULL);
}
