/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with a terminal. */
#include "tests/unit/guest_run.h"

static struct guest_run run;

/* Starts @script on a terminal of 24 rows and 80 columns. */
static void begin(const char *script)
{
	const char *arguments[4];
	struct session_start start = guest_start(script, arguments);

	start.flags = SESSION_FLAG_TERMINAL;
	start.rows = 24;
	start.columns = 80;
	guest_begin(&run, &start);
	guest_expect(&run, SESSION_STARTED);
}

static void test_size_from_the_start(void **state)
{
	(void)state;
	begin("stty size; exit 3");
	assert_string_equal(guest_collect(&run, 1), "24 80\r\n");
	assert_int_equal(WEXITSTATUS(guest_finish(&run)), 3);
}

static void test_resize(void **state)
{
	(void)state;
	begin("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done");
	guest_read(&run, 1, "ready\r\n");
	guest_send(&run, SESSION_WINDOW, 50U << 16 | 132);
	assert_string_equal(guest_collect(&run, 1), "50 132\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

static void test_controlling_terminal(void **state)
{
	(void)state;
	begin("test -t 0 && test -t 1 && test -t 2 && echo again >/dev/tty && "
	      "stty -a | grep -o ' iutf8'");
	assert_string_equal(guest_collect(&run, 1), "again\r\n iutf8\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

static void test_belongs_to_user(void **state)
{
	const char *arguments[4];
	struct session_start start = guest_start("stat -Lc %u /proc/self/fd/0", arguments);

	(void)state;
	start.flags = SESSION_FLAG_TERMINAL;
	start.rows = start.columns = 1;
	start.uid = start.gid = 12345;
	guest_begin(&run, &start);
	guest_expect(&run, SESSION_STARTED);
	assert_string_equal(guest_collect(&run, 1), "12345\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* ^C ^\ and end of file are bytes, and the terminal makes of them what it should. */
static void test_control_characters(void **state)
{
	(void)state;
	begin("exec cat");
	guest_write(&run, "\3", 1);
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGINT);
	begin("exec cat");
	guest_write(&run, "\34", 1);
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGQUIT);
	begin("exec cat");
	guest_write(&run, "line\n\4", 6);
	assert_string_equal(guest_collect(&run, 1), "line\r\nline\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* ^Z stops a job, the shell goes on; its first exit may only warn of the stopped job. */
static void test_stop_job(void **state)
{
	(void)state;
	begin("set -m; sleep 1000; echo stopped $?; exit 4; exit 4");
	usleep(300000);
	guest_write(&run, "\32", 1);
	assert_non_null(strstr(guest_collect(&run, 1), "stopped 148"));
	assert_int_equal(WEXITSTATUS(guest_finish(&run)), 4);
}

/* A signal of the host goes to the foreground, as if the key had been pressed. */
static void test_signal_foreground(void **state)
{
	(void)state;
	begin("set -m; sh -c 'echo ready; exec sleep 1000'; echo ended $?");
	guest_read(&run, 1, "ready\r\n");
	guest_send(&run, SESSION_SIGNAL, SIGTERM);
	assert_non_null(strstr(guest_collect(&run, 1), "ended 143"));
	assert_int_equal(guest_finish(&run), 0);
}

/* 64 KiB pasted at once, to a program that reads slowly. */
static void test_paste(void **state)
{
	static char bytes[65536];

	(void)state;
	memset(bytes, 'p', sizeof(bytes));
	begin("stty raw -echo; echo ready; sleep 0.3; head -c 65536 | wc -c");
	guest_read(&run, 1, "ready\n");
	guest_write(&run, bytes, sizeof(bytes));
	assert_string_equal(guest_collect(&run, 1), "65536\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* All output arrives, also what is written just before the end and read late. */
static void test_output_is_complete(void **state)
{
	size_t total = 0;
	ssize_t count;

	(void)state;
	begin("stty -opost; seq 1 100000");
	usleep(300000);
	while ((count = read(run.streams[1], run.output, sizeof(run.output))) > 0)
		total += (size_t)count;
	assert_int_equal(count, 0);
	assert_int_equal(total, 588895);
	assert_int_equal(guest_finish(&run), 0);
}

/* No process has the terminal open for a moment; it is not gone. */
static void test_terminal_outlives_openers(void **state)
{
	(void)state;
	begin("exec <&- >&- 2>&-; sleep 0.2; exec >/dev/tty; echo back");
	assert_string_equal(guest_collect(&run, 1), "back\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* The host's terminal went away: a hangup, as it would be there. */
static void test_hangup(void **state)
{
	int status;

	(void)state;
	begin("echo ready; exec sleep 1000");
	guest_read(&run, 1, "ready\r\n");
	fd_close(&run.streams[1]);
	status = guest_finish(&run);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGHUP);
}

/* The end of what is typed ends nothing. */
static void test_end_of_input(void **state)
{
	(void)state;
	begin("sleep 0.2; stty size");
	guest_end_input(&run);
	assert_string_equal(guest_collect(&run, 1), "24 80\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* Processes in the background do not keep the terminal. */
static void test_background(void **state)
{
	(void)state;
	begin("(trap '' HUP; setsid sleep 1000 &); sleep 0.1; echo done");
	assert_string_equal(guest_collect(&run, 1), "done\r\n");
	assert_int_equal(guest_finish(&run), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size_from_the_start),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_controlling_terminal),
		cmocka_unit_test(test_belongs_to_user),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_stop_job),
		cmocka_unit_test(test_signal_foreground),
		cmocka_unit_test(test_paste),
		cmocka_unit_test(test_output_is_complete),
		cmocka_unit_test(test_terminal_outlives_openers),
		cmocka_unit_test(test_hangup),
		cmocka_unit_test(test_end_of_input),
		cmocka_unit_test(test_background),
	};

	if (!guest_runs_here())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
