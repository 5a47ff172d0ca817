/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that make or remove one name, each on every kind of file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/subject.h"

struct create_operation {
	const char *name;
	long (*run)(const char *path);
	mode_t made; /* the type of what it makes; 0: it removes */
};

static long run_mkdir(const char *path)
{
	return mkdir(path, 0750);
}

static long run_mkfifo(const char *path)
{
	return mkfifo(path, 0640);
}

static long run_mknod_file(const char *path)
{
	return mknod(path, S_IFREG | 0640, 0);
}

static long run_mknod_plain(const char *path)
{
	return mknod(path, 0640, 0);
}

static long run_mknod_socket(const char *path)
{
	return mknod(path, S_IFSOCK | 0640, 0);
}

static long run_symlink(const char *path)
{
	return symlink("anything", path);
}

static long run_link(const char *path)
{
	return link("source", path);
}

static long run_rename(const char *path)
{
	int fd = open("moved", O_WRONLY | O_CREAT, 0640);
	long result;

	close(fd);
	result = renameat2(AT_FDCWD, "moved", AT_FDCWD, path, RENAME_NOREPLACE);
	return result;
}

static long run_unlink(const char *path)
{
	return unlink(path);
}

static long run_rmdir(const char *path)
{
	return rmdir(path);
}

static long run_remove(const char *path)
{
	return remove(path);
}

static const struct create_operation operations[] = {
	{"mkdir", run_mkdir, S_IFDIR},
	{"mkfifo", run_mkfifo, S_IFIFO},
	{"mknod S_IFREG", run_mknod_file, S_IFREG},
	{"mknod of no type", run_mknod_plain, S_IFREG},
	{"mknod S_IFSOCK", run_mknod_socket, S_IFSOCK},
	{"symlink", run_symlink, S_IFLNK},
	{"link", run_link, S_IFREG},
	{"rename RENAME_NOREPLACE", run_rename, S_IFREG},
	{"unlink", run_unlink, 0},
	{"rmdir", run_rmdir, 0},
	{"remove", run_remove, 0},
};

static int expect_removal(const struct create_operation *operation, enum subject subject)
{
	bool directory = subject_type(subject) == S_IFDIR;

	if (!subject_type(subject))
		return ENOENT;
	if (operation->run == run_unlink)
		return directory ? EISDIR : 0;
	if (operation->run == run_rmdir && !directory)
		return ENOTDIR;
	return subject == SUBJECT_FULL_DIRECTORY ? ENOTEMPTY : 0;
}

static int expect_operation(const struct create_operation *operation, enum subject subject)
{
	if (subject_path_error(subject))
		return subject_path_error(subject);
	if (!operation->made)
		return expect_removal(operation, subject);
	return subject_type(subject) ? EEXIST : 0;
}

static void check_made(struct suite *suite, const struct create_operation *operation,
		       const struct stat *parent)
{
	bool directory = operation->made == S_IFDIR;
	mode_t mode = directory ? 0750 : 0640;
	struct stat status, after;

	if (!check_result(suite, lstat("s", &status), 0, "lstat after %s", operation->name))
		return;
	check_equal(suite, status.st_mode & S_IFMT, operation->made, "type after %s",
		    operation->name);
	if (operation->made != S_IFLNK && operation->run != run_link)
		check_equal(suite, status.st_mode & 07777, mode, "mode after %s", operation->name);
	check_equal(suite, status.st_uid, suite->user, "owner after %s", operation->name);
	check_equal(suite, status.st_gid, suite->group_id, "group after %s", operation->name);
	check_equal(suite, status.st_nlink, directory || operation->run == run_link ? 2 : 1,
		    "links after %s", operation->name);
	stat(".", &after);
	check_equal(suite, after.st_nlink, parent->st_nlink + directory,
		    "links of the directory after %s", operation->name);
}

static void check_operation(struct suite *suite, const struct create_operation *operation,
			    enum subject subject)
{
	const char *what = subject_name(subject);
	struct subject_state before, after;
	int wanted = expect_operation(operation, subject);
	struct stat parent = {0}, now;
	char path[PATH_MAX + 2];

	subject_make(suite, subject, "s");
	before = subject_state("s");
	must(suite, stat(".", &parent), "stat of .");
	check_result(suite, operation->run(subject_path(subject, "s", path)), wanted, "%s of %s",
		     operation->name, what);
	if (wanted) {
		after = subject_state("s");
		check_true(suite, subject_same(&before, &after), "%s of %s changes nothing",
			   operation->name, what);
	} else if (operation->made) {
		check_made(suite, operation, &parent);
	} else {
		check_result(suite, access("s", F_OK), ENOENT, "access after %s of %s",
			     operation->name, what);
		stat(".", &now);
		check_equal(suite, now.st_nlink,
			    parent.st_nlink - (subject_type(subject) == S_IFDIR),
			    "links of the directory after %s of %s", operation->name, what);
	}
	subject_remove(suite, subject, "s");
}

/* The names that every directory has. */
static void check_dots(struct suite *suite)
{
	must(suite, mkdir("d", 0755), "mkdir");
	check_result(suite, mkdir(".", 0755), EEXIST, "mkdir .");
	check_result(suite, mkdir("d/..", 0755), EEXIST, "mkdir d/..");
	check_result(suite, rmdir("."), EINVAL, "rmdir .");
	check_result(suite, rmdir("d/."), EINVAL, "rmdir d/.");
	check_result(suite, rmdir(".."), ENOTEMPTY, "rmdir ..");
	check_result(suite, unlink("."), EISDIR, "unlink .");
	check_result(suite, unlink("d/.."), EISDIR, "unlink d/..");
	check_result(suite, symlink("x", "."), EEXIST, "symlink .");
	check_result(suite, link("source", "d/."), EEXIST, "link to d/.");
	check_result(suite, mkfifo("..", 0600), EEXIST, "mkfifo ..");
	check_result(suite, rename(".", "x"), EBUSY, "rename . to x");
	check_result(suite, rename("d/..", "x"), EBUSY, "rename d/.. to x");
	check_result(suite, rename("d", "."), EBUSY, "rename d to .");
	check_result(suite, unlinkat(AT_FDCWD, "d", 0x1000), EINVAL, "unlinkat of a bad flag");
	check_result(suite, mkdir(check_bad_address(), 0755), EFAULT, "mkdir of a bad address");
	check_result(suite, unlink(check_bad_address()), EFAULT, "unlink of a bad address");
	check_result(suite, mknod("n", S_IFDIR | 0755, 0), EPERM, "mknod S_IFDIR");
	check_result(suite, mknod("n", S_IFLNK | 0755, 0), EINVAL, "mknod S_IFLNK");
	check_result(suite, unlinkat(AT_FDCWD, "d", AT_REMOVEDIR), 0, "unlinkat AT_REMOVEDIR");
}

void conform_create_remove(struct suite *suite)
{
	int fd = open("source", O_WRONLY | O_CREAT, 0640);

	must(suite, fd, "making a file");
	close(fd);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (int subject = 0; subject < SUBJECT_COUNT; subject++)
			check_operation(suite, &operations[i], (enum subject)subject);
	check_dots(suite);
	unlink("moved");
	unlink("source");
}
