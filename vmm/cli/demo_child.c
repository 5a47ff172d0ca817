/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/demo_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

void demo_child_add(struct demo_child *child, const char *word)
{
	if (child->word_count < DEMO_CHILD_WORDS)
		child->words[child->word_count] = word;
	child->word_count++;
}

static noreturn void begin(const struct demo_child *child, const char *program,
			   const char *directory, int output_fd, pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && chdir(directory) == 0 &&
	    (output_fd < 0 || dup2(output_fd, STDOUT_FILENO) >= 0))
		execv(program, (char *const *)child->words);
	log_errno(-errno, "cannot run %s in %s", program, directory);
	_exit(127);
}

/* A signal of ours is the child's. The terminal's own reached it already. */
static void pass_signal(int signal_fd, pid_t pid)
{
	struct signalfd_siginfo signal;

	if (read(signal_fd, &signal, sizeof(signal)) == sizeof(signal) && signal.ssi_code <= 0)
		kill(pid, (int)signal.ssi_signo);
}

/* Until it has ended and all that it printed was read. @output_fd: -1: none. */
static int follow(pid_t pid, int pid_fd, int output_fd, int signal_fd, demo_child_output output,
		  void *context)
{
	char buffer[4096];

	for (;;) {
		struct pollfd fds[] = {{.fd = output_fd, .events = POLLIN},
				       {.fd = signal_fd, .events = POLLIN},
				       {.fd = pid_fd, .events = POLLIN}};
		ssize_t length;
		int error;

		if (poll(fds, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[1].revents)
			pass_signal(signal_fd, pid);
		if (fds[0].revents) {
			length = read(output_fd, buffer, sizeof(buffer));
			error = output && length > 0 ? output(context, buffer, (size_t)length) : 0;
			if (error)
				return error;
			if (length <= 0)
				output_fd = -1;
		} else if (fds[2].revents) {
			return 0;
		}
	}
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

int demo_child_run(const struct demo_child *child, const char *program, const char *directory,
		   demo_child_output output, void *context)
{
	FD_CLEANUP int signal_fd = open_signals(), pid_fd = -1, reader = -1, writer = -1;
	int pipe_fds[2], error = 0, status;
	const pid_t parent = getpid();
	pid_t pid;

	if (child->word_count > DEMO_CHILD_WORDS)
		return log_errno(-E2BIG, "cannot run %s", program);
	if (signal_fd < 0 || (output && pipe2(pipe_fds, O_CLOEXEC) < 0))
		return log_errno(-errno, "cannot run %s", program);
	if (output) {
		reader = pipe_fds[0];
		writer = pipe_fds[1];
	}
	pid = fork();
	if (pid == 0)
		begin(child, program, directory, writer, parent);
	if (pid < 0)
		return log_errno(-errno, "cannot run %s", program);
	fd_close(&writer);
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	error = pid_fd < 0 ? log_errno(-errno, "cannot watch %s", program)
			   : follow(pid, pid_fd, reader, signal_fd, output, context);
	if (error)
		kill(pid, SIGTERM);
	status = wait_for(pid);
	return error ? error : status;
}
