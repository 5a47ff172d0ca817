/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/review/copy.h"
#include "vmm/review/upper.h"

#define PERMISSIONS (S_IRWXU | S_IRWXG | S_IRWXO)

/* ".mvagent-apply-" and 16 hex digits. */
#define TEMPORARY_NAME_BYTES 32

/* A name that nothing has. 0 or -errno. */
static int make_temporary_name(char name[TEMPORARY_NAME_BYTES])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, TEMPORARY_NAME_BYTES, ".mvagent-apply-%016llx", (unsigned long long)random);
	return 0;
}

/* 0 when the host's object is what the change was judged by, -ESTALE or -errno. */
static int check_host(int directory_fd, const char *name, const struct review_change *change)
{
	struct review_object now;
	int error = tree_look(directory_fd, name, &now);

	if (error)
		return error;
	return review_object_same(&now, &change->host) ? 0 : -ESTALE;
}

static int open_parent(const struct review_share *share, const struct review_change *change,
		       const char **name)
{
	int fd = tree_open_parent(share->host_fd, change->path, name);

	/* The directory was there, or was made a moment ago. */
	return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
}

static int remove_name(int directory_fd, const char *name, const struct review_object *object)
{
	if (unlinkat(directory_fd, name, S_ISDIR(object->mode) ? AT_REMOVEDIR : 0) == 0)
		return 0;
	/* Something was put in a directory, or took the name. */
	return errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT || errno == ENOTDIR ||
			       errno == EISDIR
		       ? -ESTALE
		       : -errno;
}

/* On a file system that cannot exchange names. The old object was looked at just now. */
static int put_in_place_of(int directory_fd, const char *temporary, const char *name,
			   const struct review_change *change)
{
	int error = 0;

	/* A directory and something else do not replace one another. */
	if (S_ISDIR(change->host.mode) != S_ISDIR(change->wanted.mode))
		error = remove_name(directory_fd, name, &change->host);
	if (!error && renameat(directory_fd, temporary, directory_fd, name))
		error = -errno;
	return error;
}

/*
 * Gives @temporary, a name in the directory, the name that it is for. Where the host has an object,
 * the two change places: then nothing is lost when it turns out to be another than expected.
 */
static int put_in_place(int directory_fd, const char *temporary, const char *name,
			const struct review_change *change)
{
	int error = check_host(directory_fd, name, change);

	if (error)
		return error;
	if (!change->host.mode) {
		if (renameat2(directory_fd, temporary, directory_fd, name, RENAME_NOREPLACE) == 0)
			return 0;
		return errno == EEXIST ? -ESTALE : -errno;
	}
	if (renameat2(directory_fd, temporary, directory_fd, name, RENAME_EXCHANGE)) {
		if (errno == EINVAL || errno == ENOSYS)
			return put_in_place_of(directory_fd, temporary, name, change);
		return errno == ENOENT ? -ESTALE : -errno;
	}
	error = check_host(directory_fd, temporary, change);
	if (!error)
		error = remove_name(directory_fd, temporary, &change->host);
	if (error)
		renameat2(directory_fd, temporary, directory_fd, name, RENAME_EXCHANGE);
	return error;
}

