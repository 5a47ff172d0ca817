/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that look at or change what a path leads to, each on every kind of file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/subject.h"

/*
 * What an operation answers, by what the path leads to: links are followed unless @itself is set,
 * and then @link is the answer for a link. Paths that lead nowhere have one answer for all.
 */
struct path_operation {
	const char *name;
	long (*run)(const char *path);
	bool itself;
	bool early; /* refused whatever the path is: @file is the answer for all */
	int file, directory, link, fifo, socket;
};

static long run_stat(const char *path)
{
	struct stat status;

	return stat(path, &status);
}

static long run_lstat(const char *path)
{
	struct stat status;

	return lstat(path, &status);
}

static long run_statx(const char *path)
{
	struct statx status;

	return statx(AT_FDCWD, path, 0, STATX_ALL, &status);
}

static long run_statx_itself(const char *path)
{
	struct statx status;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS,
		     &status);
}

static long run_statx_flags(const char *path)
{
	struct statx status;

	return statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, 0, &status);
}

static long run_statvfs(const char *path)
{
	struct statvfs status;

	return statvfs(path, &status);
}

static long run_exists(const char *path)
{
	return access(path, F_OK);
}

static long run_read_access(const char *path)
{
	return access(path, R_OK);
}

static long run_write_access(const char *path)
{
	return access(path, W_OK);
}

static long run_execute_access(const char *path)
{
	return access(path, X_OK);
}

static long run_effective_access(const char *path)
{
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS);
}

static long run_bad_access(const char *path)
{
	return access(path, 8);
}

static long run_chmod(const char *path)
{
	return chmod(path, 0755);
}

static long run_chmod_itself(const char *path)
{
	return fchmodat(AT_FDCWD, path, 0755, AT_SYMLINK_NOFOLLOW);
}

static long run_chown(const char *path)
{
	return chown(path, (uid_t)-1, (gid_t)-1);
}

static long run_chown_user(const char *path)
{
	struct stat status;

	return stat(path, &status) ? -1 : chown(path, status.st_uid, status.st_gid);
}

static long run_lchown(const char *path)
{
	struct stat status;

	return lstat(path, &status) ? -1 : lchown(path, status.st_uid, status.st_gid);
}

static long run_times(const char *path)
{
	static const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};

	return utimensat(AT_FDCWD, path, times, 0);
}

