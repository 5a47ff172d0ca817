/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a server gives out: found and replaced wherever what it says is cut, and kept for the
 * hosts that they are for; and the bodies of requests for them. */
#include "vmm/secret/token_request.h"
#include "vmm/secret/token_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/masker.h"

#define VALUE "the-refresh-token-of-this-test"
#define PLACE "PLACEHOLDER-of-this-test-is-it"
#define TOKEN "new-token/of-this-test0"
#define PATH  "/oauth/token"

struct fixture {
	struct secret_set set;
	struct token_store store;
	struct token_scope scope;
	struct token_scan scan;
};

static struct secret make(const char *name, const char *value, const char *place)
{
	struct secret secret = {.length = strlen(value), .host_count = 2};

	snprintf(secret.name, sizeof(secret.name), "%s", name);
	snprintf(secret.value, sizeof(secret.value), "%s", value);
	snprintf(secret.placeholder, sizeof(secret.placeholder), "%s", place);
	snprintf(secret.endpoint_path, sizeof(secret.endpoint_path), "%s", PATH);
	secret.hosts[0] = (struct secret_host){"auth.test", 443};
	secret.hosts[1] = (struct secret_host){"api.test", 443};
	return secret;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	if (!f)
		return -1;
	f->set.count = 1;
	f->set.secrets[0] = make("KEY", VALUE, PLACE);
	f->store = (struct token_store){.set = &f->set, .given = 1};
	f->scope = (struct token_scope){&f->store, "auth.test", 443, {0}};
	f->scan.scope = &f->scope;
	return mask_table_create(&f->store.masks, &f->set);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	mask_table_destroy(f->store.masks);
	free(f);
	return 0;
}

/* Says @text in pieces. Whether it passes; what does is in @out. */
static bool say(struct fixture *f, const char *text, size_t piece, char *out)
{
	char room[TOKEN_SCAN_ROOM];
	size_t length = strlen(text), made = 0;
	ssize_t count = 0;

	for (size_t done = 0; done < length && count >= 0; done += piece) {
		count = token_scan_put(&f->scan, text + done,
				       (size_t)bytes_minimum(piece, length - done), room);
		if (count > 0)
			memcpy(out + made, room, (size_t)count);
		made += count > 0 ? (size_t)count : 0;
	}
	out[made] = '\0';
	if (token_scan_end(&f->scan) < 0)
		count = -1;
	if (count >= 0)
		assert_int_equal(made, length);
	return count >= 0;
}

static void test_replaced(void **state)
{
	static const char *const texts[] = {
		"{\"access_token\":\"" TOKEN "\"}",
		"{ \"id_token\" : \n\"" TOKEN "\" , \"x\": 1 }",
		"{\"refresh\\u005ftoken\":\"new-token\\/of-this-test0\"}",
		"{\"a\":\"\\\\\",\"access_token\":\"\\u006eew-token/of-this-test0\"}",
		"x\"access_token\":\"" TOKEN "\"\"access_token\":\"" TOKEN "\"",
		"{\"access_token\":null,\"x\":\"access_token\",\"idToken\":\"" TOKEN "\"}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (size_t piece = 1; piece < 40; piece += piece < 5 ? 1 : 7) {
			struct fixture *f = *state;
			char out[256];

			if (!say(f, texts[i], piece, out))
				fail_msg("%s: %s", texts[i], f->scan.reason);
			assert_null(strstr(out, "of-this-test0"));
			assert_int_equal(f->set.count, 2);
			assert_non_null(strstr(out, f->set.secrets[1].placeholder));
			assert_string_equal(f->set.secrets[1].value, TOKEN);
		}
	}
}

