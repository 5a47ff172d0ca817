/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a run: what they inherit and what not, how they end, and that they end with us.
 * The process that is started is this program itself, as "report" or "sleep". */
#include "tests/unit/cli_capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/process.h"

#define SELF "/proc/self/exe"

/* What a process finds when it starts. */
struct found {
	int fd_count;
	int fds[32]; /* ascending */
	int variable_count;
	int death_signal;
	int no_new_privileges;
	bool signals_blocked; /* any */
	bool pipe_signal_ignored;
	bool own_group;
	bool null_input; /* standard input and output are /dev/null */
};

static int compare_numbers(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void find_fds(struct found *found)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && found->fd_count < 32 && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(directory))
			found->fds[found->fd_count++] = fd;
	}
	closedir(directory);
	qsort(found->fds, (size_t)found->fd_count, sizeof(int), compare_numbers);
}

static bool is_null_device(int fd)
{
	char name[32], target[32];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, target, sizeof(target));
	return length == 9 && memcmp(target, "/dev/null", 9) == 0;
}

/* The process "report": writes what it found to the descriptor of its last argument. */
static int report_main(int argc, char **argv)
{
	struct found found = {0};
	struct sigaction action;
	sigset_t blocked;

	find_fds(&found);
	while (environ[found.variable_count])
		found.variable_count++;
	prctl(PR_GET_PDEATHSIG, &found.death_signal);
	found.no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int number = 1; number < 32; number++)
		found.signals_blocked |= sigismember(&blocked, number) == 1;
	sigaction(SIGPIPE, NULL, &action);
	found.pipe_signal_ignored = action.sa_handler == SIG_IGN;
	found.own_group = getpgrp() == getpid();
	found.null_input = is_null_device(STDIN_FILENO) && is_null_device(STDOUT_FILENO);
	return fd_write_full(atoi(argv[argc - 1]), &found, sizeof(found)) < 0;
}

static int start_with_fd(struct process *process, const char *role, int fd)
{
	struct process_plan plan;

	process_plan_init(&plan, "test", SELF);
	process_plan_add(&plan, "%s", role);
	process_plan_add_fd(&plan, "--fd", "", fd);
	return process_start(process, &plan);
}

/* Exactly the standard descriptors and the one named, though others are open here, some of them
 * carelessly. */
