/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* What the child says before it dies; nothing comes when execve(2) worked. */
struct report {
	enum session_stage stage;
	int error;
};

/* The process's surroundings: session, terminal, streams. */
static int set_surroundings(const struct session_start *start, const int streams[3])
{
	if (setsid() < 0)
		return -errno;
	if (start->flags & SESSION_FLAG_TERMINAL && ioctl(streams[0], TIOCSCTTY, 0) < 0)
		return -errno;
	for (int stream = 0; stream < 3; stream++) {
		if (dup2(streams[stream], stream) < 0)
			return -errno;
	}
	umask(022);
	return 0;
}

/* Root keeps its capabilities, and a program with a set-user-ID bit may be used: the wall is the
 * machine. */
static int become_user(uid_t uid, gid_t gid)
{
	if (setgroups(1, &gid) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/* Becomes the command, or returns why it could not. */
static struct report run_command(const struct session_start *start, const int streams[3])
{
	sigset_t none;
	const bool probe = start->flags & SESSION_FLAG_PROBE;
	int error = set_surroundings(start, streams);

	if (!error && !probe)
		error = become_user(start->uid, start->gid);
	if (error)
		return (struct report){SESSION_STAGE_SETUP, error};
	if (chdir(start->directory) < 0)
		return (struct report){SESSION_STAGE_WORKDIR, -errno};
	/* No signal was ever given a handler or ignored. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* execvp searches the PATH of the environment that it hands over: the command's. */
	environ = (char **)(uintptr_t)start->variables;
	if (probe)
		execv("/proc/self/exe", (char *const *)(uintptr_t)start->arguments);
	else
		execvp(start->arguments[0], (char *const *)(uintptr_t)start->arguments);
	return (struct report){SESSION_STAGE_EXEC, -errno};
}

static noreturn void child_main(const struct session_start *start, const int streams[3], int report)
{
	struct report why = run_command(start, streams);

	_exit(fd_write_full(report, &why, sizeof(why)) ? 1 : 0);
}

static int explain(const struct report *why, const struct session_start *start,
		   struct failure *failure)
{
	switch (why->stage) {
	case SESSION_STAGE_WORKDIR:
		return failure_set(failure, why->stage, why->error, "entering the directory %s",
				   start->directory);
	case SESSION_STAGE_EXEC:
		return failure_set(failure, why->stage, why->error, "executing %s",
				   start->arguments[0]);
	default:
		return failure_set(failure, SESSION_STAGE_SETUP, why->error,
				   "becoming uid %u, gid %u", start->uid, start->gid);
	}
}

pid_t command_start(const struct session_start *start, const int streams[3],
		    struct failure *failure)
{
	struct report why = {SESSION_STAGE_SETUP, 0};
	int report[2];
	pid_t child;
	int error;

	if (pipe2(report, O_CLOEXEC) < 0)
		return failure_set(failure, SESSION_STAGE_SETUP, -errno, "making a pipe");
	child = fork();
	if (child == 0)
		child_main(start, streams, report[1]);
	error = child < 0 ? -errno : 0;
	fd_close(&report[1]);
	if (!error) {
		error = fd_read_full(report[0], &why, sizeof(why));
		if (error == -ENODATA) {
			fd_close(&report[0]);
			return child;
		}
		waitpid(child, NULL, 0);
	}
	fd_close(&report[0]);
	if (error)
		return failure_set(failure, SESSION_STAGE_SETUP, error, "making a process");
	return explain(&why, start, failure);
}
