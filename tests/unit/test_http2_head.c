/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and trailers of HTTP/2: what of them passes, as what. tests/relay/secret_http2.py has the
 * rest of HTTP/2, with real peers. */
#include "vmm/secret/http2_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"

#define VALUE "the-secret-of-this-test"
#define PLACE "PLACEHOLDER-of-the-test"
#define OTHER "PLACEHOLDER-of-another-"

struct pair {
	const char *name, *value;
};

struct fixture {
	struct http2_head head;
	struct secret_set secrets;
	struct masker masker;
	struct http_request request;
	char reason[HTTP_REASON_BYTES];
};

static void fill_in(struct secret *secret, const char *name, const char *value, const char *place,
		    const char *host)
{
	secret->length = strlen(value);
	secret->host_count = 1;
	snprintf(secret->name, sizeof(secret->name), "%s", name);
	snprintf(secret->value, sizeof(secret->value), "%s", value);
	snprintf(secret->placeholder, sizeof(secret->placeholder), "%s", place);
	snprintf(secret->hosts[0].name, sizeof(secret->hosts[0].name), "%s", host);
	secret->hosts[0].port = 443;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->secrets.count = 2;
	fill_in(&fixture->secrets.secrets[0], "KEY", VALUE, PLACE, "api.test");
	fill_in(&fixture->secrets.secrets[1], "OTHER", "the-secret-of-elsewhere", OTHER,
		"else.test");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void add(struct fixture *fixture, const char *name, const char *value)
{
	http2_head_add(&fixture->head, name, strlen(name), value, strlen(value), false);
}

static const struct pair usual[] = {
	{":method", "GET"}, {":scheme", "https"}, {":authority", "api.test"}, {":path", "/"}};

static void begin_usual(struct fixture *fixture, const char *method)
{
	http2_head_begin(&fixture->head);
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		add(fixture, usual[i].name, i ? usual[i].value : method);
}

static int rewrite(struct fixture *fixture, bool ends)
{
	const struct http_target target = {"api.test", 443, &fixture->secrets};

	fixture->reason[0] = '\0';
	return http2_head_rewrite(&fixture->head, ends, &target, &fixture->request,
				  fixture->reason);
}

/* What is sent is what is said here, in that order. */
static void expect_wire(const struct http2_head *head, const struct pair *pairs, size_t count)
{
	assert_int_equal(head->wire_count, count);
	for (size_t i = 0; i < count; i++) {
		const nghttp2_nv *field = &head->wire[i];

		assert_int_equal(field->namelen, strlen(pairs[i].name));
		assert_memory_equal(field->name, pairs[i].name, field->namelen);
		assert_int_equal(field->valuelen, strlen(pairs[i].value));
		assert_memory_equal(field->value, pairs[i].value, field->valuelen);
	}
}

static void expect_refused(struct fixture *fixture, bool ends, const char *part)
{
	assert_int_equal(rewrite(fixture, ends), -1);
	if (!strstr(fixture->reason, part))
		fail_msg("'%s' is not in '%s'", part, fixture->reason);
}

static void test_secrets_are_put_in(void **state)
{
	static const struct pair expected[] = {
		{":method", "GET"},
		{":scheme", "https"},
		{":authority", "api.test"},
		{":path", "/"},
		{"authorization", "Bearer " VALUE},
		{"cookie", "a=b"},
		{"cookie", "k=" VALUE "; c=d"},
		{"x-empty", ""},
		{"accept-encoding", ""},
		{"grpc-accept-encoding", "identity"},
		{"te", "trailers"},
	};
	struct fixture *fixture = *state;

	begin_usual(fixture, "GET");
	add(fixture, "authorization", "Bearer " PLACE);
	add(fixture, "cookie", "a=b");
	add(fixture, "cookie", "k=" PLACE "; c=d");
	add(fixture, "host", "API.test");
	add(fixture, "x-empty", "");
	add(fixture, "accept-encoding", "gzip, br");
	add(fixture, "grpc-accept-encoding", "identity, gzip");
	add(fixture, "te", "trailers");
	assert_int_equal(rewrite(fixture, true), 0);
	/* A Host that says the same again is left out. */
	expect_wire(&fixture->head, expected, ARRAY_SIZE(expected));
	assert_int_equal(fixture->request.uses[0], 2);
	assert_false(fixture->request.chunked || fixture->request.overlooked);
	/* Packers of heads keep what they may; a secret they may not. */
	assert_int_equal(fixture->head.wire[4].flags, NGHTTP2_NV_FLAG_NO_INDEX);
	assert_int_equal(fixture->head.wire[5].flags, NGHTTP2_NV_FLAG_NONE);
	/* Nothing of it stays. */
	http2_head_begin(&fixture->head);
	assert_null(memmem(&fixture->head, sizeof(fixture->head), VALUE, strlen(VALUE)));
}

static void test_order_and_flags(void **state)
{
	static const struct pair expected[] = {
		{":method", "POST"}, {":scheme", "https"}, {":authority", "api.test:443"},
		{":path", "/a?b=c"}, {"x", "y"},           {"content-length", "5"}};
	struct fixture *fixture = *state;

	http2_head_begin(&fixture->head);
	add(fixture, ":path", "/a?b=c");
	add(fixture, ":authority", "api.test:443");
	add(fixture, ":scheme", "https");
	add(fixture, ":method", "POST");
	http2_head_add(&fixture->head, "x", 1, "y", 1, true);
	add(fixture, "content-length", "5");
	assert_int_equal(rewrite(fixture, false), 0);
	expect_wire(&fixture->head, expected, ARRAY_SIZE(expected));
	assert_int_equal(fixture->head.wire[4].flags, NGHTTP2_NV_FLAG_NO_INDEX);
	assert_int_equal(fixture->request.body_length, 5);
	assert_false(fixture->request.chunked);
	/* A body whose length is not said. */
	begin_usual(fixture, "GET");
	assert_int_equal(rewrite(fixture, false), 0);
	assert_true(fixture->request.chunked && fixture->request.overlooked);
	assert_int_equal(fixture->head.wire_count, 4);
}

static void test_fields_that_are_refused(void **state)
{
	static const struct {
		struct pair field;
		const char *part;
	} cases[] = {
		{{"x", PLACE "\r\ny: z"}, "control character"},
		{{"x", "a\rb"}, "control character"},
		{{"x", "a\nb"}, "control character"},
		{{"x", "\x7f"}, "control character"},
		{{"x: y", "z"}, "whose name none has"},
		{{"x\r\ny", "z"}, "whose name none has"},
		{{"", "z"}, "whose name none has"},
		{{" x", "z"}, "whose name none has"},
		{{"X", "z"}, "whose name none has"},
		{{"host", "evil.test"}, "more than one Host"},
		{{"transfer-encoding", "chunked"}, "HTTP/2 has not"},
		{{"connection", "close"}, "HTTP/2 has not"},
		{{"upgrade", "websocket"}, "HTTP/2 has not"},
		{{"keep-alive", "1"}, "HTTP/2 has not"},
		{{"proxy-connection", "close"}, "HTTP/2 has not"},
		{{"http2-settings", "x"}, "HTTP/2 has not"},
		{{"transfer_encoding", "chunked"}, "some take for another"},
		{{"content_length", "5"}, "some take for another"},
		{{"content-length", "+5"}, "no number"},
		{{":path", "/again"}, "than there are"},
		{{PLACE, "x"}, "whose name none has"},
		{{"x", OTHER}, "goes to another host"},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin_usual(fixture, "POST");
		add(fixture, cases[i].field.name, cases[i].field.value);
		expect_refused(fixture, true, cases[i].part);
		assert_int_equal(fixture->head.wire_count, 0);
	}
	begin_usual(fixture, "POST");
	http2_head_add(&fixture->head, "x", 1, "a\0b", 3, false);
	expect_refused(fixture, true, "control character");
	begin_usual(fixture, "POST");
	add(fixture, "content-length", "5");
	add(fixture, "content-length", "5");
	expect_refused(fixture, false, "more than one Content-Length");
}

static const struct {
	struct pair fields[5];
	const char *part;
} pseudo_cases[] = {
	{{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}}, "no :authority"},
	{{{":scheme", "https"}, {":authority", "api.test"}, {":path", "/"}}, "no method"},
	{{{":method", "GET"}, {":authority", "api.test"}, {":path", "/"}}, "by https"},
	{{{":method", "GET"}, {":scheme", "https"}, {":authority", "api.test"}}, "by https"},
	{{{":method", "GET"}, {":scheme", "http"}, {":authority", "api.test"}, {":path", "/"}},
	 "by https"},
	{{{":method", "GET"}, {":scheme", "https"}, {":authority", "evil"}, {":path", "/"}},
	 "another host"},
	{{{":method", "GET"}, {":scheme", "https"}, {":authority", "api.test:80"}, {":path", "/"}},
	 "another host"},
	{{{":method", "GET"}, {":scheme", "https"}, {":authority", "u@api.test"}, {":path", "/"}},
	 "another host"},
	{{{":method", "GET"}, {":scheme", "https"}, {":authority", "api.test"}, {":path", "x"}},
	 "for a path"},
	{{{":method", "GET"},
	  {":scheme", "https"},
	  {":authority", "api.test"},
	  {":path", "http://evil.test/"}},
	 "for a path"},
	{{{":method", "GET"},
	  {":scheme", "https"},
	  {":authority", "api.test"},
	  {":path", "/ HTTP/1.1"}},
	 "characters that none has"},
	{{{":method", "GET /x"}, {":scheme", "https"}, {":authority", "api.test"}, {":path", "/"}},
	 "no method"},
	{{{":method", "CONNECT"}, {":authority", "api.test"}}, "tunnel"},
	{{{":method", "CONNECT"},
	  {":protocol", "websocket"},
	  {":authority", "api.test"},
	  {":path", "/"}},
	 "tunnel"},
	{{{":method", "GET"}, {":method", "GET"}, {":authority", "api.test"}, {":path", "/"}},
	 "twice"},
	{{{":method", "GET"},
	  {":scheme", "https"},
	  {":authority", "api.test"},
	  {":path", "/?key=" PLACE}},
	 "in its query"},
	{{{":method", "GET"},
	  {":scheme", "https"},
	  {":authority", "api.test"},
	  {":path", "/" PLACE}},
	 "first line"},
	{{{":method", "GET"}, {":status", "200"}}, "none has"},
	{{{":method", "GET"}, {"x", "y"}, {":path", "/"}}, "behind others"},
};