static long run_times_now(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static long run_times_itself(const char *path)
{
	static const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};

	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

static long run_times_nanoseconds(const char *path)
{
	static const struct timespec times[2] = {{.tv_nsec = 1000000000}, {.tv_nsec = 0}};

	return utimensat(AT_FDCWD, path, times, 0);
}

static long run_truncate(const char *path)
{
	return truncate(path, (off_t)strlen(SUBJECT_CONTENT));
}

static long run_truncate_negative(const char *path)
{
	return truncate(path, -1);
}

static long run_readlink(const char *path)
{
	char target[PATH_MAX];

	return readlink(path, target, sizeof(target));
}

static long run_chdir(const char *path)
{
	int here = open(".", O_RDONLY | O_DIRECTORY);
	long result = chdir(path);
	int error = errno;

	if (fchdir(here))
		_exit(1);
	close(here);
	errno = error;
	return result;
}

static long run_exec(const char *path)
{
	char name[] = "x";
	char *arguments[] = {name, NULL};

	return execve(path, arguments, NULL);
}

static long run_getxattr(const char *path)
{
	char value[16];

	return getxattr(path, "user.none", value, sizeof(value));
}

static long run_lgetxattr(const char *path)
{
	char value[16];

	return lgetxattr(path, "user.none", value, sizeof(value));
}

static long run_setxattr(const char *path)
{
	return setxattr(path, "user.some", "v", 1, 0);
}

static long run_setxattr_replace(const char *path)
{
	return setxattr(path, "user.none", "v", 1, XATTR_REPLACE);
}

static long run_lsetxattr(const char *path)
{
	return lsetxattr(path, "user.some", "v", 1, 0);
}

static long run_listxattr(const char *path)
{
	char names[256];

	return listxattr(path, names, sizeof(names));
}

static long run_llistxattr(const char *path)
{
	char names[256];

	return llistxattr(path, names, sizeof(names));
}

static long run_removexattr(const char *path)
{
	return removexattr(path, "user.none");
}

static long run_lremovexattr(const char *path)
{
	return lremovexattr(path, "user.none");
}

static const struct path_operation operations[] = {
	{"stat", run_stat, false, false, 0, 0, 0, 0, 0},
	{"lstat", run_lstat, true, false, 0, 0, 0, 0, 0},
	{"statx", run_statx, false, false, 0, 0, 0, 0, 0},
	{"statx AT_SYMLINK_NOFOLLOW", run_statx_itself, true, false, 0, 0, 0, 0, 0},
	{"statx of both sync flags", run_statx_flags, false, true, EINVAL, 0, 0, 0, 0},
	{"statvfs", run_statvfs, false, false, 0, 0, 0, 0, 0},
	{"access F_OK", run_exists, false, false, 0, 0, 0, 0, 0},
	{"access R_OK", run_read_access, false, false, 0, 0, 0, 0, 0},
	{"access W_OK", run_write_access, false, false, 0, 0, 0, 0, 0},
	/* Without any x bit not even root may. */
	{"access X_OK", run_execute_access, false, false, EACCES, 0, 0, EACCES, EACCES},
	{"faccessat AT_EACCESS", run_effective_access, false, false, 0, 0, 0, 0, 0},
	{"access 8", run_bad_access, false, true, EINVAL, 0, 0, 0, 0},
	{"chown to nobody else", run_chown, false, false, 0, 0, 0, 0, 0},
	{"chown to the owner", run_chown_user, false, false, 0, 0, 0, 0, 0},
	{"lchown to the owner", run_lchown, true, false, 0, 0, 0, 0, 0},
	{"utimensat", run_times, false, false, 0, 0, 0, 0, 0},
	{"utimensat now", run_times_now, false, false, 0, 0, 0, 0, 0},
	{"utimensat AT_SYMLINK_NOFOLLOW", run_times_itself, true, false, 0, 0, 0, 0, 0},
	{"utimensat of 10^9 ns", run_times_nanoseconds, false, false, EINVAL, EINVAL, 0, EINVAL,
	 EINVAL},
	{"truncate", run_truncate, false, false, 0, EISDIR, 0, EINVAL, EINVAL},
	{"truncate to -1", run_truncate_negative, false, true, EINVAL, 0, 0, 0, 0},
	{"readlink", run_readlink, true, false, EINVAL, EINVAL, 0, EINVAL, EINVAL},
	{"chdir", run_chdir, false, false, ENOTDIR, 0, 0, ENOTDIR, ENOTDIR},
	{"execve", run_exec, false, false, EACCES, EACCES, 0, EACCES, EACCES},
	{"getxattr", run_getxattr, false, false, ENODATA, ENODATA, 0, ENODATA, ENODATA},
	{"lgetxattr", run_lgetxattr, true, false, ENODATA, ENODATA, ENODATA, ENODATA, ENODATA},
	/* xattr(7): user attributes are for regular files and directories */
	{"setxattr", run_setxattr, false, false, 0, 0, 0, EPERM, EPERM},
	{"setxattr XATTR_REPLACE", run_setxattr_replace, false, false, ENODATA, ENODATA, 0, EPERM,
	 EPERM},
	{"lsetxattr", run_lsetxattr, true, false, 0, 0, EPERM, EPERM, EPERM},
	{"listxattr", run_listxattr, false, false, 0, 0, 0, 0, 0},
	{"llistxattr", run_llistxattr, true, false, 0, 0, 0, 0, 0},
	{"removexattr", run_removexattr, false, false, ENODATA, ENODATA, 0, EPERM, EPERM},
	{"lremovexattr", run_lremovexattr, true, false, ENODATA, ENODATA, EPERM, EPERM, EPERM},
	{"chmod AT_SYMLINK_NOFOLLOW", run_chmod_itself, true, false, 0, 0, EOPNOTSUPP, 0, 0},
	{"chmod", run_chmod, false, false, 0, 0, 0, 0, 0},
};

static int expect_operation(const struct path_operation *operation, enum subject subject)
{
	mode_t type = subject_target_type(subject);

	if (operation->early)
		return operation->file;
	if (operation->itself) {
		if (subject_path_error(subject))
			return subject_path_error(subject);
		type = subject_type(subject);
		if (!type)
			return ENOENT;
	} else if (subject_follow_error(subject)) {
		return subject_follow_error(subject);
	}
	switch (type) {
	case S_IFREG:
		return operation->file;
	case S_IFDIR:
		return operation->directory;
	case S_IFIFO:
		return operation->fifo;
	case S_IFSOCK:
		return operation->socket;
	default:
		return operation->link;
	}
}

void conform_path_operations(struct suite *suite)
{
	struct subject_state before, after;
	char path[PATH_MAX + 2];
	long result;

	for (int subject = 0; subject < SUBJECT_COUNT; subject++) {
		subject_make(suite, (enum subject)subject, "subject");
		subject_path((enum subject)subject, "subject", path);
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
			int wanted = expect_operation(&operations[i], (enum subject)subject);
			const char *name = operations[i].name;

			before = subject_state("subject");
			result = operations[i].run(path);
			check_result(suite, result, wanted, "%s of %s", name,
				     subject_name((enum subject)subject));
			after = subject_state("subject");
			if (wanted || (operations[i].run != run_chmod &&
				       operations[i].run != run_chmod_itself))
				check_true(suite, subject_same(&before, &after),
					   "%s of %s leaves type, mode, links and size", name,
					   subject_name((enum subject)subject));
		}
		subject_remove(suite, (enum subject)subject, "subject");
	}
}

