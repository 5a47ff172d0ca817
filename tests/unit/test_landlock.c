/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is confined to two directories, one of them to read: what it can do and what not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/jail/landlock.h"

static char place[64];

static int make_place(void **state)
{
	char command[256];

	(void)state;
	strcpy(place, "/dev/shm/mvagent-landlock-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir own read other own/d && echo x | tee own/f read/f other/f "
		 ">/dev/null",
		 place);
	return system(command);
}

static int remove_place(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", place);
	return system(command);
}

static int open_in(const char *directory, const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", place, directory, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* In a child: a number of the first expectation that fails, or 0. -EOPNOTSUPP: 77. */
static int confined(void)
{
	struct jail_directory directories[] = {
		{open_in("own", "", O_PATH | O_DIRECTORY), true, false},
		{open_in("read", "", O_PATH | O_DIRECTORY), false, true},
		{-1, true, false},
	};
	int before = open_in("other", "f", O_RDONLY), error;
	char byte;

	error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (error)
		return 10;
	error = landlock_confine(directories, 3, false);
	if (error)
		return error == -EOPNOTSUPP ? 77 : 1;
	if (open_in("own", "f", O_RDWR) < 0 || open_in("own", "new", O_RDWR | O_CREAT) < 0)
		return 2;
	if (renameat(directories[0].fd, "new", directories[0].fd, "d/new"))
		return 3;
	if (open_in("read", "f", O_RDONLY) < 0)
		return 4;
	if (open_in("read", "f", O_RDWR) != -EACCES ||
	    open_in("read", "new", O_RDWR | O_CREAT) != -EACCES ||
	    unlinkat(directories[1].fd, "f", 0) == 0)
		return 5;
	if (open_in("other", "f", O_RDONLY) != -EACCES || open("/etc/passwd", O_RDONLY) >= 0)
		return 6;
	/* Nor by a link that leads out, nor a device where none may be made. */
	if (symlinkat("../other/f", directories[0].fd, "out") ||
	    open_in("own", "out", O_RDONLY) != -EACCES ||
	    mknodat(directories[0].fd, "null", S_IFCHR | 0666, 0x103) == 0)
		return 7;
	/* But a whiteout where they are allowed. */
	if (mknodat(directories[1].fd, "whiteout", S_IFCHR, 0))
		return 9;
	/* What was open stays so. */
	return read(before, &byte, 1) == 1 && byte == 'x' ? 0 : 8;
}

static void test_confined(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		_exit(confined());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* this kernel has no Landlock */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_confined)};

	return cmocka_run_group_tests_name("landlock", tests, make_place, remove_place);
}
