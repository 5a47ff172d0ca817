/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/unavailable.h"

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* The child's number, 0 in it, or -errno. */
static pid_t namespaces_clone(uint64_t flags)
{
	struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

	return pid < 0 ? -errno : (pid_t)pid;
}

static int namespaces_write(const char *path, const char *text)
{
	FD_CLEANUP int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
}

/* user_namespaces(7): a process may map its own user and group, and no other, once it can no longer
 * drop groups that keep it out of files. */
static int namespaces_map_ids(uid_t uid, gid_t gid)
{
	char text[64];
	int error;

	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	error = namespaces_write("/proc/self/uid_map", text);
	error = error ? error : namespaces_write("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	return error ? error : namespaces_write("/proc/self/gid_map", text);
}

/* In the child, which says by a byte whether it can go on. */
static void namespaces_enter(uid_t uid, gid_t gid, int answer_fd)
{
	int error = namespaces_map_ids(uid, gid);

	/* For the next stage: mounts, and a new root. */
	if (!error)
		error = capabilities_keep_over_exec(CAPABILITY_BIT(CAP_SYS_ADMIN) |
						    CAPABILITY_BIT(CAP_SYS_CHROOT));
	fd_write_full(answer_fd, &error, sizeof(error));
	if (error)
		_exit(1);
}

/* Hosts that restrict user namespaces let one be made and then refuse what it is good for. */
static pid_t namespaces_fork_as_user(uint64_t namespaces)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int pair[2], error = 0;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	pid = namespaces_clone(CLONE_NEWUSER | namespaces);
	if (pid < 0)
		error = pid;
	if (pid == 0)
		namespaces_enter(uid, gid, pair[1]);
	close(pair[1]);
	if (pid > 0 && (fd_read_full(pair[0], &error, sizeof(error)) || error)) {
		error = error ? error : -EIO; /* it died without an answer */
		waitpid(pid, NULL, 0);
	}
	close(pair[0]);
	return error ? error : pid;
}

static pid_t namespaces_fork_into(uint64_t namespaces, bool *apart)
{
	/* root needs no user namespace, whose privileges would only add to what can be attacked. */
	pid_t pid = geteuid() == 0 ? namespaces_clone(namespaces) : -EPERM;

	if (pid < 0 && jail_is_unavailable(pid))
		pid = namespaces_fork_as_user(namespaces);
	*apart = pid >= 0;
	if (pid >= 0 || !jail_is_unavailable(pid))
		return pid;
	pid = fork();
	return pid < 0 ? -errno : pid;
}

pid_t namespaces_fork(bool *apart)
{
	return namespaces_fork_into(NAMESPACES, apart);
}

pid_t namespaces_fork_with_network(bool *apart)
{
	return namespaces_fork_into(NAMESPACES & ~(uint64_t)CLONE_NEWNET, apart);
}
