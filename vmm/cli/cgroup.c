/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/cgroup_parent.h"

/* cpu.max: a part of each such period, microseconds; the kernel's own default. */
#define CPU_PERIOD_US 100000U

/* A process that was waited for may count as one of the group's for a moment longer. */
#define REMOVE_TRIES       100
#define REMOVE_INTERVAL_NS 10000000

static unsigned int needed_controllers(const struct cgroup_limits *limits)
{
	return (limits->memory_mib ? 1U << CGROUP_MEMORY : 0) |
	       (limits->pids ? 1U << CGROUP_PIDS : 0) |
	       (limits->cpu_percent ? 1U << CGROUP_CPU : 0) |
	       (limits->io_mib ? 1U << CGROUP_IO : 0);
}

/* Removes the groups of runs whose mvagent was killed; one of this process's number is that of an
 * earlier process. Those that are in use stay (EBUSY). How many were removed. */
static unsigned int sweep(int parent_fd)
{
	int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	unsigned int removed = 0;

	if (!directory) {
		fd_close(&fd);
		return 0;
	}
	while ((entry = readdir(directory))) {
		const char *name = entry->d_name;
		pid_t pid;

		if (strncmp(name, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) != 0)
			continue;
		pid = (pid_t)strtol(name + strlen(CGROUP_PREFIX), NULL, 10);
		if (pid <= 0 || (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH)))
			continue;
		if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
			removed++;
	}
	closedir(directory);
	return removed;
}

unsigned int cgroup_sweep(void)
{
	unsigned int removed = 0;
	char path[PATH_MAX];

	/* Which group is the parent depends on what was to be limited. */
	for (unsigned int i = 0; i < CGROUP_CONTROLLERS; i++) {
		int FD_CLEANUP fd = cgroup_parent_find(1U << i, path);

		if (fd >= 0)
			removed += sweep(fd);
	}
	return removed;
}

/* The disk that a file system lies on, "MAJOR:MINOR": io.max knows no partitions. */
static int find_disk(int share_fd, char disk[32])
{
	char path[64];
	struct stat status;
	int FD_CLEANUP fd = -1;

	if (fstat(share_fd, &status) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(status.st_dev),
		 minor(status.st_dev));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -ENODEV;
	return cgroup_file_read(fd, faccessat(fd, "partition", F_OK, 0) == 0 ? "../dev" : "dev",
				disk, 32);
}

static int limit_io(const struct cgroup *cgroup, uint64_t mib, const int *share_fds,
		    unsigned int share_count)
{
	const unsigned long long bytes = mib << 20;

	for (unsigned int i = 0; i < share_count; i++) {
		char disk[32], text[128];
		int error = find_disk(share_fds[i], disk);

		if (error == -ENODEV) {
			log_error("--cgroup io=%lluM: a share's file system is on no disk that the "
				  "kernel can limit (a tmpfs, an overlay, btrfs); leave io= out",
				  (unsigned long long)mib);
			return error;
		}
		snprintf(text, sizeof(text), "%s rbps=%llu wbps=%llu", disk, bytes, bytes);
		error = error ? error : cgroup_file_write(cgroup->fd, "io.max", text);
		if (error)
			return log_errno(error, "--cgroup: cannot limit io of %s", cgroup->path);
	}
	return 0;
}

static int set_number(const struct cgroup *cgroup, const char *file, uint64_t number)
{
	char text[32];
	int error;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	error = cgroup_file_write(cgroup->fd, file, text);
	return error ? log_errno(error, "--cgroup: cannot set %s of %s", file, cgroup->path) : 0;
}

static int set_limits(const struct cgroup *cgroup, const struct cgroup_limits *limits)
{
	int error = 0;

	if (limits->memory_mib) {
		error = set_number(cgroup, "memory.max", limits->memory_mib << 20);
		/* All of the run or nothing. */
		error = error ? error : set_number(cgroup, "memory.oom.group", 1);
		/* A kernel without swap has no file for it. */
		if (!error && faccessat(cgroup->fd, "memory.swap.max", F_OK, 0) == 0)
			error = set_number(cgroup, "memory.swap.max", 0);
	}
	if (!error && limits->pids)
		error = set_number(cgroup, "pids.max", limits->pids);
	if (!error && limits->cpu_percent) {
		char text[64];

		snprintf(text, sizeof(text), "%llu %u",
			 (unsigned long long)limits->cpu_percent * (CPU_PERIOD_US / 100),
			 CPU_PERIOD_US);
		error = cgroup_file_write(cgroup->fd, "cpu.max", text);
		if (error)
			log_errno(error, "--cgroup: cannot set cpu.max of %s", cgroup->path);
	}
	return error;
}

