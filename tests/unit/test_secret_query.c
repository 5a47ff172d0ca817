/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in the query of a request: where they are put, how they are written, and where not. */
#include "vmm/secret/http_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"

#define VALUE   "s3cr3t+of/this=test&"
#define ENCODED "s3cr3t%2Bof%2Fthis%3Dtest%26"
#define PLACE   "PLACE:HOLDER.of-test"
#define OTHER   "PLACEHOLDER-of-elsewhere"
#define END     " HTTP/1.1\r\nHost: api.test\r\n\r\n"

static struct secret make(const char *name, const char *value, const char *place, const char *host)
{
	struct secret secret = {.length = strlen(value), .host_count = 1, .in_query = true};

	snprintf(secret.name, sizeof(secret.name), "%s", name);
	snprintf(secret.value, sizeof(secret.value), "%s", value);
	snprintf(secret.placeholder, sizeof(secret.placeholder), "%s", place);
	snprintf(secret.hosts[0].name, sizeof(secret.hosts[0].name), "%s", host);
	secret.hosts[0].port = 443;
	return secret;
}

struct fixture {
	struct secret_set set;
	struct http_request request;
	char head[LIMIT_SECRET_HEAD_BYTES + 1];
	char reason[HTTP_REASON_BYTES];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	if (!f)
		return -1;
	f->set.count = 2;
	f->set.secrets[0] = make("KEY", VALUE, PLACE, "api.test");
	f->set.secrets[1] = make("OTHER", "the-secret-of-elsewhere!", OTHER, "else.test");
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* Whether it may be sent, with @uses of the first secret. */
static bool rewrite(struct fixture *f, const char *text, size_t length)
{
	const struct http_target target = {"api.test", 443, &f->set};
	int error;

	memcpy(f->head, text, length);
	error = http_head_rewrite(f->head, &length, &target, &f->request, f->reason);
	assert_true(length <= LIMIT_SECRET_HEAD_BYTES);
	f->head[length] = '\0';
	return error == 0;
}

static void test_put(void **state)
{
	static const struct {
		const char *text, *wanted;
		unsigned int uses;
	} cases[] = {
		{"GET /a?key=" PLACE END, "GET /a?key=" ENCODED END, 1},
		{"GET /?" PLACE END, "GET /?" ENCODED END, 1},
		{"POST /?a=" PLACE "&b=" PLACE "&c" END, "POST /?a=" ENCODED "&b=" ENCODED "&c" END,
		 2},
		/* As careful programs write it. */
		{"GET /?a=PLACE%3AHOLDER.of-test" END, "GET /?a=" ENCODED END, 1},
		{"GET /?a=PLACE%3aHOLDER.of-test" END, "GET /?a=" ENCODED END, 1},
		{"GET /?a=?" PLACE "#x" END, "GET /?a=?" ENCODED "#x" END, 1},
		{"GET /?a=b" END, "GET /?a=b" END, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = *state;

		if (!rewrite(f, cases[i].text, strlen(cases[i].text)))
			fail_msg("%s: %s", cases[i].text, f->reason);
		assert_string_equal(f->head, cases[i].wanted);
		assert_int_equal(f->request.uses[0], cases[i].uses);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"GET /" PLACE "?a" END, "in its first line"},
		{"GET /a#?" PLACE END, "in its first line"},
		{"GET /a?b#" PLACE END, "in its first line"},
		{"?" PLACE " / HTTP/1.1\r\nHost: api.test\r\n\r\n", "none of HTTP"},
		{"GET /?a=" OTHER END, "placeholder of OTHER and goes to another host"},
		{"GET /?a=" PLACE "x y" END, "characters that none has"},
		{"GET /?a=" PLACE " HTTP/1.1\r\nHost: evil.test\r\n\r\n", "asks for another host"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_false(rewrite(f, cases[i].text, strlen(cases[i].text)));
		if (!strstr(f->reason, cases[i].reason))
			fail_msg("%s: %s", cases[i].text, f->reason);
	}
	f->set.secrets[0].in_query = false;
	assert_false(rewrite(f, cases[0].text, strlen(cases[0].text)));
	assert_false(rewrite(f, "GET /?" PLACE END, strlen("GET /?" PLACE END)));
	assert_non_null(strstr(f->reason, "--secret-query KEY would put the secret there"));
}

/* It gets longer, and no longer than there is room. */
static void test_bound(void **state)
{
	static const char begin[] = "GET /?k=" PLACE "&", end[] = END;
	struct fixture *f = *state;
	char *text = malloc(LIMIT_SECRET_HEAD_BYTES);

	assert_non_null(text);
	for (size_t grown = strlen(ENCODED) - strlen(PLACE), more = 0; more < 2; more++) {
		const size_t length = LIMIT_SECRET_HEAD_BYTES - grown + more;

		memset(text, 'x', length);
		memcpy(text, begin, strlen(begin));
		memcpy(text + length - strlen(end), end, strlen(end));
		assert_int_equal(rewrite(f, text, length), more == 0);
	}
	assert_non_null(strstr(f->reason, "more than 64 KiB"));
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_put), TEST(test_refused), TEST(test_bound)};

	return cmocka_run_group_tests_name("secret query", tests, NULL, NULL);
}