static void test_pseudo_fields_that_are_refused(void **state)
{
	struct fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_SIZE(pseudo_cases); i++) {
		http2_head_begin(&fixture->head);
		for (size_t j = 0;
		     j < ARRAY_SIZE(pseudo_cases[i].fields) && pseudo_cases[i].fields[j].name; j++)
			add(fixture, pseudo_cases[i].fields[j].name,
			    pseudo_cases[i].fields[j].value);
		expect_refused(fixture, true, pseudo_cases[i].part);
	}
}

static void test_too_much(void **state)
{
	static char much[LIMIT_SECRET_HEAD_BYTES];
	struct fixture *fixture = *state;

	memset(much, 'x', sizeof(much) - 1);
	begin_usual(fixture, "GET");
	add(fixture, "x", much);
	expect_refused(fixture, true, "more than 64 KiB");
	begin_usual(fixture, "GET");
	for (unsigned int i = 0; i <= LIMIT_SECRET_HEAD_FIELDS; i++)
		add(fixture, "x", "y");
	expect_refused(fixture, true, "more than 256 fields");
	/* As much as there may be. */
	begin_usual(fixture, "GET");
	for (unsigned int i = 0; i < LIMIT_SECRET_HEAD_FIELDS - 2; i++)
		add(fixture, "x", "y");
	assert_int_equal(rewrite(fixture, true), 0);
	assert_int_equal(fixture->head.wire_count, LIMIT_SECRET_HEAD_FIELDS + 2);
}