/* A file that has no name yet, if the file system can, else one called @temporary. fd or -errno. */
static int create_file(int directory_fd, const char *temporary, bool *named)
{
	int fd = openat(directory_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	*named = fd < 0;
	if (fd < 0)
		fd = openat(directory_fd, temporary,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* As long as it is locked, nobody who finds the name takes it for a dead process's. */
	if (fd >= 0)
		flock(fd, LOCK_EX | LOCK_NB);
	return fd < 0 ? -errno : fd;
}

static int name_file(int fd, int directory_fd, const char *temporary)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, directory_fd, temporary, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Content, attributes, owner and mode, all on the disk. */
static int fill_file(int fd, int upper_file, const struct review_change *change)
{
	int error = copy_content(upper_file, fd);

	if (!error)
		error = copy_attributes(upper_file, fd);
	/* A file that belonged to another stays so where we may do that. */
	if (!error && change->host.mode && fchown(fd, change->host.owner, change->host.group) &&
	    errno != EPERM)
		error = -errno;
	if (!error && fchmod(fd, change->wanted.mode & PERMISSIONS))
		error = -errno;
	if (!error && fsync(fd))
		error = -errno;
	return error;
}

static int make_file(const struct review_share *share, const struct review_change *change,
		     int directory_fd, const char *temporary)
{
	int FD_CLEANUP upper_file = upper_open_file(share->upper_fd, change->path);
	bool named;
	int error, FD_CLEANUP fd = -1;

	if (upper_file < 0)
		return upper_file;
	fd = create_file(directory_fd, temporary, &named);
	if (fd < 0)
		return fd;
	error = fill_file(fd, upper_file, change);
	if (!error && !named)
		error = name_file(fd, directory_fd, temporary);
	if (error && named)
		unlinkat(directory_fd, temporary, 0);
	return error;
}

static int make_link(const struct review_share *share, const struct review_change *change,
		     int directory_fd, const char *temporary)
{
	char target[LIMIT_FS_SYMLINK_BYTES + 1];
	ssize_t length = tree_read_link(share->upper_fd, change->path, target);

	if (length < 0)
		return (int)length;
	return symlinkat(target, directory_fd, temporary) ? -errno : 0;
}

/* A directory, fifo or socket. The umask has a say in what is made, so the mode is set once more; a
 * directory keeps the set-group-ID bit that it got from the one it is in. */
static int make_node(const struct review_change *change, int directory_fd, const char *temporary)
{
	bool directory = S_ISDIR(change->wanted.mode);
	mode_t mode = change->wanted.mode & PERMISSIONS;
	struct review_object made;
	int error, FD_CLEANUP fd = -1;

	if (directory)
		error = mkdirat(directory_fd, temporary, S_IRWXU);
	else
		error = mknodat(directory_fd, temporary,
				(change->wanted.mode & S_IFMT) | S_IRUSR | S_IWUSR, 0);
	if (error)
		return -errno;
	fd = tree_open_entry(directory_fd, temporary);
	error = fd < 0 ? fd : tree_status(fd, &made);
	if (!error && directory)
		mode |= S_IRWXU | (made.mode & S_ISGID);
	if (!error)
		error = tree_change_mode(fd, mode);
	if (error)
		unlinkat(directory_fd, temporary, directory ? AT_REMOVEDIR : 0);
	return error;
}

int place_object(const struct review_share *share, const struct review_change *change)
{
	const char *name;
	int FD_CLEANUP directory_fd = open_parent(share, change, &name);
	char temporary[TEMPORARY_NAME_BYTES];
	int error;

	if (directory_fd < 0)
		return directory_fd;
	error = make_temporary_name(temporary);
	if (error)
		return error;
	if (S_ISREG(change->wanted.mode))
		error = make_file(share, change, directory_fd, temporary);
	else if (S_ISLNK(change->wanted.mode))
		error = make_link(share, change, directory_fd, temporary);
	else
		error = make_node(change, directory_fd, temporary);
	if (error)
		return error;
	error = put_in_place(directory_fd, temporary, name, change);
	if (error)
		unlinkat(directory_fd, temporary, S_ISDIR(change->wanted.mode) ? AT_REMOVEDIR : 0);
	return error;
}

int place_mode(const struct review_share *share, const struct review_change *change)
{
	const char *name;
	int FD_CLEANUP directory_fd = open_parent(share, change, &name);
	int FD_CLEANUP fd = -1;
	struct review_object now;
	mode_t kept;
	int error;

	if (directory_fd < 0)
		return directory_fd;
	fd = tree_open_entry(directory_fd, name);
	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	error = tree_status(fd, &now);
	if (error)
		return error;
	if ((now.mode & S_IFMT) != (change->wanted.mode & S_IFMT) ||
	    (change->host.mode && !review_object_same(&now, &change->host)))
		return -ESTALE;
	kept = S_ISDIR(now.mode) ? now.mode & (S_ISUID | S_ISGID | S_ISVTX) : 0;
	return tree_change_mode(fd, kept | (change->wanted.mode & PERMISSIONS));
}

int place_deletion(const struct review_share *share, const struct review_change *change)
{
	const char *name;
	int FD_CLEANUP directory_fd = open_parent(share, change, &name);
	int error;

	if (directory_fd < 0)
		return directory_fd;
	error = check_host(directory_fd, name, change);
	if (error)
		return error;
	return remove_name(directory_fd, name, &change->host);
}