/* Why there is no group to make ours in. */
static const char *reason(int error)
{
	switch (error) {
	case -ENOENT:
		return "this host has no cgroup v2 mounted";
	case -EACCES:
		return "no control group here is yours to write";
	default:
		return "no control group of yours can set those limits";
	}
}

static int find_parent(struct cgroup *cgroup, unsigned int needed)
{
	char path[PATH_MAX];
	int error;

	cgroup->parent_fd = cgroup_parent_find(needed, path);
	if (cgroup->parent_fd < 0) {
		error = cgroup->parent_fd;
		log_error("--cgroup: %s; in a systemd session try 'systemd-run --user --scope -p "
			  "Delegate=yes mvagent run ...'",
			  reason(error));
		return error;
	}
	snprintf(cgroup->name, sizeof(cgroup->name), CGROUP_PREFIX "%d", getpid());
	if ((size_t)snprintf(cgroup->path, sizeof(cgroup->path), "%s/%s", path, cgroup->name) >=
	    sizeof(cgroup->path))
		return log_errno(-ENAMETOOLONG, "--cgroup: %s", path);
	error = cgroup_parent_enable(cgroup->parent_fd, needed);
	return error ? log_errno(error, "--cgroup: cannot have %s limit its groups", path) : 0;
}

int cgroup_make(struct cgroup *cgroup, const struct cgroup_limits *limits, const int *share_fds,
		unsigned int share_count)
{
	int error;

	if (!cgroup_limits_any(limits))
		return 0;
	error = find_parent(cgroup, needed_controllers(limits));
	if (error)
		return error;
	sweep(cgroup->parent_fd);
	/* With limits of its own; one that is in use is another's, of another pid namespace. */
	if (mkdirat(cgroup->parent_fd, cgroup->name, 0755) < 0)
		return log_errno(-errno, "--cgroup: cannot make %s", cgroup->path);
	cgroup->fd = openat(cgroup->parent_fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->fd < 0)
		return log_errno(-errno, "--cgroup: cannot open %s", cgroup->path);
	error = set_limits(cgroup, limits);
	if (!error && limits->io_mib)
		error = limit_io(cgroup, limits->io_mib, share_fds, share_count);
	if (error)
		return error;
	cgroup->procs_fd = openat(cgroup->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (cgroup->procs_fd < 0)
		return log_errno(-errno, "--cgroup: cannot put processes into %s", cgroup->path);
	return 0;
}

/* A line "@name NUMBER" of a file such as memory.events; 0 when it is not there. */
static uint64_t read_counter(int fd, const char *file, const char *name)
{
	char text[4096], *rest = text;
	const char *line;
	const size_t length = strlen(name);

	if (cgroup_file_read(fd, file, text, sizeof(text)) < 0)
		return 0;
	while ((line = strsep(&rest, "\n"))) {
		if (strncmp(line, name, length) == 0 && (!length || line[length] == ' '))
			return strtoull(line + length, NULL, 10);
	}
	return 0;
}

void cgroup_end(struct cgroup *cgroup, struct cgroup_use *use)
{
	const struct timespec interval = {.tv_nsec = REMOVE_INTERVAL_NS};

	if (cgroup->fd >= 0) {
		use->memory_peak_bytes = read_counter(cgroup->fd, "memory.peak", "");
		use->cpu_us = read_counter(cgroup->fd, "cpu.stat", "usage_usec");
		use->kills = read_counter(cgroup->fd, "memory.events", "oom_kill");
		for (int i = 0; i < REMOVE_TRIES; i++) {
			if (unlinkat(cgroup->parent_fd, cgroup->name, AT_REMOVEDIR) == 0 ||
			    errno != EBUSY)
				break;
			nanosleep(&interval, NULL);
		}
	}
	fd_close(&cgroup->procs_fd);
	fd_close(&cgroup->fd);
	fd_close(&cgroup->parent_fd);
}

bool cgroup_describe(char *text, size_t size)
{
	char path[PATH_MAX], list[64] = "";
	int error = 0;

	for (unsigned int i = 0; i < CGROUP_CONTROLLERS; i++) {
		int FD_CLEANUP fd = cgroup_parent_find(1U << i, path);

		if (fd < 0) {
			error = fd;
			continue;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 list[0] ? ", " : "", cgroup_controller_name(i));
	}
	if (list[0])
		snprintf(text, size, "--cgroup can limit %s", list);
	else
		snprintf(text, size,
			 "no --cgroup: %s ('systemd-run --user --scope -p Delegate=yes' may give "
			 "one)",
			 reason(error));
	return list[0] != '\0';
}
