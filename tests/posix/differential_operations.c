/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/posix/differential.h"

static void fill(const struct choice *choice, char *bytes)
{
	struct random_numbers numbers = {choice->content};

	for (size_t at = 0; at + 8 <= DATA_BYTES && at < choice->length; at += 8) {
		uint64_t number = random_next(&numbers);

		memcpy(bytes + at, &number, 8);
	}
}

/* Puts @fd into the slot of the choice. */
static long keep(struct side *side, const struct choice *choice, int fd)
{
	if (fd < 0)
		return -1;
	if (side->slots[choice->slot] >= 0)
		close(side->slots[choice->slot]);
	side->slots[choice->slot] = fd;
	return 0;
}

static long run_open(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return keep(side, choice,
		    openat(side->directory, choice->path,
			   (choice->flags & ~O_CREAT) | O_NONBLOCK | O_CLOEXEC));
}

static long run_create(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return keep(side, choice,
		    openat(side->directory, choice->path,
			   choice->flags | O_CREAT | O_NONBLOCK | O_CLOEXEC, choice->mode));
}

static long run_unnamed(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return keep(side, choice,
		    openat(side->directory, choice->path, O_TMPFILE | O_RDWR | O_CLOEXEC,
			   choice->mode));
}

static long run_close(struct side *side, const struct choice *choice, struct answer *answer)
{
	int fd = side->slots[choice->slot];

	(void)answer;
	side->slots[choice->slot] = -1;
	return close(fd);
}

static long run_read(struct side *side, const struct choice *choice, struct answer *answer)
{
	long length = read(side->slots[choice->slot], answer->data, choice->length);

	answer->size = length > 0 ? (size_t)length : 0;
	return length;
}

static long run_pread(struct side *side, const struct choice *choice, struct answer *answer)
{
	long length =
		pread(side->slots[choice->slot], answer->data, choice->length, choice->offset);

	answer->size = length > 0 ? (size_t)length : 0;
	return length;
}

static long run_write(struct side *side, const struct choice *choice, struct answer *answer)
{
	fill(choice, answer->data);
	return write(side->slots[choice->slot], answer->data, choice->length);
}

static long run_pwrite(struct side *side, const struct choice *choice, struct answer *answer)
{
	fill(choice, answer->data);
	return pwrite(side->slots[choice->slot], answer->data, choice->length, choice->offset);
}

static long run_lseek(struct side *side, const struct choice *choice, struct answer *answer)
{
	static const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END};
	struct stat status;

	(void)answer;
	/* Positions in directories are the file system's own. */
	if (fstat(side->slots[choice->slot], &status) == 0 && S_ISDIR(status.st_mode))
		return 0;
	return lseek(side->slots[choice->slot], choice->offset, whences[choice->content % 3]);
}

static long run_ftruncate(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return ftruncate(side->slots[choice->slot], choice->offset);
}

/* truncate(2) by a path below the directory. */
static long run_truncate(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	if (fchdir(side->directory))
		abort();
	return truncate(choice->path, choice->offset);
}

static long run_fallocate(struct side *side, const struct choice *choice, struct answer *answer)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE,
				    FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE};

	(void)answer;
	return fallocate(side->slots[choice->slot], modes[choice->content % 3], choice->offset,
			 (off_t)choice->length);
}

static long run_copy(struct side *side, const struct choice *choice, struct answer *answer)
{
	off_t from = choice->offset, to = (off_t)(choice->content % 20000);
	size_t done = 0;

	(void)answer;
	while (done < choice->length) {
		ssize_t copied = copy_file_range(side->slots[choice->slot], &from,
						 side->slots[choice->other_slot], &to,
						 choice->length - done, 0);

		if (copied < 0 && done == 0)
			return -1;
		if (copied <= 0)
			break;
		done += (size_t)copied;
	}
	return (long)done;
}

static long run_fsync(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return choice->content % 2 ? fsync(side->slots[choice->slot])
				   : fdatasync(side->slots[choice->slot]);
}

static long run_fstat(struct side *side, const struct choice *choice, struct answer *answer)
{
	differential_describe(side->slots[choice->slot], "", answer->data, DATA_BYTES);
	answer->size = strlen(answer->data);
	return 0;
}

static long run_fchmod(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return fchmod(side->slots[choice->slot], choice->mode);
}

static long run_link_slot(struct side *side, const struct choice *choice, struct answer *answer)
{
	char path[32];

	(void)answer;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", side->slots[choice->slot]);
	return linkat(AT_FDCWD, path, side->directory, choice->path, AT_SYMLINK_FOLLOW);
}

static long run_mkdir(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return mkdirat(side->directory, choice->path, choice->mode | 0700);
}

static long run_mknod(struct side *side, const struct choice *choice, struct answer *answer)
{
	static const mode_t types[] = {S_IFREG, S_IFIFO, S_IFSOCK};

	(void)answer;
	return mknodat(side->directory, choice->path, types[choice->content % 3] | choice->mode, 0);
}

static long run_unlink(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return unlinkat(side->directory, choice->path, 0);
}

static long run_rmdir(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return unlinkat(side->directory, choice->path, AT_REMOVEDIR);
}

static long run_rename(struct side *side, const struct choice *choice, struct answer *answer)
{
	static const unsigned int flags[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};

	(void)answer;
	return renameat2(side->directory, choice->path, side->directory, choice->other_path,
			 flags[choice->content % 5]);
}

