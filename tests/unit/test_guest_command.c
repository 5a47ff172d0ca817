/* SPDX-License-Identifier: Apache-2.0 */
/* What a command finds when it starts: arguments, environment, user, descriptors; and why one does
 * not start. */
#include "tests/unit/guest_run.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct guest_run run;

/* A directory for the test's files. */
static char scratch[] = "/tmp/guest-command-XXXXXX";

static int make_scratch(void **state)
{
	(void)state;
	return mkdtemp(scratch) && chmod(scratch, 0755) == 0 ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return system(command);
}

static const char *make_file(const char *name, const char *text, mode_t mode)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	fd_close(&fd);
	return path;
}

/* Runs a session to its end; its output is in run.output. Returns its exit status. */
static int run_session(const struct session_start *start)
{
	int status;

	guest_begin(&run, start);
	guest_expect(&run, SESSION_STARTED);
	guest_collect(&run, 1);
	status = guest_finish(&run);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_not_found(void **state)
{
	const char *arguments[4];
	struct session_start start = guest_start("", arguments);

	(void)state;
	arguments[0] = "no-such-command";
	guest_assert_failure(&start, SESSION_STAGE_EXEC, ENOENT);
	arguments[0] = "/no/such/command";
	guest_assert_failure(&start, SESSION_STAGE_EXEC, ENOENT);
	arguments[0] = "";
	guest_assert_failure(&start, SESSION_STAGE_EXEC, ENOENT);
}

static void test_not_executable(void **state)
{
	const char *arguments[4];
	struct session_start start = guest_start("", arguments);

	(void)state;
	arguments[0] = make_file("data", "text", 0644);
	guest_assert_failure(&start, SESSION_STAGE_EXEC, EACCES);
	arguments[0] = scratch;
	guest_assert_failure(&start, SESSION_STAGE_EXEC, EACCES);
	arguments[0] = make_file("interpreter", "#!/no/such/interpreter\n", 0755);
	guest_assert_failure(&start, SESSION_STAGE_EXEC, ENOENT);
}

static void test_missing_directory(void **state)
{
	const char *arguments[4];
	struct session_start start = guest_start("", arguments);

	(void)state;
	start.directory = "/no/such/directory";
	guest_assert_failure(&start, SESSION_STAGE_WORKDIR, ENOENT);
	start.directory = "/etc/passwd";
	guest_assert_failure(&start, SESSION_STAGE_WORKDIR, ENOTDIR);
	start.directory = "/root";
	start.uid = start.gid = 65534;
	guest_assert_failure(&start, SESSION_STAGE_WORKDIR, EACCES);
}

/* The command's PATH decides, not init's. */
static void test_path(void **state)
{
	const char *const other[] = {"PATH=/no/such/directory", NULL};
	const char *const own[] = {NULL, NULL};
	const char *arguments[4];
	char path[64];
	struct session_start start = guest_start("", arguments);

	(void)state;
	make_file("own-command", "#!/bin/sh\necho own \"$@\"\n", 0755);
	arguments[0] = "own-command";
	arguments[1] = "a b";
	start.argument_count = 2;
	arguments[2] = NULL;
	start.variable_count = 1;
	start.variables = other;
	guest_assert_failure(&start, SESSION_STAGE_EXEC, ENOENT);
	snprintf(path, sizeof(path), "PATH=/no/such:%s", scratch);
	start.variables = (const char *const[]){path, own[0]};
	assert_int_equal(run_session(&start), 0);
	assert_string_equal(run.output, "own a b\n");
}

static void test_script_without_interpreter(void **state)
{
	const char *arguments[4];
	struct session_start start = guest_start("", arguments);

	(void)state;
	arguments[0] = make_file("plain", "echo plain \"$1\"; exit 8\n", 0755);
	arguments[1] = "one";
	arguments[2] = NULL;
	start.argument_count = 2;
	assert_int_equal(run_session(&start), 8);
	assert_string_equal(run.output, "plain one\n");
}

/* Built from nothing: exactly these, in this order, also strange ones. */
static void test_environment(void **state)
{
	const char *const variables[] = {"B=2", "A=one\ntwo", "EMPTY=", "B=3", NULL};
	const char *arguments[4];
	struct session_start start = guest_start("", arguments);

	(void)state;
	arguments[0] = "/usr/bin/env";
	arguments[1] = NULL;
	start.argument_count = 1;
	start.variables = variables;
	start.variable_count = 4;
	assert_int_equal(run_session(&start), 0);
	assert_string_equal(run.output, "B=2\nA=one\ntwo\nEMPTY=\nB=3\n");
}

static void test_thousand_variables(void **state)
{
	static char storage[1000][32];
	static const char *list[1001];
	const char *arguments[4];
	struct session_start start = guest_start("/usr/bin/env | /usr/bin/wc -l", arguments);

	(void)state;
	for (size_t index = 0; index < 1000; index++) {
		snprintf(storage[index], sizeof(storage[index]), "VARIABLE_%zu=%zu", index, index);
		list[index] = storage[index];
	}
	start.variables = list;
	start.variable_count = 1000;
	assert_int_equal(run_session(&start), 0);
	/* dash adds PWD. */
	assert_string_equal(run.output, "1001\n");
}

/* Up to the kernel's limit, and past it. */
static void test_long_arguments(void **state)
{
	const size_t size = 131072;
	const char *list[24] = {"/bin/sh", "-c", "echo $# ${#1} ${#15}", "sh"};
	const char *arguments[4];
	struct session_start start = guest_start("", arguments);
	char *argument = malloc(size);

	(void)state;
	assert_non_null(argument);
	memset(argument, 'a', size - 1);
	argument[size - 1] = 0;
	for (size_t index = 4; index < 23; index++)
		list[index] = argument;
	start.arguments = list;
	start.argument_count = 23;
	guest_assert_failure(&start, SESSION_STAGE_EXEC, E2BIG);
	list[19] = NULL;
	start.argument_count = 19;
	assert_int_equal(run_session(&start), 0);
	assert_string_equal(run.output, "15 131071 131071\n");
	free(argument);
}

static void test_user(void **state)
{
	const char *arguments[4];
	struct session_start start =
		guest_start("id -u; id -g; id -G; umask; pwd; grep -E '^Cap(Prm|Eff)|^NoNew'"
			    " /proc/self/status",
			    arguments);

	(void)state;
	start.uid = 12345;
	start.gid = 54321;
	start.directory = "/usr/bin";
	assert_int_equal(run_session(&start), 0);
	assert_string_equal(run.output, "12345\n54321\n54321\n0022\n/usr/bin\n"
					"CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
					"NoNewPrivs:\t0\n");
}

/* Nothing of init's: descriptors, blocked or ignored signals. */
static void test_nothing_inherited(void **state)
{
	(void)state;
	assert_int_equal(guest_run_script(&run,
					  "ls -1 /proc/$$/fd\n"
					  "while read -r name value; do case $name in Sig[BI]*)"
					  " echo $name $((0x$value)) ;; esac;"
					  " done </proc/self/status"),
			 0);
	assert_string_equal(run.output, "0\n1\n2\nSigBlk: 0\nSigIgn: 0\n");
}

/* It leads its session and process group, and has no terminal. */
static void test_own_session(void **state)
{
	(void)state;
	assert_int_equal(guest_run_script(&run, "read -r pid name state parent group session tty x"
						" </proc/$$/stat; echo $((group == pid))"
						" $((session == pid)) $parent $tty"),
			 0);
	assert_string_equal(run.output, "1 1 1 0\n");
}

/* Pipes, not sockets: programs open them again by name. */
static void test_streams_can_be_opened(void **state)
{
	(void)state;
	assert_int_equal(guest_run_script(&run, "echo again >/proc/self/fd/1"), 0);
	assert_string_equal(run.output, "again\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_not_executable),
		cmocka_unit_test(test_missing_directory),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_script_without_interpreter),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_thousand_variables),
		cmocka_unit_test(test_long_arguments),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_nothing_inherited),
		cmocka_unit_test(test_own_session),
		cmocka_unit_test(test_streams_can_be_opened),
	};

	if (!guest_runs_here())
		return 0;
	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
