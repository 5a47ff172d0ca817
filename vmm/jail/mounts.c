/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/unavailable.h"

#define MOUNTS_DIRECTORIES (LIMIT_ROOT_SOURCES + 1)

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

/* Its path as this process sees it; in another mount namespace it would be seen from the host's
 * root, also in a chroot. malloc(3), or NULL with errno. */
static char *mounts_path_of(int fd)
{
	char name[64], path[PATH_MAX];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, path, sizeof(path));
	if (length < 0)
		return NULL;
	return strndup(path, (size_t)length);
}

/* The same directory in this mount namespace: only what is found here can be cloned here. */
static int mounts_reopen(int fd, const char *path)
{
	struct stat before, now;
	int again = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

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
static int mounts_take_directory(const struct jail_directory *directory, int again)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_HARMLESS,
	};
	FD_CLEANUP int clone = -1;

	if (!directory->writable)
		attributes.attr_set |= MOUNT_ATTR_RDONLY;
	clone = open_tree(again, "",
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (clone < 0 ||
	    mount_setattr(clone, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)))
		return -errno;
	return dup3(clone, directory->fd, O_CLOEXEC) < 0 ? -errno : 0;
}

/* Where /proc is partly covered, as in containers, the kernel makes no new one. Of the old one only
 * this process's descriptors come along then; sanitizers read more of it. */
#ifdef __SANITIZE_ADDRESS__
#define OWN_PROC ""
#else
#define OWN_PROC "/self/fd"
#endif

/* A directory, and those above it: an ordinary user has no power to write where its mode does not
 * let it. All of it is read-only in the end. */
static int mounts_make_place(int root_fd, const char *path)
{
	char above[64];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (mkdirat(root_fd, above, 0755))
			return -errno;
	}
	return mkdirat(root_fd, path, 0555) ? -errno : 0;
}

static int mounts_add_proc(int root_fd)
{
	const char *place = "proc";
	struct mount_attr attributes = {
		.attr_set = MOUNT_HARMLESS | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY,
	};
	FD_CLEANUP int proc = mounts_make("proc", "subset", "pid");
	int error;

	if (proc < 0) {
		place = "proc" OWN_PROC;
		proc = open_tree(AT_FDCWD, "/proc" OWN_PROC,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	}
	if (proc < 0)
		return -errno;
	error = mounts_make_place(root_fd, place);
	if (error)
		return error;
	if (mount_setattr(proc, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
			  sizeof(attributes)) ||
	    move_mount(proc, "", root_fd, place, MOVE_MOUNT_F_EMPTY_PATH))
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
	if (!capabilities_have(CAP_SYS_ADMIN))
		return -EOPNOTSUPP;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	return mounts_make("tmpfs", "mode", "0755");
}

static int mounts_find_paths(const struct jail_directory *directories, unsigned int count,
			     char **paths)
{
	for (unsigned int i = 0; i < count; i++) {
		if (directories[i].fd < 0)
			continue;
		paths[i] = mounts_path_of(directories[i].fd);
		if (!paths[i])
			return log_errno(-errno, "cannot find the path of a shared directory");
	}
	return 0;
}

/* Whether a directory is just not found by its path: it was removed, another one has its name, or
 * the user may not go there, who got it as a descriptor. */
static bool mounts_is_out_of_reach(int error)
{
	return error == -EACCES || error == -ENOENT || error == -ENOTDIR || error == -ELOOP ||
	       error == -ESTALE;
}

/* Opens them all again before any is replaced. 0, -EOPNOTSUPP, or -errno with the sentence printed.
 */
static int mounts_find_again(const struct jail_directory *directories, unsigned int count,
			     char **paths, int *again)
{
	for (unsigned int i = 0; i < count; i++) {
		if (!paths[i])
			continue;
		again[i] = mounts_reopen(directories[i].fd, paths[i]);
		if (again[i] >= 0)
			continue;
		if (!mounts_is_out_of_reach(again[i]))
			return log_errno(again[i], "cannot open %s once more", paths[i]);
		log_info("%s cannot be found again in a mount namespace: %s", paths[i],
			 strerror(-again[i]));
		return -EOPNOTSUPP;
	}
	return 0;
}

static int mounts_take(const struct jail_directory *directories, unsigned int count, char **paths)
{
	int again[MOUNTS_DIRECTORIES];
	int error;

	if (count > MOUNTS_DIRECTORIES)
		return log_errno(-E2BIG, "too many directories for a process");
	memset(again, -1, sizeof(again));
	error = mounts_find_again(directories, count, paths, again);
	for (unsigned int i = 0; !error && i < count; i++) {
		if (!paths[i])
			continue;
		error = mounts_take_directory(&directories[i], again[i]);
		if (error)
			log_errno(error, "cannot mount %s for the process that serves it",
				  paths[i]);
	}
	for (unsigned int i = 0; i < count; i++)
		fd_close(&again[i]);
	return error;
}

int mounts_enter(const struct jail_directory *directories, unsigned int count, bool proc)
{
	char **paths = calloc(count + 1, sizeof(*paths));
	FD_CLEANUP int root_fd = -1;
	int error = paths ? mounts_find_paths(directories, count, paths) : -ENOMEM;

	if (error)
		goto out;
	root_fd = mounts_begin();
	if (root_fd < 0) {
		error = jail_is_unavailable(root_fd)
				? -EOPNOTSUPP
				: log_errno(root_fd, "cannot make a mount namespace");
		goto out;
	}
	error = mounts_take(directories, count, paths);
	if (error)
		goto out;
	error = mounts_change_root(root_fd, proc);
	if (error)
		log_errno(error, "cannot leave the host's mounts");
out:
	for (unsigned int i = 0; paths && i < count; i++)
		free(paths[i]);
	free(paths);
	return error;
}