static void test_trailers(void **state)
{
	static const struct pair kept[] = {{"grpc-status", "0"}, {"x-sum", "a: b"}};
	static const char *const refused[] = {"content-length", "host", "transfer-encoding",
					      ":path", "connection"};
	struct fixture *fixture = *state;
	char bytes[100];
	size_t length;

	http2_head_begin(&fixture->head);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		add(fixture, kept[i].name, kept[i].value);
	assert_int_equal(http2_head_check_trailer(&fixture->head, fixture->reason), 0);
	expect_wire(&fixture->head, kept, ARRAY_SIZE(kept));
	length = fixture->head.length;
	memcpy(bytes, fixture->head.bytes, length);
	http2_head_restore(&fixture->head, bytes, length);
	expect_wire(&fixture->head, kept, ARRAY_SIZE(kept));
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		http2_head_begin(&fixture->head);
		add(fixture, refused[i], "1");
		assert_int_equal(http2_head_check_trailer(&fixture->head, fixture->reason), -1);
	}
}

static void test_answers_are_masked(void **state)
{
	static const struct pair expected[] = {{":status", "200"},
					       {"x-key", "<" PLACE ">"},
					       {"set-cookie", "k=" PLACE},
					       {"x-half", "PLACEHOLDER-of-"},
					       {"x", "y"}};
	static const char *const statuses[] = {"101", "99", "2000", "20x", ""};
	struct fixture *fixture = *state;
	struct mask_table *table;

	assert_int_equal(mask_table_create(&table, &fixture->secrets), 0);
	fixture->masker.table = table;
	http2_head_begin(&fixture->head);
	add(fixture, ":status", "200");
	add(fixture, "x-key", "<" VALUE ">");
	add(fixture, "set-cookie", "k=" VALUE);
	add(fixture, "x-half", "the-secret-of-t");
	add(fixture, "x", "y");
	assert_int_equal(http2_head_mask(&fixture->head, &fixture->masker), 200);
	expect_wire(&fixture->head, expected, ARRAY_SIZE(expected));
	assert_int_equal(fixture->masker.length, 0);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		http2_head_begin(&fixture->head);
		add(fixture, ":status", statuses[i]);
		assert_int_equal(http2_head_mask(&fixture->head, &fixture->masker), -1);
		assert_non_null(fixture->head.objection);
	}
	mask_table_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_secrets_are_put_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_order_and_flags, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fields_that_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pseudo_fields_that_are_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_too_much, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_trailers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_answers_are_masked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
