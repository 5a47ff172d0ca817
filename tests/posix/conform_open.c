/* SPDX-License-Identifier: Apache-2.0 */
/* open(2): every combination of flags on every kind of file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/subject.h"

static const int access_modes[] = {O_RDONLY, O_WRONLY, O_RDWR};
static const int modifiers[] = {O_CREAT, O_EXCL, O_TRUNC, O_DIRECTORY, O_NOFOLLOW};
static const char *const access_names[] = {"O_RDONLY", "O_WRONLY", "O_RDWR"};
static const char *const modifier_names[] = {"O_CREAT", "O_EXCL", "O_TRUNC", "O_DIRECTORY",
					     "O_NOFOLLOW"};

#define MODIFIER_COUNT        (sizeof(modifiers) / sizeof(modifiers[0]))
#define MODIFIER_COMBINATIONS (1U << MODIFIER_COUNT)

/* What open(2) answers when the path ends in something that is there, links followed. */
static int expect_existing(mode_t type, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if (type == S_IFDIR)
		return (flags & O_CREAT) || writes ? EISDIR : 0;
	if (flags & O_DIRECTORY)
		return ENOTDIR;
	if (type == S_IFSOCK)
		return ENXIO;
	/* fifo(7): nobody reads it, and O_NONBLOCK is set */
	if (type == S_IFIFO)
		return (flags & O_ACCMODE) == O_WRONLY ? ENXIO : 0;
	return 0;
}

static int expect_open(enum subject subject, int flags)
{
	bool exclusive = (flags & O_CREAT) && (flags & O_EXCL);
	mode_t type = subject_type(subject);

	if ((flags & O_CREAT) && (flags & O_DIRECTORY))
		return EINVAL; /* since Linux 6.4; an error before that as well */
	if (subject_path_error(subject))
		return subject_path_error(subject);
	if (type && exclusive)
		return EEXIST;
	if (type == S_IFLNK) {
		if (flags & O_NOFOLLOW)
			return flags & O_DIRECTORY ? ENOTDIR : ELOOP;
		if (subject == SUBJECT_LINK_TO_ITSELF)
			return ELOOP;
		type = subject_target_type(subject);
	}
	if (!type)
		return flags & O_CREAT ? 0 : ENOENT;
	return expect_existing(type, flags);
}

static void name_flags(int access_index, unsigned int combination, char *text, size_t size)
{
	int used = snprintf(text, size, "%s", access_names[access_index]);

	for (size_t i = 0; i < MODIFIER_COUNT; i++)
		if (combination & 1U << i)
			used += snprintf(text + used, size - (size_t)used, "|%s",
					 modifier_names[i]);
}

/* What follows from an open that succeeded: the right object, the right size. */
static void check_opened(struct suite *suite, int fd, enum subject subject, int flags,
			 const char *what)
{
	mode_t type = subject_target_type(subject);
	struct stat status;

	if (!check_result(suite, fstat(fd, &status), 0, "fstat after %s", what))
		return;
	check_equal(suite, status.st_mode & S_IFMT, type ? type : S_IFREG, "type after %s", what);
	if (!type)
		check_equal(suite, status.st_mode & 07777, 0640, "mode of the new file after %s",
			    what);
	if (!type || type == S_IFREG)
		check_equal(suite, status.st_size,
			    !type || (flags & O_TRUNC) ? 0 : (long)strlen(SUBJECT_CONTENT),
			    "size after %s", what);
	check_equal(suite, fcntl(fd, F_GETFL) & O_ACCMODE, flags & O_ACCMODE, "F_GETFL after %s",
		    what);
}

static void try_open(struct suite *suite, enum subject subject, const char *path, int flags,
		     const char *flag_names)
{
	struct subject_state before = subject_state("subject"), after;
	int wanted = expect_open(subject, flags);
	char what[256];
	int fd;

	snprintf(what, sizeof(what), "open %s %s", subject_name(subject), flag_names);
	fd = open(path, flags | O_NONBLOCK, 0640);
	check_result(suite, fd, wanted, "%s", what);
	if (fd >= 0) {
		check_opened(suite, fd, subject, flags, what);
		close(fd);
	} else {
		after = subject_state("subject");
		check_true(suite, subject_same(&before, &after), "%s changes nothing", what);
	}
	/* Back to what it was, if that was touched. */
	if (fd >= 0 && ((flags & O_CREAT) || (flags & O_TRUNC))) {
		subject_remove(suite, subject, "subject");
		subject_make(suite, subject, "subject");
	}
}

void conform_open_flags(struct suite *suite)
{
	char path[PATH_MAX + 2], flag_names[128];

	for (int subject = 0; subject < SUBJECT_COUNT; subject++) {
		subject_make(suite, (enum subject)subject, "subject");
		subject_path((enum subject)subject, "subject", path);
		for (int mode = 0; mode < 3; mode++)
			for (unsigned int set = 0; set < MODIFIER_COMBINATIONS; set++) {
				int flags = access_modes[mode];

				for (size_t i = 0; i < MODIFIER_COUNT; i++)
					flags |= set & 1U << i ? modifiers[i] : 0;
				name_flags(mode, set, flag_names, sizeof(flag_names));
				try_open(suite, (enum subject)subject, path, flags, flag_names);
			}
		subject_remove(suite, (enum subject)subject, "subject");
	}
}