static void test_stopped(void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"access_token=" TOKEN, "another form than JSON"},
		{"<access_token>" TOKEN, "another form than JSON"},
		{"{'access_token' : '" TOKEN "'}", "another form than JSON"},
		{"\"{\\\"access_token\\\": \\\"" TOKEN "\\\"}\"", "another form than JSON"},
		{"\"access_token\\u0022:", "another form than JSON"},
		{"\"access_token\"=\"" TOKEN "\"", "another form than JSON"},
		{"{\"access_token\":[\"" TOKEN "\"]}", "is no string"},
		{"{\"access_token\":1}", "is no string"},
		{"{\"access_token\":\\\"", "is no string"},
		{"{\"access_token\":\"short-one\"}", "less than 16"},
		{"{\"access_token\":\"with blanks in the middle\"}", "no field of a request"},
		{"{\"access_token\":\"\\u00e4" TOKEN "\"}", "no field of a request"},
		{"{\"access_token\":\"\xc3\xa4" TOKEN "\"}", "no field of a request"},
		{"{\"access_token\":\"\\uzzzz" TOKEN "\"}", "no field of a request"},
		{"{\"access_token\":\"x" VALUE "\"}", "another secret in it"},
		{"{\"access_token\":\"x" PLACE "\"}", "another secret in it"},
		{"{\"access_token\":\"" TOKEN, "ends within a token"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t piece = 1; piece < 40; piece += 13) {
			char out[256];

			if (say(f, cases[i].text, piece, out))
				fail_msg("%s passes as %s", cases[i].text, out);
			assert_null(strstr(out, TOKEN));
			token_scan_end(&f->scan);
		}
		assert_int_equal(f->set.count, 1);
		say(f, cases[i].text, 1000, (char[256]){0});
		if (!strstr(f->scan.reason, cases[i].reason))
			fail_msg("%s: %s", cases[i].text, f->scan.reason);
	}
}

static void test_known_ones(void **state)
{
	struct fixture *f = *state;
	char out[256];

	assert_true(say(f, "{\"refresh_token\":\"" VALUE "\"}", 7, out));
	assert_string_equal(out, "{\"refresh_token\":\"" PLACE "\"}");
	assert_true(say(f, "{\"refresh_token\":\"" PLACE "\"}", 7, out));
	assert_string_equal(out, "{\"refresh_token\":\"" PLACE "\"}");
	assert_int_equal(f->set.count, 1);
	assert_int_equal(f->scope.replaced[0], 2);
}

static void test_bounds(void **state)
{
	struct fixture *f = *state;
	char text[128], out[256];

	for (unsigned int i = 0; i <= LIMIT_SECRET_TOKENS; i++) {
		snprintf(text, sizeof(text), "{\"access_token\":\"one-of-many-tokens-%04u\"}", i);
		assert_int_equal(say(f, text, 1000, out), i < LIMIT_SECRET_TOKENS);
	}
	assert_non_null(strstr(f->scan.reason, "no room for more"));
	assert_int_equal(f->scope.replaced[0], LIMIT_SECRET_TOKENS);
	assert_int_equal(f->set.count, 1 + LIMIT_SECRET_TOKENS);
	/* Those that are there stay so. */
	assert_true(say(f, "{\"access_token\":\"one-of-many-tokens-0007\"}", 1000, out));
	assert_non_null(strstr(out, f->set.secrets[8].placeholder));
}

/* Tokens begin alike, and so do placeholders: one is not taken for a token that is cut short. */
static void test_placeholders_stay(void **state)
{
	struct fixture *f = *state;
	struct masker *masker = calloc(1, sizeof(*masker));
	char text[128], out[256], masked[sizeof(masker->bytes)];

	assert_non_null(masker);
	masker->table = f->store.masks;
	for (unsigned int i = 0; i < LIMIT_SECRET_TOKENS; i++) {
		size_t length;

		snprintf(text, sizeof(text), "{\"access_token\":\"sk-ant-oat01-%c%016u\"}",
			 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[i], i);
		assert_true(say(f, text, 1000, out));
		length = masker_put(masker, out, strlen(out), masked);
		length += masker_flush(masker, masked + length);
		assert_int_equal(length, strlen(out));
		assert_memory_equal(masked, out, length);
	}
	assert_int_equal(masker->masked[0], 0);
	free(masker);
}

