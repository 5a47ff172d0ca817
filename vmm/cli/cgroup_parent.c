/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/cgroup_parent.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"

#define LONGEST_LIST 4096U

const char *cgroup_controller_name(enum cgroup_controller controller)
{
	static const char *const names[CGROUP_CONTROLLERS] = {"memory", "pids", "cpu", "io"};

	return names[controller];
}

int cgroup_file_read(int fd, const char *name, char *text, size_t size)
{
	int FD_CLEANUP file = openat(fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);

	if (length < 0)
		return -errno;
	if (length && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	return 0;
}

int cgroup_file_write(int fd, const char *name, const char *text)
{
	int FD_CLEANUP file = openat(fd, name, O_WRONLY | O_CLOEXEC);

	return file < 0 ? -errno : fd_write_full(file, text, strlen(text));
}

/* Where cgroup v2 is mounted. 0 or -ENOENT. */
static int find_mount(char path[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount = NULL;
	int length = PATH_MAX;

	while (mounts && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "cgroup2") != 0)
			continue;
		length = snprintf(path, PATH_MAX, "%s", mount->mnt_dir);
		break;
	}
	if (mounts)
		endmntent(mounts);
	return length < PATH_MAX ? 0 : -ENOENT;
}

/* Adds mvagent's own group to the mount's path: cgroups(7), "0::PATH". 0 or -ENOENT. */
static int add_own(char path[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	int error = -ENOENT;

	while (file && fgets(line, sizeof(line), file)) {
		const size_t before = strlen(path), length = strcspn(line, "\n");

		line[length] = '\0';
		/* "/..": outside of this process's cgroup namespace. */
		if (strncmp(line, "0::/", 4) != 0 || strncmp(line, "0::/..", 6) == 0 ||
		    before + length >= PATH_MAX)
			continue;
		snprintf(path + before, PATH_MAX - before, "%s", line[4] ? line + 3 : "");
		error = 0;
		break;
	}
	if (file)
		fclose(file);
	return error;
}

/* Whether a list of names has all of @needed. */
static bool has_all(int fd, const char *list, unsigned int needed)
{
	char text[LONGEST_LIST], *rest = text;
	const char *name;

	if (cgroup_file_read(fd, list, text, sizeof(text)) < 0)
		return false;
	while ((name = strsep(&rest, " "))) {
		for (unsigned int i = 0; i < CGROUP_CONTROLLERS; i++) {
			if (strcmp(name, cgroup_controller_name(i)) == 0)
				needed &= ~(1U << i);
		}
	}
	return !needed;
}

static bool is_ours(int fd)
{
	return faccessat(fd, ".", W_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0;
}

/* Whether there is no process in a group but this one. */
static bool is_alone(int fd)
{
	char text[32], own[32];

	snprintf(own, sizeof(own), "%d", getpid());
	return cgroup_file_read(fd, "cgroup.procs", text, sizeof(text)) == 0 &&
	       strcmp(text, own) == 0;
}

/* Groups that give controllers to others have no processes themselves, but for the root of all,
 * which has no cgroup.type. This process can go elsewhere: cgroup_parent_enable. */
static bool may_give(int fd)
{
	char text[16];

	return faccessat(fd, "cgroup.type", F_OK, 0) < 0 || is_alone(fd) ||
	       (cgroup_file_read(fd, "cgroup.procs", text, sizeof(text)) == 0 && !text[0]);
}

int cgroup_parent_find(unsigned int needed, char path[PATH_MAX])
{
	size_t mount_length;
	int error = find_mount(path);

	mount_length = error ? 0 : strlen(path);
	error = error ? error : add_own(path);
	if (error)
		return error;
	error = -EACCES;
	for (;;) {
		int FD_CLEANUP fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && is_ours(fd)) {
			if (has_all(fd, "cgroup.subtree_control", needed) ||
			    (has_all(fd, "cgroup.controllers", needed) && may_give(fd)))
				return fd_take(&fd);
			error = -EOPNOTSUPP;
		}
		if (strlen(path) <= mount_length)
			return error;
		*strrchr(path, '/') = '\0';
	}
}

/* A service of systemd that has its group to itself (Delegate=) is the one process in it. Who stops
 * the service removes what is made here; another run would (cgroup_sweep). */
static int leave(int parent_fd)
{
	int FD_CLEANUP fd = -1;
	char name[64];

	snprintf(name, sizeof(name), CGROUP_PREFIX "%d-supervisor", getpid());
	if (mkdirat(parent_fd, name, 0755) && errno != EEXIST)
		return -errno;
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : cgroup_file_write(fd, "cgroup.procs", "0");
}

int cgroup_parent_enable(int parent_fd, unsigned int needed)
{
	int error = 0;

	if (faccessat(parent_fd, "cgroup.type", F_OK, 0) == 0 && is_alone(parent_fd))
		error = leave(parent_fd);

	for (unsigned int i = 0; !error && i < CGROUP_CONTROLLERS; i++) {
		char word[16];

		if (!(needed & 1U << i) || has_all(parent_fd, "cgroup.subtree_control", 1U << i))
			continue;
		snprintf(word, sizeof(word), "+%s", cgroup_controller_name(i));
		error = cgroup_file_write(parent_fd, "cgroup.subtree_control", word);
	}
	return error;
}