static long run_link(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return linkat(side->directory, choice->path, side->directory, choice->other_path,
		      choice->content % 2 ? AT_SYMLINK_FOLLOW : 0);
}

static long run_symlink(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return symlinkat(choice->other_path, side->directory, choice->path);
}

static long run_readlink(struct side *side, const struct choice *choice, struct answer *answer)
{
	long length = readlinkat(side->directory, choice->path, answer->data, choice->length);

	answer->size = length > 0 ? (size_t)length : 0;
	return length;
}

static long run_chmod(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return fchmodat(side->directory, choice->path, choice->mode, 0);
}

static long run_times(struct side *side, const struct choice *choice, struct answer *answer)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = (time_t)(choice->content % 2000000000),
				     .tv_nsec = (long)(choice->content % 1000000000)}};
	int flags = choice->content % 2 ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat status;

	if (utimensat(side->directory, choice->path, times, flags))
		return -1;
	if (fstatat(side->directory, choice->path, &status, flags))
		return -1;
	answer->size = (size_t)snprintf(answer->data, DATA_BYTES, "%ld.%09ld",
					status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
	return 0;
}

static long run_access(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return faccessat(side->directory, choice->path, (int)(choice->content % 8), AT_EACCESS);
}

static long run_stat(struct side *side, const struct choice *choice, struct answer *answer)
{
	differential_describe(side->directory, choice->path, answer->data, DATA_BYTES);
	answer->size = strlen(answer->data);
	return 0;
}

static int compare_names(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The names in the order of the alphabet, each with its type. */
static long run_list(struct side *side, const struct choice *choice, struct answer *answer)
{
	char *names[64];
	size_t count = 0;
	struct dirent *entry;
	DIR *directory;
	int fd = openat(side->directory, choice->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	directory = fdopendir(fd);
	if (!directory)
		abort();
	while ((entry = readdir(directory)) != NULL && count < 64)
		if (asprintf(&names[count++], "%s %d\n", entry->d_name, entry->d_type) < 0)
			abort();
	closedir(directory);
	qsort(names, count, sizeof(names[0]), compare_names);
	for (size_t i = 0; i < count; i++) {
		answer->size += (size_t)snprintf(answer->data + answer->size,
						 DATA_BYTES - answer->size, "%s", names[i]);
		free(names[i]);
	}
	return (long)count;
}

static const char *const attribute_names[] = {"user.one", "user.two", "user.a longer name"};

static const char *enter_attribute(struct side *side, const struct choice *choice)
{
	if (fchdir(side->directory))
		abort();
	return attribute_names[choice->content % 3];
}

static long run_setxattr(struct side *side, const struct choice *choice, struct answer *answer)
{
	static const int flags[] = {0, XATTR_CREATE, XATTR_REPLACE};
	const char *name = enter_attribute(side, choice);

	fill(choice, answer->data);
	return setxattr(choice->path, name, answer->data, choice->length % 100,
			flags[choice->content / 3 % 3]);
}

static long run_getxattr(struct side *side, const struct choice *choice, struct answer *answer)
{
	const char *name = enter_attribute(side, choice);
	long length = getxattr(choice->path, name, answer->data, choice->length % 200);

	answer->size = length > 0 && choice->length % 200 ? (size_t)length : 0;
	return length;
}

/* The length of the list; its order is the file system's. */
static long run_listxattr(struct side *side, const struct choice *choice, struct answer *answer)
{
	enter_attribute(side, choice);
	return listxattr(choice->path, answer->data, DATA_BYTES);
}

static long run_removexattr(struct side *side, const struct choice *choice, struct answer *answer)
{
	(void)answer;
	return removexattr(choice->path, enter_attribute(side, choice));
}

const struct operation differential_operations[] = {
	{"open", run_open, 12},          {"create", run_create, 20},
	{"unnamed", run_unnamed, 3},     {"close", run_close, 3},
	{"read", run_read, 6},           {"pread", run_pread, 10},
	{"write", run_write, 10},        {"pwrite", run_pwrite, 10},
	{"lseek", run_lseek, 4},         {"ftruncate", run_ftruncate, 5},
	{"truncate", run_truncate, 5},   {"fallocate", run_fallocate, 5},
	{"copy", run_copy, 5},           {"fsync", run_fsync, 1},
	{"fstat", run_fstat, 6},         {"fchmod", run_fchmod, 3},
	{"link slot", run_link_slot, 4}, {"mkdir", run_mkdir, 15},
	{"mknod", run_mknod, 5},         {"unlink", run_unlink, 10},
	{"rmdir", run_rmdir, 6},         {"rename", run_rename, 25},
	{"link", run_link, 10},          {"symlink", run_symlink, 7},
	{"readlink", run_readlink, 4},   {"chmod", run_chmod, 8},
	{"times", run_times, 6},         {"access", run_access, 5},
	{"stat", run_stat, 15},          {"list", run_list, 8},
	{"setxattr", run_setxattr, 5},   {"getxattr", run_getxattr, 4},
	{"listxattr", run_listxattr, 3}, {"removexattr", run_removexattr, 3},
};

const size_t differential_operation_count =
	sizeof(differential_operations) / sizeof(differential_operations[0]);
