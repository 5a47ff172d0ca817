/* SPDX-License-Identifier: Apache-2.0 */
/* chown(2), and whose a new file is. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define SOMEONE 4321U

static const char *const names[] = {"f", "d", "l", "p"};

static void check_owner(struct suite *suite, const char *path, uid_t user, gid_t group,
			const char *what)
{
	struct stat status;

	check_result(suite, lstat(path, &status), 0, "lstat %s after %s", path, what);
	check_equal(suite, status.st_uid, user, "owner of %s after %s", path, what);
	check_equal(suite, status.st_gid, group, "group of %s after %s", path, what);
}

/* To whom a file belongs already it may always be given. */
static void check_to_owner(struct suite *suite)
{
	uid_t user = suite->user;
	gid_t group = suite->group_id;

	for (int i = 0; i < 4; i++) {
		check_owner(suite, names[i], user, group, "its making");
		check_result(suite, lchown(names[i], user, group), 0, "lchown %s to its owner",
			     names[i]);
		check_result(suite, lchown(names[i], user, (gid_t)-1), 0, "lchown %s, user alone",
			     names[i]);
		check_result(suite, lchown(names[i], (uid_t)-1, group), 0, "lchown %s, group alone",
			     names[i]);
		check_result(suite, lchown(names[i], (uid_t)-1, (gid_t)-1), 0, "lchown %s of none",
			     names[i]);
		check_owner(suite, names[i], user, group, "chown to its owner");
	}
	if (!suite->privileged)
		check_equal(suite, user, geteuid(), "the owner of one's own file");
	check_result(suite, chown("l", user, group), 0, "chown through a symlink");
	int fd = must(suite, open("f", O_RDONLY), "open");

	check_result(suite, fchown(fd, user, group), 0, "fchown to its owner");
	check_result(suite, fchownat(fd, "", user, group, AT_EMPTY_PATH), 0,
		     "fchownat AT_EMPTY_PATH to its owner");
	check_result(suite, fchownat(AT_FDCWD, "f", user, group, 1), EINVAL,
		     "fchownat of a bad flag");
	close(fd);
	check_result(suite, fchown(fd, user, group), EBADF, "fchown of a closed descriptor");
}

/* An ordinary user can give a file to nobody else, nor to a group that is not theirs. */
static void check_ordinary(struct suite *suite)
{
	for (int i = 0; i < 4; i++) {
		check_result(suite, lchown(names[i], SOMEONE, (gid_t)-1), EPERM,
			     "lchown %s to another user", names[i]);
		check_result(suite, lchown(names[i], 0, (gid_t)-1), EPERM, "lchown %s to root",
			     names[i]);
		check_result(suite, lchown(names[i], (uid_t)-1, SOMEONE), EPERM,
			     "lchown %s to a group not one's own", names[i]);
		check_owner(suite, names[i], suite->user, suite->group_id, "such a chown");
	}
}

static void check_root(struct suite *suite)
{
	for (int i = 0; i < 4; i++) {
		uid_t user =
			(uid_t)expect_unless(suite, DEVIATION_CHOWN, SOMEONE, (int)suite->user);
		gid_t group =
			(gid_t)expect_unless(suite, DEVIATION_CHOWN, SOMEONE, (int)suite->group_id);

		check_result(suite, lchown(names[i], SOMEONE, SOMEONE),
			     expect_unless(suite, DEVIATION_CHOWN, 0, EPERM),
			     "lchown %s to another as root", names[i]);
		check_owner(suite, names[i], user, group, "chown to another as root");
		check_result(suite, lchown(names[i], suite->user, suite->group_id), 0,
			     "lchown %s back", names[i]);
		check_owner(suite, names[i], suite->user, suite->group_id, "chown back");
	}
}

static void make_as_another(struct suite *suite)
{
	uid_t user = (uid_t)expect_unless(suite, DEVIATION_OWNER, SOMEONE, (int)suite->user);
	gid_t group = (gid_t)expect_unless(suite, DEVIATION_OWNER, SOMEONE, (int)suite->group_id);
	int fd;

	must(suite, setgroups(0, NULL), "setgroups");
	must(suite, setresgid(SOMEONE, SOMEONE, SOMEONE), "setresgid");
	must(suite, setresuid(SOMEONE, SOMEONE, SOMEONE), "setresuid");
	fd = open("open/f", O_WRONLY | O_CREAT, 0644);
	check_result(suite, fd, 0, "open O_CREAT as another user");
	close(fd);
	check_result(suite, mkdir("open/d", 0755), 0, "mkdir as another user");
	check_result(suite, symlink("x", "open/l"), 0, "symlink as another user");
	check_result(suite, mkfifo("open/p", 0644), 0, "mkfifo as another user");
	check_owner(suite, "open/f", user, group, "making it as another");
	check_owner(suite, "open/d", user, group, "making it as another");
	check_owner(suite, "open/l", user, group, "making it as another");
	check_owner(suite, "open/p", user, group, "making it as another");
}

void conform_owner(struct suite *suite)
{
	int fd = must(suite, open("f", O_WRONLY | O_CREAT, 0644), "making a file");

	close(fd);
	must(suite, mkdir("d", 0755), "mkdir");
	must(suite, symlink("f", "l"), "symlink");
	must(suite, mkfifo("p", 0644), "mkfifo");
	check_to_owner(suite);
	if (!suite->privileged) {
		check_ordinary(suite);
		return;
	}
	check_root(suite);
	must(suite, mkdir("open", 0755), "mkdir");
	must(suite, chmod("open", 0777), "chmod");
	must(suite, chmod(".", 0755), "chmod");
	check_in_process(suite, "another user", make_as_another);
}