/* A path that ends in a slash names a directory, and follows a link that is its last part. */
void conform_trailing_slash(struct suite *suite)
{
	static const struct {
		enum subject subject;
		int stat, unlink, rmdir, mkdir, rename;
	} rows[] = {
		{SUBJECT_MISSING, ENOENT, ENOENT, ENOENT, 0, ENOENT},
		{SUBJECT_FILE, ENOTDIR, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
		{SUBJECT_DIRECTORY, 0, EISDIR, 0, EEXIST, 0},
		{SUBJECT_FULL_DIRECTORY, 0, EISDIR, ENOTEMPTY, EEXIST, 0},
		{SUBJECT_LINK_TO_FILE, ENOTDIR, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
		{SUBJECT_LINK_TO_DIRECTORY, 0, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
		{SUBJECT_LINK_TO_NOTHING, ENOENT, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
		{SUBJECT_LINK_TO_ITSELF, ELOOP, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
		{SUBJECT_FIFO, ENOTDIR, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
		{SUBJECT_SOCKET, ENOTDIR, ENOTDIR, ENOTDIR, EEXIST, ENOTDIR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = subject_name(rows[i].subject);

		subject_make(suite, rows[i].subject, "s");
		check_result(suite, run_stat("s/"), rows[i].stat, "stat of %s and a slash", name);
		check_result(suite, run_lstat("s/"), rows[i].stat, "lstat of %s and a slash", name);
		check_result(suite, unlink("s/"), rows[i].unlink, "unlink of %s and a slash", name);
		check_result(suite, rename("s/", "t"), rows[i].rename, "rename of %s and a slash",
			     name);
		if (rows[i].rename == 0)
			check_result(suite, rename("t", "s/"), 0,
				     "rename of %s to a name and a slash", name);
		check_result(suite, rmdir("s/"), rows[i].rmdir, "rmdir of %s and a slash", name);
		if (rows[i].rmdir == 0)
			subject_make(suite, rows[i].subject, "s");
		check_result(suite, mkdir("s/", 0755), rows[i].mkdir, "mkdir of %s and a slash",
			     name);
		subject_remove(suite, rows[i].subject, "s");
	}
}
