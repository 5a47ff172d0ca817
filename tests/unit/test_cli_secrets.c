/* SPDX-License-Identifier: Apache-2.0 */
/* --secret and its kin: what is taken, what is refused with which words, where the values come from
 * and that they are forgotten. */
#include "vmm/cli/run_secrets.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"

#define VALUE "ghp_TheValueOfThisTest0123456789abcdef"

struct fixture {
	struct run_secrets secrets;
	struct relay_settings settings;
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? setenv("KEY", VALUE, 1) : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	run_secrets_free(&f->secrets);
	relay_settings_free(&f->settings);
	free(f);
	return 0;
}

static int apply(struct fixture *f, int option, const char *value)
{
	return run_secrets_apply(&f->secrets, &f->settings.policy, option, value);
}

static int prepare(struct fixture *f)
{
	int error = run_secrets_find(&f->secrets, &(struct run_variables){0});

	return error ? error : run_secrets_prepare(&f->secrets, &f->settings);
}

static void test_variable(void **state)
{
	struct fixture *f = *state;
	const struct secret *secret;

	assert_int_equal(apply(f, SECRET_OPTION, "KEY@API.test,b.test:8443"), 0);
	assert_int_equal(prepare(f), 0);
	secret = &f->secrets.set->secrets[0];
	assert_string_equal(secret->value, VALUE);
	assert_int_equal(strlen(secret->placeholder), strlen(VALUE));
	assert_memory_equal(secret->placeholder, "ghp_", 4);
	assert_true(secret_is_for(secret, "api.test", 443));
	assert_true(secret_is_for(secret, "b.test", 8443));
	/* The hosts are allowed, at these ports, and their TLS is not passed on. */
	assert_int_equal(route_policy_decide(&f->settings.policy, "api.test", 8, 443).verdict,
			 ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->settings.policy, "api.test", 8, 80).verdict,
			 ROUTE_OTHER_PORT);
	assert_true(relay_settings_terminate(&f->settings, "b.test", 8443));
	assert_false(relay_settings_terminate(&f->settings, "b.test", 443));
	assert_string_equal(f->settings.placeholders[0].text, secret->placeholder);
	run_secrets_forget(&f->secrets);
	assert_string_equal(secret->value, "");
	assert_string_equal(getenv("KEY"), "");
}