static void test_inherits_what_is_named(void **state)
{
	struct process process;
	struct found found;
	int pair[2], careful = open("/", O_PATH | O_CLOEXEC), careless = dup(careful), status;
	sigset_t blocked;

	(void)state;
	assert_true(careful >= 0 && careless >= 0);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	setenv("CLI_PROCESS_TOKEN", "secret", 1);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	assert_int_equal(start_with_fd(&process, "report", pair[1]), 0);
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	assert_int_equal(fcntl(pair[1], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fd_read_full(pair[0], &found, sizeof(found)), 0);
	assert_true(process_wait(&process, 10000, &status));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(process.pidfd, -1);

	assert_int_equal(found.fd_count, 4);
	for (int i = 0; i < 3; i++)
		assert_int_equal(found.fds[i], i);
	assert_int_equal(found.fds[3], pair[1]);
	assert_int_equal(found.variable_count, 0);
	assert_int_equal(found.death_signal, SIGKILL);
	assert_int_equal(found.no_new_privileges, 1);
	assert_false(found.signals_blocked);
	assert_false(found.pipe_signal_ignored);
	assert_true(found.own_group);
	assert_true(found.null_input);
	fd_close(&careful);
	fd_close(&careless);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void test_missing_program(void **state)
{
	struct process_plan plan;
	struct process process;
	struct capture capture;
	int error;

	(void)state;
	process_plan_init(&plan, "mvagent-test", "/nonexistent/mvagent-test");
	capture_begin(&capture);
	error = process_start(&process, &plan);
	capture_end(&capture);
	assert_int_equal(error, -ENOENT);
	capture_expect_sentence(&capture, "cannot start /nonexistent/mvagent-test: No such file");
	assert_int_equal(process.pidfd, -1);
	/* No zombie is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_not_a_program(void **state)
{
	struct process_plan plan;
	struct process process;
	struct capture capture;
	int error;

	(void)state;
	process_plan_init(&plan, "mvagent-test", "/etc/passwd");
	capture_begin(&capture);
	error = process_start(&process, &plan);
	capture_end(&capture);
	assert_int_equal(error, -EACCES);
	capture_expect_sentence(&capture, "/etc/passwd: Permission denied");
}

static void test_kill_and_wait(void **state)
{
	struct process process;
	int pair[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(start_with_fd(&process, "sleep", pair[1]), 0);
	pid = process.pid;
	assert_int_equal(fcntl(process.pidfd, F_GETFD), FD_CLOEXEC);
	assert_false(process_wait(&process, 0, &status));
	assert_false(process_wait(&process, 50, &status));
	process_kill(&process);
	assert_int_equal(process.pidfd, -1);
	assert_int_equal(kill(pid, 0), -1);
	/* Again, and waiting for what has ended: nothing happens. */
	process_kill(&process);
	assert_true(process_wait(&process, -1, &status));
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void test_wait_gives_the_status(void **state)
{
	struct process process;
	int pair[2], status;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(start_with_fd(&process, "fail", pair[1]), 0);
	assert_true(process_wait(&process, 10000, &status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(start_with_fd(&process, "sleep", pair[1]), 0);
	kill(process.pid, SIGKILL);
	assert_true(process_wait(&process, 10000, &status));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* SIGKILL to the one that started it: the process holds one end of a pipe, which then closes. */
static void test_dies_with_parent(void **state)
{
	struct pollfd pollfd = {.events = POLLIN};
	struct process process;
	int pair[2], status;
	char byte;
	pid_t parent;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		if (start_with_fd(&process, "sleep", pair[1]) == 0)
			fd_write_full(pair[1], "s", 1);
		pause();
		_exit(1);
	}
	fd_close(&pair[1]);
	assert_int_equal(fd_read_full(pair[0], &byte, 1), 0);
	pollfd.fd = pair[0];
	assert_int_equal(poll(&pollfd, 1, 50), 0); /* both are alive */
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	assert_int_equal(read(pair[0], &byte, 1), 0);
	fd_close(&pair[0]);
}

/* The process "speak": what a process may say when it is not itself any more. */
static int speak_main(void)
{
	const char *const parts[] = {
		"test: a warning of",
		" its own\n",
		"\033]52;c;ZXZpbA==\007mvagent: password?\n",
		"\xc2\x9b"
		"2J\xff\rtest: over\n",
		"no end",
	};

	/* It has no terminal, and its standard error is none of ours. */
	if (isatty(STDERR_FILENO) || open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0 ||
	    getsid(0) != getpid())
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		fd_write_full(STDERR_FILENO, parts[i], strlen(parts[i]));
	return 0;
}

static void test_messages_are_made_harmless(void **state)
{
	struct capture capture;
	struct process process;
	int pair[2], status;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	capture_begin(&capture);
	assert_int_equal(start_with_fd(&process, "speak", pair[1]), 0);
	assert_true(process_wait(&process, 10000, &status));
	capture_end(&capture);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(process.messages.fd, -1);
	assert_string_equal(capture.text, "test: a warning of its own\n"
					  "test: ?]52;c;ZXZpbA==?mvagent: password?\n"
					  "test: ??2J??test: over\n"
					  "test: no end\n");
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* "flood": more than anybody would read, in lines and without. */
static int flood_main(void)
{
	char block[4096];

	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 256; i++) {
		block[i % 3 * 100] = '\n';
		while (write(STDERR_FILENO, block, sizeof(block)) < 0) {
			if (errno != EAGAIN)
				return 1;
			usleep(1000);
		}
	}
	return 0;
}

static void test_messages_have_a_bound(void **state)
{
	static char text[4 * LIMIT_MESSAGES_BYTES];
	int pair[2], status, FD_CLEANUP file = memfd_create("messages", MFD_CLOEXEC);
	int saved = dup(STDERR_FILENO);
	struct process process;
	ssize_t length;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	dup2(file, STDERR_FILENO);
	assert_int_equal(start_with_fd(&process, "flood", pair[1]), 0);
	while (!process_wait(&process, 1, &status))
		messages_pass(&process.messages);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	length = pread(file, text, sizeof(text) - 1, 0);
	assert_in_range(length, LIMIT_MESSAGES_BYTES / 2, LIMIT_MESSAGES_BYTES + 8192);
	text[length] = '\0';
	assert_non_null(strstr(text, "\ntest: it says more, which is left out\n"));
	assert_string_equal(strstr(text, "test: it says"),
			    "test: it says more, which is left out\n");
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* All of a run's descriptors, with their numbers in the arguments. */
static void test_plan_of_many(void **state)
{
	struct process_plan plan;
	struct process process;
	struct found found;
	int pairs[12][2], status;

	(void)state;
	process_plan_init(&plan, "test", SELF);
	process_plan_add(&plan, "report");
	for (int i = 0; i < 12; i++) {
		assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pairs[i]), 0);
		process_plan_add_fd(&plan, "--fd", i < 11 ? "share:" : "", pairs[i][1]);
	}
	assert_int_equal(process_start(&process, &plan), 0);
	assert_int_equal(fd_read_full(pairs[11][0], &found, sizeof(found)), 0);
	assert_true(process_wait(&process, 10000, &status));
	assert_int_equal(found.fd_count, 3 + 12);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(found.fds[3 + i], pairs[i][1]);
		fd_close(&pairs[i][0]);
		fd_close(&pairs[i][1]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inherits_what_is_named),
		cmocka_unit_test(test_missing_program),
		cmocka_unit_test(test_not_a_program),
		cmocka_unit_test(test_kill_and_wait),
		cmocka_unit_test(test_wait_gives_the_status),
		cmocka_unit_test(test_dies_with_parent),
		cmocka_unit_test(test_messages_are_made_harmless),
		cmocka_unit_test(test_messages_have_a_bound),
		cmocka_unit_test(test_plan_of_many),
	};

	if (argc > 1 && strcmp(argv[1], "report") == 0)
		return report_main(argc, argv);
	if (argc > 1 && strcmp(argv[1], "speak") == 0)
		return speak_main();
	if (argc > 1 && strcmp(argv[1], "flood") == 0)
		return flood_main();
	if (argc > 1 && strcmp(argv[1], "sleep") == 0)
		return pause();
	if (argc > 1 && strcmp(argv[1], "fail") == 0)
		return 42;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
