/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of files, devices, and of what the process itself was given. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/probe.h"
#include "vmm/base/fd.h"

/* Of a file that is read, and of names in a directory that is listed. */
#define READ_BYTES    64
#define WRITTEN_BYTES 512 /* a sector */
#define LISTED_NAMES  256

#define OWN_NAME ".mvagent-review-probe"

static void give(struct probe_answer *answer, long result)
{
	answer->result = result < 0 ? -errno : result;
}

/* Whether it can be opened at all; its contents stay where they are. Data: time of its last change
 * and size, so that another file of the same name is told apart from the host's. */
static void try_open(const char *target, struct probe_answer *answer)
{
	FD_CLEANUP int fd = open(target, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status = {0};
	char text[64];

	give(answer, fd < 0 || fstat(fd, &status) < 0 ? -1 : 0);
	if (answer->result == 0)
		probe_add(answer, text,
			  (size_t)snprintf(text, sizeof(text), "%lld.%09ld:%lld",
					   (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
					   (long long)status.st_size));
}

/* Writes back what it has read, so that a device that takes it is not changed. */
static void try_write(const char *target, struct probe_answer *answer)
{
	FD_CLEANUP int fd = open(target, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char bytes[WRITTEN_BYTES];
	ssize_t count = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), 0);

	if (count > 0)
		count = pwrite(fd, bytes, (size_t)count, 0);
	if (count > 0 && fsync(fd) < 0)
		count = -1;
	give(answer, count);
}

static void try_read(const char *target, struct probe_answer *answer)
{
	FD_CLEANUP int fd = open(target, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char bytes[READ_BYTES];
	ssize_t count = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	give(answer, count);
	if (count > 0)
		probe_add(answer, bytes, (size_t)count);
}

/* Reads through a name that was made in the working directory, and takes the name away. */
static void read_own(struct probe_answer *answer, int made)
{
	if (made < 0) {
		give(answer, -1);
		return;
	}
	try_read(OWN_NAME, answer);
	unlink(OWN_NAME);
}

static void try_link(const char *target, struct probe_answer *answer)
{
	read_own(answer, linkat(AT_FDCWD, target, AT_FDCWD, OWN_NAME, AT_SYMLINK_FOLLOW));
}

static void try_symlink(const char *target, struct probe_answer *answer)
{
	read_own(answer, symlink(target, OWN_NAME));
}

static void try_create(const char *target, struct probe_answer *answer)
{
	FD_CLEANUP int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	give(answer, fd < 0 ? -1 : 0);
	if (fd >= 0)
		unlink(target);
}

static void try_mkdir(const char *target, struct probe_answer *answer)
{
	int made = mkdir(target, 0700);

	give(answer, made);
	if (made == 0)
		rmdir(target);
}

/* Names, each with a zero behind it. */
static void try_list(const char *target, struct probe_answer *answer)
{
	DIR *directory = opendir(target);
	const struct dirent *entry;
	long count = 0;

	if (!directory) {
		give(answer, -1);
		return;
	}
	while (count < LISTED_NAMES && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		probe_add(answer, entry->d_name, strlen(entry->d_name) + 1);
		count++;
	}
	closedir(directory);
	give(answer, count);
}

/* The environment as the kernel has it of this process: NAME=VALUE, each with a zero behind it. */
static void try_environment(const char *target, struct probe_answer *answer)
{
	FD_CLEANUP int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	char bytes[4096];
	ssize_t count = fd < 0 ? -1 : 1;

	(void)target;
	while (count > 0 && (count = read(fd, bytes, sizeof(bytes))) > 0)
		probe_add(answer, bytes, (size_t)count);
	/* Of one that was cut, what is missing is not told. */
	if (count == 0 && answer->length == PROBE_DATA_BYTES) {
		errno = EMSGSIZE;
		count = -1;
	}
	give(answer, count < 0 ? -1 : (long)answer->length);
}

static void try_identity(const char *target, struct probe_answer *answer)
{
	char text[64];

	(void)target;
	probe_add(answer, text,
		  (size_t)snprintf(text, sizeof(text), "%u:%u", (unsigned int)getuid(),
				   (unsigned int)getgid()));
	give(answer, 0);
}

/* What would write the clipboard of the user's terminal (OSC 52), and set its title (OSC 2). */
static void try_terminal(const char *target, struct probe_answer *answer)
{
	probe_add(answer, "\033]52;c;", 7);
	probe_add(answer, target, strlen(target));
	probe_add(answer, "\a\033]2;", 5);
	probe_add(answer, target, strlen(target));
	probe_add(answer, "\033\\", 2);
	give(answer, 0);
}

const struct probe_kind probe_file_kinds[] = {
	{"open", try_open},         {"write", try_write},       {"read", try_read},
	{"link", try_link},         {"symlink", try_symlink},   {"create", try_create},
	{"mkdir", try_mkdir},       {"list", try_list},         {"environ", try_environment},
	{"identity", try_identity}, {"terminal", try_terminal}, {NULL, NULL},
};