/* Of two secrets with their endpoints there: only for hosts of both. */
static void test_hosts(void **state)
{
	struct fixture *f = *state;
	const struct secret *token = &f->set.secrets[2];
	char out[256];

	f->set.secrets[1] =
		make("SECOND", "a-second-one-of-this-test", "PLACEHOLDER-of-the-second");
	f->set.secrets[1].hosts[1] = f->set.secrets[1].hosts[0];
	f->set.secrets[1].hosts[0] = (struct secret_host){"else.test", 443};
	f->set.secrets[1].endpoint_host = 1;
	f->set.secrets[0].in_query = true;
	f->set.count = f->store.given = 2;
	assert_true(token_store_watches(&f->store, "auth.test", 443));
	assert_false(token_store_watches(&f->store, "auth.test", 8443));
	assert_false(token_store_watches(&f->store, "api.test", 443));
	assert_true(say(f, "{\"access_token\":\"" TOKEN "\"}", 1000, out));
	assert_int_equal(f->set.count, 3);
	assert_true(secret_is_for(token, "auth.test", 443));
	assert_false(secret_is_for(token, "api.test", 443));
	assert_false(secret_is_for(token, "else.test", 443));
	assert_false(token->in_query);
	assert_string_equal(token->hosts[token->endpoint_host].name, "auth.test");
	assert_int_equal(secret_owner(&f->set, 2), 0);
}

#define HEAD(method, path, fields) \
	method " " path " HTTP/1.1\r\nHost: auth.test\r\n" fields "Content-Length: 5\r\n\r\n"
#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"
#define JSON "content-type:application/JSON ;charset=utf-8\r\n"

static void test_requests(void **state)
{
	static const struct {
		const char *head, *body, *wanted; /* NULL: it is none, or stays */
	} cases[] = {
		{HEAD("POST", PATH, FORM), "a=b&r=" PLACE, "a=b&r=" VALUE},
		{HEAD("POST", PATH, FORM), "r=" PLACE "&s=" PLACE "&t",
		 "r=" VALUE "&s=" VALUE "&t"},
		{HEAD("POST", PATH, JSON), "{\"r\":\"" PLACE "\"}", "{\"r\":\"" VALUE "\"}"},
		{HEAD("POST", PATH, FORM), "r=x" PLACE, "r=x" PLACE},
		{HEAD("POST", PATH, FORM), "r=" PLACE "x", "r=" PLACE "x"},
		{HEAD("POST", PATH, JSON), "{\"r\":\"\\\"" PLACE "\"}",
		 "{\"r\":\"\\\"" PLACE "\"}"},
		{HEAD("PUT", PATH, FORM), NULL, NULL},
		{HEAD("post", PATH, FORM), NULL, NULL},
		{HEAD("POST", PATH "/", FORM), NULL, NULL},
		{HEAD("POST", PATH "?", FORM), NULL, NULL},
		{HEAD("POST", PATH, ""), NULL, NULL},
		{HEAD("POST", PATH, FORM JSON), NULL, NULL},
		{HEAD("POST", PATH, FORM "Content-Encoding: gzip\r\n"), NULL, NULL},
		{HEAD("POST", PATH, "Content-Type: text/plain\r\n"), NULL, NULL},
	};
	struct fixture *f = *state;
	struct http_target target = {"auth.test", 443, &f->set};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_request request = {0};
		char body[256] = "", reason[HTTP_REASON_BYTES];

		request.token = token_request_read(cases[i].head, strlen(cases[i].head), &target);
		assert_int_equal(request.token.kind != HTTP_TOKEN_NONE, cases[i].body != NULL);
		if (!cases[i].body)
			continue;
		strcpy(body, cases[i].body);
		assert_int_equal(
			token_request_rewrite(body, strlen(body), &target, &request, reason), 0);
		assert_string_equal(body, cases[i].wanted);
		assert_int_equal(request.uses[0] > 0, strstr(body, VALUE) != NULL);
	}
	target.host = "api.test";
	assert_int_equal(token_request_read(cases[0].head, strlen(cases[0].head), &target).kind,
			 HTTP_TOKEN_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_replaced), TEST(test_stopped), TEST(test_known_ones),
		TEST(test_bounds),   TEST(test_hosts),   TEST(test_placeholders_stay),
		TEST(test_requests),
	};

	return cmocka_run_group_tests_name("secret tokens", tests, NULL, NULL);
}