/* What the relay is told goes through its file whole, and has no value in it. */
static void test_settings(void **state)
{
	struct fixture *f = *state;
	struct relay_settings *told = calloc(1, sizeof(*told));
	char text[65536] = "";
	int fd;

	assert_non_null(told);
	assert_int_equal(apply(f, SECRET_OPTION, "KEY@api.test,b.test:8443"), 0);
	assert_int_equal(prepare(f), 0);
	fd = relay_settings_write(&f->settings);
	assert_true(fd >= 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_null(strstr(text, VALUE));
	assert_int_equal(relay_settings_read(told, fd), 0);
	close(fd);
	assert_int_equal(told->terminated_count, 2);
	assert_true(relay_settings_terminate(told, "b.test", 8443));
	assert_string_equal(told->placeholders[0].text, f->settings.placeholders[0].text);
	assert_string_equal(told->placeholders[0].name, "KEY");
	snprintf(text, sizeof(text), "a.%s.test", told->placeholders[0].text);
	assert_string_equal(relay_settings_find_placeholder(told, text, strlen(text)), "KEY");
	assert_null(relay_settings_find_placeholder(told, "a.test", 6));
	relay_settings_free(told);
	free(told);
}

static void test_file_and_command(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/mvagent-secret-XXXXXX", option[256];
	int fd = mkstemp(path);

	assert_int_equal(write(fd, VALUE "\r\n", strlen(VALUE) + 2), strlen(VALUE) + 2);
	close(fd);
	snprintf(option, sizeof(option), "A=%s@a.test", path);
	assert_int_equal(apply(f, SECRET_FILE_OPTION, option), 0);
	assert_int_equal(apply(f, SECRET_COMMAND_OPTION, "B=echo user@somewhere-else@a.test"), 0);
	assert_int_equal(prepare(f), 0);
	unlink(path);
	assert_string_equal(f->secrets.set->secrets[0].value, VALUE);
	assert_string_equal(f->secrets.set->secrets[1].value, "user@somewhere-else");
}

/* Also before the secret that it is about. */
static void test_query(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(apply(f, SECRET_QUERY_OPTION, "KEY"), 0);
	assert_int_equal(apply(f, SECRET_OPTION, "KEY@a.test"), 0);
	assert_int_equal(apply(f, SECRET_COMMAND_OPTION, "B=echo another-one@a.test"), 0);
	assert_int_equal(prepare(f), 0);
	assert_true(f->secrets.set->secrets[0].in_query);
	assert_false(f->secrets.set->secrets[1].in_query);
}

static void test_endpoint(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(apply(f, SECRET_OAUTH_OPTION, "KEY@B.test:8443/oauth/token"), 0);
	assert_int_equal(apply(f, SECRET_OPTION, "KEY@a.test,b.test:8443"), 0);
	assert_int_equal(prepare(f), 0);
	assert_int_equal(f->secrets.set->secrets[0].endpoint_host, 1);
	assert_string_equal(f->secrets.set->secrets[0].endpoint_path, "/oauth/token");
	assert_int_equal(apply(f, SECRET_OAUTH_OPTION, "KEY@a.test/token"), 0);
	assert_int_equal(prepare(f), -EINVAL);
	assert_non_null(strstr(log_last_error(), "given before"));
}

/* What is wrong with where tokens are given out. */
static void test_endpoint_refused(void **state)
{
	static const struct {
		const char *value, *words;
	} cases[] = {
		{"KEY", "give NAME@HOST/PATH"},
		{"OTHER@a.test/token", "give NAME@HOST/PATH"},
		{"KEY@a.test", "give NAME@HOST/PATH"},
		{"KEY@a.test/token?x", "give NAME@HOST/PATH"},
		{"KEY@a.test/tok en", "give NAME@HOST/PATH"},
		{"KEY@b.test/token", "none of the hosts"},
		{"KEY@a.test:80/token", "none of the hosts"},
		{"KEY@a.test:/token", "none of the hosts"},
		{"KEY@a.test:000000443/token", "none of the hosts"},
		{"KEY@/token", "none of the hosts"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = calloc(1, sizeof(*f));
		void *held = f;

		assert_non_null(f);
		setenv("KEY", VALUE, 1);
		assert_int_equal(apply(f, SECRET_OPTION, "KEY@a.test"), 0);
		assert_int_equal(apply(f, SECRET_OAUTH_OPTION, cases[i].value), 0);
		assert_int_equal(prepare(f), -EINVAL);
		if (!strstr(log_last_error(), cases[i].words))
			fail_msg("%s: '%s'", cases[i].value, log_last_error());
		teardown(&held);
	}
}

static void test_refused(void **state)
{
	static const struct {
		int option;
		const char *value, *words;
	} cases[] = {
		{SECRET_OPTION, "KEY", "give NAME"},
		{SECRET_OPTION, "KEY@", "give NAME"},
		{SECRET_OPTION, "@a.test", "give NAME"},
		{SECRET_OPTION, "1KEY@a.test", "give NAME"},
		{SECRET_OPTION, "KEY=" VALUE "@a.test", "give NAME"},
		{SECRET_FILE_OPTION, "KEY@a.test", "give NAME=PATH"},
		{SECRET_COMMAND_OPTION, "KEY=@a.test", "give 'NAME=COMMAND'"},
		{SECRET_OPTION, "KEY@*.test", "not the full name"},
		{SECRET_OPTION, "KEY@10.0.0.1", "not the full name"},
		{SECRET_OPTION, "KEY@a.test,", "not the full name"},
		{SECRET_OPTION, "KEY@a.test:0", "not the full name"},
		{SECRET_OPTION, "KEY@a.test:0000443x", "not the full name"},
		{SECRET_OPTION, "KEY@https://a.test", "not the full name"},
		{SECRET_OPTION, "NOT_SET@a.test", "not set in your environment"},
		{SECRET_OPTION, "SHORT@a.test", "too short"},
		{SECRET_OPTION, "LINES@a.test", "one line"},
		{SECRET_QUERY_OPTION, "NAMED_BY_NOTHING", "followed by the NAME of a secret"},
		{SECRET_QUERY_OPTION, VALUE, "followed by the NAME of a secret"},
		{SECRET_FILE_OPTION, "A=/dev/null@a.test", "too short"},
		{SECRET_FILE_OPTION, "A=/nowhere/at/all@a.test", "cannot read it"},
		{SECRET_FILE_OPTION, "A=/dev/zero@a.test", "its value is too long"},
		{SECRET_COMMAND_OPTION, "A=exit 3@a.test", "failed with status 3"},
		{SECRET_COMMAND_OPTION, "A=printf " VALUE "; kill -9 $$@a.test",
		 "ended by signal 9"},
		{SECRET_COMMAND_OPTION, "A=cat /dev/zero@a.test", "its value is too long"},
	};

	(void)state;
	setenv("SHORT", "short", 1);
	setenv("LINES", "one-line\nand-another", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = calloc(1, sizeof(*f));
		void *held = f;
		int error;

		assert_non_null(f);
		error = apply(f, cases[i].option, cases[i].value);
		error = error ? error : prepare(f);
		assert_true(error < 0);
		if (!strstr(log_last_error(), cases[i].words))
			fail_msg("%s: '%s'", cases[i].value, log_last_error());
		assert_null(strstr(log_last_error(), VALUE));
		teardown(&held);
	}
}

static void test_twice(void **state)
{
	struct fixture *f = *state;
	static char given[] = "KEY=x", passed[] = "KEY";
	struct run_variable variables[] = {{given, NULL}, {passed, NULL}, {given, "f.env"}};

	assert_int_equal(apply(f, SECRET_OPTION, "KEY@a.test"), 0);
	assert_int_equal(apply(f, SECRET_OPTION, "KEY@b.test"), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		assert_int_equal(run_secrets_find(&f->secrets,
						  &(struct run_variables){.count = 1,
									  .list = &variables[i]}),
				 -EINVAL);
		assert_non_null(strstr(log_last_error(),
				       i < 2 ? "give one of them" : "--env-file f.env has KEY"));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_variable), TEST(test_settings), TEST(test_file_and_command),
		TEST(test_query),    TEST(test_endpoint), TEST(test_endpoint_refused),
		TEST(test_refused),  TEST(test_twice),
	};

	return cmocka_run_group_tests_name("cli secrets", tests, NULL, NULL);
}
