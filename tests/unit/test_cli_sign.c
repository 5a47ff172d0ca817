/* SPDX-License-Identifier: Apache-2.0 */
/* --ssh-agent: its words, the keys of hosts in known_hosts, and what the guest is told of them. */
#include "vmm/cli/run_sign.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/cli_capture.h"
#include "vmm/base/bytes.h"

/* Public keys made for this test; nobody has the private halves any more. */
#define ED25519 "AAAAC3NzaC1lZDI1NTE5AAAAIHhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhY"
#define ANOTHER "AAAAC3NzaC1lZDI1NTE5AAAAIHlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZ"

struct fixture {
	struct run_sign sign;
	struct route_policy policy;
	struct capture capture;
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	run_sign_free(&f->sign);
	route_policy_free(&f->policy);
	free(f);
	return 0;
}

static int add(struct fixture *f, const char *value)
{
	int error;

	capture_begin(&f->capture);
	error = run_sign_add(&f->sign, &f->policy, value);
	capture_end(&f->capture);
	return error;
}

static void test_words(void **state)
{
	static const char *const bad[] = {"",
					  "git.test",
					  "@git.test",
					  "ada@",
					  "ada@*.test",
					  "ada@1.2.3.4",
					  "ada@git.test:0",
					  "ada@git.test:x",
					  "a\tb@git.test"};
	struct fixture *f = *state;
	const struct sign_rule *rules;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(add(f, bad[i]) < 0);
		capture_expect_sentence(&f->capture, "give KEY@HOST");
	}
	assert_int_equal(add(f, "ada@laptop@Git.Test"), 0);
	assert_int_equal(add(f, "SHA256:abc@other.test:2222"), 0);
	rules = f->sign.policy->rules;
	assert_int_equal(f->sign.policy->count, 2);
	assert_string_equal(rules[0].pattern, "ada@laptop");
	assert_string_equal(rules[0].host, "git.test");
	assert_int_equal(rules[0].port, 22);
	assert_string_equal(rules[1].pattern, "SHA256:abc");
	assert_int_equal(rules[1].port, 2222);
	/* The host is allowed by that, at that port. */
	assert_int_equal(route_policy_decide(&f->policy, "git.test", 8, 22).verdict, ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->policy, "git.test", 8, 443).verdict,
			 ROUTE_OTHER_PORT);
	for (uint32_t i = 2; i < LIMIT_SIGN_RULES; i++)
		assert_int_equal(add(f, "*@git.test"), 0);
	assert_true(add(f, "*@git.test") < 0);
}

static uint32_t read_keys(struct sign_rule *rule, const char *text)
{
	char *lines = strdup(text);
	uint32_t count;

	*rule = (struct sign_rule){0};
	count = run_sign_read_keys(lines, rule);
	free(lines);
	return count;
}

static void test_keys_of_hosts(void **state)
{
	struct sign_rule *rule = calloc(1, sizeof(*rule));
	char many[(LIMIT_SIGN_HOST_KEYS + 4) * 100] = "";

	(void)state;
	assert_int_equal(read_keys(rule, "# Host git.test found: line 3\n"
					 "git.test ssh-ed25519 " ED25519 " a comment\n"
					 "|1|aGFzaGVk|aGFzaGVk ssh-ed25519 " ANOTHER "\n"),
			 2);
	assert_int_equal(rule->host_keys[0].length, 51);
	assert_memory_equal(rule->host_keys[0].bytes, "\0\0\0\x0bssh-ed25519", 15);
	/* Revoked ones, before or after; certificates' authorities; what is no key. */
	assert_int_equal(read_keys(rule, "git.test ssh-ed25519 " ED25519 "\n"
					 "@revoked * ssh-ed25519 " ED25519 "\n"),
			 0);
	assert_int_equal(read_keys(rule, "@revoked * ssh-ed25519 " ED25519 "\n"
					 "git.test ssh-ed25519 " ANOTHER "\n"
					 "git.test ssh-ed25519 " ED25519 "\n"),
			 1);
	assert_int_equal(read_keys(rule, "@cert-authority *.test ssh-ed25519 " ED25519 "\n"), 0);
	assert_int_equal(read_keys(rule,
				   "git.test ssh-rsa " ED25519 "\n"
				   "git.test ssh-ed25519\ngit.test\n\ngit.test ssh-ed25519 !!!!\n"),
			 0);
	for (unsigned int i = 0; i < LIMIT_SIGN_HOST_KEYS + 2; i++)
		strcat(many, "git.test ssh-ed25519 " ED25519 "\n");
	assert_int_equal(read_keys(rule, many), LIMIT_SIGN_HOST_KEYS);
	free(rule);
}

/* By ssh-keygen, which knows hashed names and ports. */
static void test_finds_them(void **state)
{
	char path[] = "/tmp/mvagent-known-XXXXXX";
	struct fixture *f = *state;
	int fd = mkstemp(path), error;

	if (access("/usr/bin/ssh-keygen", X_OK))
		skip();
	assert_true(fd >= 0);
	dprintf(fd, "git.test ssh-ed25519 " ED25519 "\n[git.test]:2222 ssh-ed25519 " ANOTHER "\n");
	fd_close(&fd);
	f->sign.known_hosts = path;
	assert_int_equal(add(f, "*@git.test"), 0);
	assert_int_equal(add(f, "*@git.test:2222"), 0);
	assert_int_equal(run_sign_prepare(&f->sign), 0);
	assert_string_equal(f->sign.guest_lines, "git.test ssh-ed25519 " ED25519 "\n"
						 "[git.test]:2222 ssh-ed25519 " ANOTHER "\n");
	assert_int_equal(add(f, "*@unknown.test"), 0);
	capture_begin(&f->capture);
	error = run_sign_prepare(&f->sign);
	capture_end(&f->capture);
	unlink(path);
	assert_true(error < 0);
	capture_expect_sentence(&f->capture, "your known_hosts has no key of unknown.test");
}

static void test_no_agent(void **state)
{
	struct fixture *f = *state;
	int fd;

	unsetenv("SSH_AUTH_SOCK");
	capture_begin(&f->capture);
	fd = run_sign_open_agent();
	capture_end(&f->capture);
	assert_true(fd < 0);
	capture_expect_sentence(&f->capture, "SSH_AUTH_SOCK is not set");
	setenv("SSH_AUTH_SOCK", "/nowhere", 1);
	capture_begin(&f->capture);
	fd = run_sign_open_agent();
	capture_end(&f->capture);
	assert_true(fd < 0);
	capture_expect_sentence(&f->capture, "cannot reach the agent at /nowhere");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_words),
		TEST(test_keys_of_hosts),
		TEST(test_finds_them),
		TEST(test_no_agent),
	};

	return cmocka_run_group_tests_name("ssh-agent", tests, NULL, NULL);
}
