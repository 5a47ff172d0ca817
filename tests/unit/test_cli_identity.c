/* SPDX-License-Identifier: Apache-2.0 */
/* The command's user and environment: built from nothing, changed only by what is asked for. */
#include "tests/unit/cli_capture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/guest_identity.h"

/* The value that the command sees, or NULL; a name occurs at most once. */
static const char *value_of(const struct guest_identity *identity, const char *name)
{
	size_t length = strlen(name);
	const char *value = NULL;

	for (unsigned int i = 0; i < identity->variable_count; i++) {
		const char *variable = identity->variables[i];

		if (strncmp(variable, name, length) == 0 && variable[length] == '=') {
			assert_null(value);
			value = variable + length + 1;
		}
	}
	return value;
}

static void create(struct guest_identity *identity, struct run_options *options, bool terminal,
		   const char *const *variables)
{
	options->variables = (struct run_variables){0};
	for (; variables && *variables; variables++)
		assert_int_equal(run_variables_add(&options->variables, *variables), 0);
	assert_int_equal(guest_identity_create(identity, options, NULL, terminal), 0);
	run_variables_free(&options->variables);
	assert_null(identity->variables[identity->variable_count]);
}

/* Nothing of this process's environment is there but what the guest sets itself. */
static void test_from_nothing(void **state)
{
	struct run_options options = {0};
	struct guest_identity identity;

	(void)state;
	setenv("CLI_IDENTITY_TOKEN", "secret", 1);
	setenv("PATH", "/host/only", 1);
	setenv("HOME", "/host/home", 1);
	setenv("TERM", "xterm-256color", 1);
	setenv("LANG", "de_DE.UTF-8", 1);
	create(&identity, &options, false, NULL);
	assert_int_equal(identity.variable_count, 6);
	assert_null(value_of(&identity, "CLI_IDENTITY_TOKEN"));
	assert_null(value_of(&identity, "TERM"));
	assert_string_equal(value_of(&identity, "PATH"),
			    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	assert_string_equal(value_of(&identity, "HOME"), identity.home);
	assert_string_equal(value_of(&identity, "USER"), identity.user);
	assert_string_equal(value_of(&identity, "LOGNAME"), identity.user);
	assert_string_equal(value_of(&identity, "SHELL"), "/bin/bash");
	assert_string_equal(value_of(&identity, "LANG"), "C.UTF-8");
	assert_string_equal(identity.host_name, "mvagent");
	guest_identity_destroy(&identity);
	assert_int_equal(identity.variable_count, 0);
}

static void test_copy_set_replace(void **state)
{
	static const char *const variables[] = {
		"CLI_IDENTITY_GIVEN", "EMPTY=",    "A=b=c",    "PATH=/my/bin", "AA=1",
		"TWICE=first",        "EMPTIED=x", "EMPTIED=", "TWICE=second", NULL,
	};
	struct run_options options = {0};
	struct guest_identity identity;

	(void)state;
	setenv("CLI_IDENTITY_GIVEN", "a value\nof two lines", 1);
	create(&identity, &options, false, variables);
	assert_int_equal(identity.variable_count, 6 + 6);
	assert_string_equal(value_of(&identity, "CLI_IDENTITY_GIVEN"), "a value\nof two lines");
	assert_string_equal(value_of(&identity, "EMPTY"), "");
	assert_string_equal(value_of(&identity, "A"), "b=c");
	assert_string_equal(value_of(&identity, "AA"), "1");
	assert_string_equal(value_of(&identity, "PATH"), "/my/bin");
	assert_string_equal(value_of(&identity, "TWICE"), "second");
	assert_string_equal(value_of(&identity, "EMPTIED"), "");
	guest_identity_destroy(&identity);
}

/* TERM is passed on with a terminal, if it is the name of a type and nothing else. */
static void test_term(void **state)
{
	static const struct {
		const char *given, *seen;
	} cases[] = {
		{"xterm-256color", "xterm-256color"},
		{"screen.xterm-new", "screen.xterm-new"},
		{"rxvt+pcfkeys_1", "rxvt+pcfkeys_1"},
		{NULL, "dumb"},
		{"", "dumb"},
		{"../../etc/passwd", "dumb"},
		{"xterm;id", "dumb"},
		{"xterm\n", "dumb"},
		{"a b", "dumb"},
		{"caf\xc3\xa9", "dumb"},
		{"0123456789012345678901234567890123456789012345678901234567890123",
		 "0123456789012345678901234567890123456789012345678901234567890123"},
		{"01234567890123456789012345678901234567890123456789012345678901234", "dumb"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run_options options = {0};
		struct guest_identity identity;

		if (cases[i].given)
			setenv("TERM", cases[i].given, 1);
		else
			unsetenv("TERM");
		create(&identity, &options, true, NULL);
		assert_string_equal(value_of(&identity, "TERM"), cases[i].seen);
		guest_identity_destroy(&identity);
	}
}

/* The user's own choice counts, also for TERM. */
static void test_term_chosen(void **state)
{
	struct run_options options = {0};
	struct guest_identity identity;

	(void)state;
	setenv("TERM", "xterm", 1);
	create(&identity, &options, true, (const char *const[]){"TERM=vt100", NULL});
	assert_string_equal(value_of(&identity, "TERM"), "vt100");
	guest_identity_destroy(&identity);
}

static void test_root_in_the_guest(void **state)
{
	struct run_options options = {.as_root = true};
	struct guest_identity identity;

	(void)state;
	create(&identity, &options, false, NULL);
	assert_int_equal(identity.uid, 0);
	assert_int_equal(identity.gid, 0);
	assert_string_equal(identity.user, "root");
	assert_string_equal(identity.home, "/root");
	assert_string_equal(value_of(&identity, "HOME"), "/root");
	guest_identity_destroy(&identity);
}

static void test_agent_of_root(void **state)
{
	struct run_options options = {0};
	struct guest_identity identity;

	(void)state;
	if (getuid() != 0)
		skip();
	create(&identity, &options, false, NULL);
	assert_int_equal(identity.uid, 1000);
	assert_int_equal(identity.gid, 1000);
	assert_string_equal(identity.user, "agent");
	assert_string_equal(identity.home, "/home/agent");
	guest_identity_destroy(&identity);
}

/* What an image says, and what the caller says instead. */
static void test_settings_of_an_image(void **state)
{
	static char path[] = "PATH=/opt/bin", colour[] = "COLOUR=blue", home[] = "HOME=/x";
	static char given[] = "COLOUR=red";
	struct run_variable list[] = {{given, NULL}};
	char *variables[] = {path, colour, home, NULL};
	const struct image_settings settings = {
		.has_user = true,
		.user = {.uid = 1001, .gid = 1002, .name = "node", .home = "/home/node"},
		.variables = variables,
	};
	struct run_options options = {.variables = {.count = 1, .list = list}};
	struct guest_identity identity;

	(void)state;
	assert_int_equal(guest_identity_create(&identity, &options, &settings, 0), 0);
	assert_int_equal(identity.uid, 1001);
	assert_int_equal(identity.gid, 1002);
	assert_string_equal(identity.user, "node");
	assert_string_equal(identity.home, "/home/node");
	assert_string_equal(value_of(&identity, "PATH"), "/opt/bin");
	assert_string_equal(value_of(&identity, "HOME"), "/x");
	assert_string_equal(value_of(&identity, "USER"), "node");
	assert_string_equal(value_of(&identity, "COLOUR"), "red");
	guest_identity_destroy(&identity);
	options.user_is_given = options.as_root = true;
	assert_int_equal(guest_identity_create(&identity, &options, &settings, 0), 0);
	assert_int_equal(identity.uid, 0);
	assert_string_equal(identity.user, "root");
	assert_string_equal(value_of(&identity, "PATH"), "/opt/bin");
	guest_identity_destroy(&identity);
}

/* --proxy-env, and a user who knows better. */
static void test_proxy(void **state)
{
	struct run_options options = {.network.proxy_env = true};
	struct guest_identity identity;

	(void)state;
	create(&identity, &options, false,
	       (const char *const[]){"NO_PROXY=*", "http_proxy=http://a:1", NULL});
	assert_string_equal(value_of(&identity, "https_proxy"), "http://127.77.255.1:3128");
	assert_string_equal(value_of(&identity, "HTTPS_PROXY"), "http://127.77.255.1:3128");
	assert_string_equal(value_of(&identity, "no_proxy"), "localhost,127.0.0.1,::1");
	assert_string_equal(value_of(&identity, "NO_PROXY"), "*");
	assert_string_equal(value_of(&identity, "http_proxy"), "http://a:1");
	guest_identity_destroy(&identity);
	options.network.proxy_env = false;
	create(&identity, &options, false, NULL);
	for (unsigned int i = 0; i < identity.variable_count; i++)
		assert_null(strcasestr(identity.variables[i], "proxy"));
	guest_identity_destroy(&identity);
}

/* Becomes another user and looks; the status is 0 when all is as expected. */
static int look_as(uid_t uid, gid_t gid, const char *name)
{
	struct run_options options = {0};
	struct guest_identity identity;
	char home[64];

	snprintf(home, sizeof(home), "/home/%s", name);
	if (setgid(gid) < 0 || setuid(uid) < 0)
		return 2;
	if (guest_identity_create(&identity, &options, NULL, 0) < 0)
		return 3;
	return identity.uid == uid && identity.gid == gid && strcmp(identity.user, name) == 0 &&
			       strcmp(identity.home, home) == 0
		       ? 0
		       : 4;
}

/* The invoking user's name and ids; an account without a name is "agent". */
static void test_invoking_user(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		const char *name;
	} cases[] = {{65534, 65534, "nobody"}, {1, 12345, "daemon"}, {54321, 54321, "agent"}};

	(void)state;
	if (getuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0)
			_exit(look_as(cases[i].uid, cases[i].gid, cases[i].name));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_nothing),
		cmocka_unit_test(test_copy_set_replace),
		cmocka_unit_test(test_term),
		cmocka_unit_test(test_term_chosen),
		cmocka_unit_test(test_root_in_the_guest),
		cmocka_unit_test(test_agent_of_root),
		cmocka_unit_test(test_settings_of_an_image),
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_invoking_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
