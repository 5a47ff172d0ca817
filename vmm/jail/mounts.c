/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/jail/capabilities.h"

#define MOUNT_HARMLESS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* A new file system of @type that is mounted nowhere yet. */
static int mounts_make(const char *type, const char *option, const char *value)
{
	FD_CLEANUP int context = fsopen(type, FSOPEN_CLOEXEC);
	int mount_fd;

	if (context < 0 || (option && fsconfig(context, FSCONFIG_SET_STRING, option, value, 0)) ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	mount_fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_HARMLESS | MOUNT_ATTR_NOEXEC);
	return mount_fd < 0 ? -errno : mount_fd;
}

/* The same directory in this mount namespace: only what is found here can be cloned here. */
static int mounts_reopen(int fd)
{
	struct stat before, now;
	char name[64], path[PATH_MAX];
	ssize_t length;
	int again;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, path, sizeof(path) - 1);
	if (length < 0)
		return -errno;
	path[length] = '\0';
	again = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (again < 0)
		return -errno;
	if (fstat(fd, &before) || fstat(again, &now) || before.st_dev != now.st_dev ||
	    before.st_ino != now.st_ino) {
		close(again);
		return -ESTALE;
	}
	return again;
}

/* What is mounted below comes along: without it, what it covers would come to light. */
static int mounts_take_directory(const struct jail_directory *directory)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_HARMLESS,
	};
	FD_CLEANUP int again = mounts_reopen(directory->fd);
	FD_CLEANUP int clone = -1;

	if (!directory->writable)
		attributes.attr_set |= MOUNT_ATTR_RDONLY;
	if (again < 0)
		return again;
	clone = open_tree(again, "",
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (clone < 0 ||
	    mount_setattr(clone, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)))
		return -errno;
	return dup3(clone, directory->fd, O_CLOEXEC) < 0 ? -errno : 0;
}

/* Where /proc is partly covered, as in containers, the kernel makes no new one, and the old one
 * comes along as it is. */
static int mounts_add_proc(int root_fd)
{
	FD_CLEANUP int proc = mounts_make("proc", "subset", "pid");

	if (proc < 0)
		proc = open_tree(AT_FDCWD, "/proc",
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (proc < 0 || mkdirat(root_fd, "proc", 0555) ||
	    move_mount(proc, "", root_fd, "proc", MOVE_MOUNT_F_EMPTY_PATH))
		return -errno;
	return 0;
}

/* pivot_root(2), NOTES: with both in one place the old root is on top, and can be taken off. */
static int mounts_pivot(void)
{
	return syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ? -errno : 0;
}

/* Where the host still runs from its initial file system, which cannot be taken off, it stays below
 * the new root: nothing leads there for who has no descriptor of it and no capability. */
static int mounts_cover(void)
{
	return chroot(".") ? -errno : 0;
}

static int mounts_change_root(int root_fd, bool proc)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	int error = 0;

	/* Before Linux 6.15 nothing can be mounted on what is itself mounted nowhere. */
	if (move_mount(root_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) || fchdir(root_fd))
		return -errno;
	if (proc)
		error = mounts_add_proc(root_fd);
	error = error ? error : mounts_pivot();
	if (error == -EINVAL)
		error = mounts_cover();
	if (error)
		return error;
	return chdir("/") || mount_setattr(root_fd, "", AT_EMPTY_PATH, &attributes,
					   sizeof(attributes))
		       ? -errno
		       : 0;
}

/* An empty root to be, in a mount namespace of our own. */
static int mounts_begin(void)
{
	if (!capabilities_have(CAP_SYS_ADMIN) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -EOPNOTSUPP;
	return mounts_make("tmpfs", "mode", "0755");
}

int mounts_enter(const struct jail_directory *directories, unsigned int count, bool proc)
{
	FD_CLEANUP int root_fd = mounts_begin();
	int error = 0;

	if (root_fd < 0)
		return -EOPNOTSUPP;
	for (unsigned int i = 0; !error && i < count; i++) {
		if (directories[i].fd >= 0)
			error = mounts_take_directory(&directories[i]);
	}
	if (error)
		return log_errno(error, "cannot mount a shared directory for its server");
	error = mounts_change_root(root_fd, proc);
	return error ? log_errno(error, "cannot leave the host's mounts") : 0;
}