/* O_PATH opens anything, even a symlink itself, and gives no access. */
static void check_path_descriptor(struct suite *suite, enum subject subject, const char *path)
{
	const char *name = subject_name(subject);
	mode_t type = subject_type(subject);
	struct stat status;
	char byte;
	int wanted = subject_path_error(subject), fd;

	if (!wanted && !type)
		wanted = ENOENT;
	fd = open(path, O_PATH | O_NOFOLLOW);
	check_result(suite, fd, wanted, "open %s O_PATH|O_NOFOLLOW", name);
	if (fd >= 0) {
		check_result(suite, fstat(fd, &status), 0, "fstat of O_PATH of %s", name);
		check_equal(suite, status.st_mode & S_IFMT, type, "type of O_PATH of %s", name);
		check_result(suite, read(fd, &byte, 1), EBADF, "read from O_PATH of %s", name);
		check_result(suite, write(fd, "", 1), EBADF, "write to O_PATH of %s", name);
		check_result(suite, fchmod(fd, 0600), EBADF, "fchmod of O_PATH of %s", name);
		check_result(suite, ftruncate(fd, 0), EBADF, "ftruncate of O_PATH of %s", name);
		check_result(suite, fsync(fd), EBADF, "fsync of O_PATH of %s", name);
		close(fd);
	}
	fd = open(path, O_PATH);
	check_result(suite, fd, subject_follow_error(subject), "open %s O_PATH", name);
	if (fd >= 0)
		close(fd);
	wanted = subject_follow_error(subject);
	if (!wanted && subject_target_type(subject) != S_IFDIR)
		wanted = ENOTDIR;
	fd = open(path, O_PATH | O_DIRECTORY);
	check_result(suite, fd, wanted, "open %s O_PATH|O_DIRECTORY", name);
	if (fd >= 0)
		close(fd);
}

/* O_TMPFILE wants a directory to write in. */
static void check_unnamed(struct suite *suite, enum subject subject, const char *path)
{
	const char *name = subject_name(subject);
	int wanted = subject_follow_error(subject), fd;
	struct stat status;

	if (!wanted && subject_target_type(subject) != S_IFDIR)
		wanted = ENOTDIR;
	check_result(suite, open(path, O_TMPFILE | O_RDONLY, 0600), EINVAL,
		     "open %s O_TMPFILE|O_RDONLY", name);
	fd = open(path, O_TMPFILE | O_RDWR, 0600);
	check_result(suite, fd, wanted, "open %s O_TMPFILE|O_RDWR", name);
	if (fd < 0)
		return;
	check_result(suite, fstat(fd, &status), 0, "fstat of an unnamed file");
	check_equal(suite, status.st_nlink, 0, "links of an unnamed file");
	check_equal(suite, status.st_mode, S_IFREG | 0600, "mode of an unnamed file");
	check_equal(suite, write(fd, "abc", 3), 3, "write to an unnamed file");
	close(fd);
}

/* open(2) NOTES, creat(2), and descriptors that refer to what open gave. */
static void check_details(struct suite *suite)
{
	struct stat status;
	int fd;

	fd = creat("created", 0604);
	check_result(suite, fd, 0, "creat");
	check_equal(suite, fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY, "creat opens to write");
	check_equal(suite, write(fd, "x", 1), 1, "write after creat");
	close(fd);
	fd = creat("created", 0777);
	check_result(suite, fd, 0, "creat of what exists");
	check_result(suite, fstat(fd, &status), 0, "fstat after creat");
	check_equal(suite, status.st_size, 0, "creat truncates");
	check_equal(suite, status.st_mode & 07777, 0604, "creat keeps the mode of what exists");
	close(fd);
	/* A mode without a write bit does not bind the descriptor that made the file. */
	fd = open("read-only", O_RDWR | O_CREAT | O_EXCL, 0444);
	check_result(suite, fd, 0, "open O_CREAT|O_RDWR with mode 0444");
	check_equal(suite, write(fd, "x", 1), 1, "write to a new file of mode 0444");
	close(fd);
	check_result(suite, openat(AT_FDCWD, "created/", O_RDONLY), ENOTDIR,
		     "open a file with a trailing slash");
	check_result(suite, open("new/", O_RDWR | O_CREAT, 0600), EISDIR,
		     "open O_CREAT with a trailing slash");
	check_result(suite, open(".", O_RDWR | O_CREAT, 0600), EISDIR, "open . O_CREAT");
	check_result(suite, openat(-1, "created", O_RDONLY), EBADF, "openat a bad descriptor");
	fd = open("created", O_RDONLY);
	check_result(suite, openat(fd, "x", O_RDONLY), ENOTDIR, "openat a file's descriptor");
	close(fd);
	check_result(suite, open(check_bad_address(), O_RDONLY), EFAULT, "open a bad address");
	check_result(suite, unlink("created"), 0, "unlink");
	check_result(suite, unlink("read-only"), 0, "unlink");
}

void conform_open_other(struct suite *suite)
{
	char path[PATH_MAX + 2];

	for (int subject = 0; subject < SUBJECT_COUNT; subject++) {
		subject_make(suite, (enum subject)subject, "subject");
		subject_path((enum subject)subject, "subject", path);
		check_path_descriptor(suite, (enum subject)subject, path);
		check_unnamed(suite, (enum subject)subject, path);
		subject_remove(suite, (enum subject)subject, "subject");
	}
	check_details(suite);
}
