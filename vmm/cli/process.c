/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/jail/namespaces.h"

void process_plan_init(struct process_plan *plan, const char *name, const char *path)
{
	*plan = (struct process_plan){.name = name, .cgroup_fd = -1};
	process_plan_add(plan, "%s", path);
}

void process_plan_add(struct process_plan *plan, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (plan->argument_count == PROCESS_MAX_ARGUMENTS ||
	    vasprintf(&text, format, arguments) < 0)
		log_fatal("cannot build the command line of %s", plan->name);
	va_end(arguments);
	plan->arguments[plan->argument_count++] = text;
}

void process_plan_add_fd(struct process_plan *plan, const char *option, const char *prefix, int fd)
{
	if (plan->fd_count == PROCESS_MAX_FDS)
		log_fatal("too many descriptors for %s", plan->name);
	process_plan_add(plan, "%s", option);
	process_plan_add(plan, "%s%d", prefix, fd);
	plan->fds[plan->fd_count++] = fd;
}

/* In the child: everything is CLOEXEC but what the plan names, also what mvagent itself inherited.
 * Reports a failure by its errno through @error_fd. */
static void process_exec(const struct process_plan *plan, int messages_fd, int error_fd)
{
	struct pollfd parent = {.fd = error_fd};
	sigset_t none;
	int null, error;

	/* Before anything of the process's own: what it takes counts from the start. */
	if (plan->cgroup_fd >= 0 && fd_write_full(plan->cgroup_fd, "0", 1) < 0)
		goto fail;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(messages_fd, STDERR_FILENO) < 0)
		goto fail;
	if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		goto fail;
	for (unsigned int i = 0; i < plan->fd_count; i++) {
		if (fcntl(plan->fds[i], F_SETFD, 0) < 0)
			goto fail;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		goto fail;
	if (poll(&parent, 1, 0) < 0 || parent.revents & POLLERR)
		_exit(1); /* the parent, who alone reads, died before the line above */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		goto fail;
	/* Nothing of the user's environment: these programs read none. */
	execve(plan->arguments[0], plan->arguments, (char *[]){NULL});
fail:
	error = errno;
	fd_write_full(error_fd, &error, sizeof(error));
	_exit(1);
}

static void process_plan_free(struct process_plan *plan)
{
	for (unsigned int i = 0; i < plan->argument_count; i++)
		free(plan->arguments[i]);
	plan->argument_count = 0;
}

static void tell_missing(const struct process_plan *plan)
{
	void (*tell)(const char *, ...) = plan->allow_degraded ? log_warning : log_info;

	tell("this host allows no namespaces to %s, which shares the host's process numbers and "
	     "network",
	     plan->name);
}

/* Forks; the child reports why it could not start through a pipe that closes when it could. */
static int process_fork(struct process *process, struct process_plan *plan, int messages_fd)
{
	int pair[2], error = 0;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	process->pid = plan->network ? namespaces_fork_with_network(&process->apart)
				     : namespaces_fork(&process->apart);
	if (process->pid == 0) {
		close(pair[0]);
		process_exec(plan, messages_fd, pair[1]);
	}
	close(pair[1]);
	if (process->pid > 0 && !process->apart)
		tell_missing(plan);
	if (process->pid < 0)
		error = -process->pid;
	else if (fd_read_full(pair[0], &error, sizeof(error)) == -ENODATA)
		error = 0;
	close(pair[0]);
	if (error && process->pid > 0)
		waitpid(process->pid, NULL, 0);
	return -error;
}

int process_start(struct process *process, struct process_plan *plan)
{
	int messages_fd = -1, error;

	*process = PROCESS_NONE;
	process->name = plan->name;
	error = messages_open(&process->messages, plan->name, &messages_fd);
	error = error ? error : process_fork(process, plan, messages_fd);
	fd_close(&messages_fd);
	if (error) {
		log_errno(error, "cannot start %s", plan->arguments[0]);
	} else {
		process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
		if (process->pidfd < 0) {
			error = log_errno(-errno, "cannot watch %s", plan->name);
			kill(process->pid, SIGKILL);
			waitpid(process->pid, NULL, 0);
		}
	}
	if (error)
		messages_finish(&process->messages);
	process_plan_free(plan);
	return error;
}

bool process_wait(struct process *process, int milliseconds, int *status)
{
	struct pollfd pollfd = {.fd = process->pidfd, .events = POLLIN};

	*status = 0;
	if (process->pidfd < 0)
		return true;
	while (poll(&pollfd, 1, milliseconds) < 0 && errno == EINTR)
		;
	if (!(pollfd.revents & POLLIN))
		return false;
	while (wait4(process->pid, status, 0, &process->usage) < 0 && errno == EINTR)
		;
	fd_close(&process->pidfd);
	messages_finish(&process->messages);
	return true;
}

void process_kill(struct process *process)
{
	int status;

	if (process->pidfd < 0)
		return;
	kill(process->pid, SIGKILL);
	process_wait(process, -1, &status);
}
