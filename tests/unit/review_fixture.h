/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run with one reviewed share, made by hand as mvagent-fs and the supervisor make it: host/ is
 * the shared directory, upper/ what the guest changed. Both are real directories, in /var/tmp:
 * attributes need a file system that has them.
 */
#ifndef TESTS_UNIT_REVIEW_FIXTURE_H
#define TESTS_UNIT_REVIEW_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/review/change.h"
#include "vmm/review/store.h"
#include "vmm/review/record.h"

struct review_fixture {
	char scratch[PATH_MAX];
	int host;  /* the shared directory */
	int upper; /* of share0 */
	int base;  /* to append lines to */
	int run;
	char name[REVIEW_RUN_NAME_BYTES];
};

static inline void fixture_shell(const struct review_fixture *fixture, const char *command)
{
	char line[2 * PATH_MAX];

	snprintf(line, sizeof(line), "cd '%s' && %s", fixture->scratch, command);
	if (system(line) != 0)
		fail_msg("failed: %s", command);
}

/* Puts run.json in place. @ended: 0 of a run that goes on or was killed. */
static inline void fixture_write_record(const struct review_fixture *fixture, time_t ended)
{
	char *words[] = {(char *)"make", (char *)"test all"};
	char host[PATH_MAX + 8];
	struct stat status;
	struct review_record record = {
		.command = {2, words},
		.started = 1796067993,
		.ended = ended,
		.share_count = 1,
	};

	snprintf(host, sizeof(host), "%s/host", fixture->scratch);
	assert_int_equal(fstat(fixture->host, &status), 0);
	record.shares[0] = (struct review_record_share){
		.host_path = host,
		.device = status.st_dev,
		.inode = status.st_ino,
		.upper = (char *)"share0/upper",
		.base = (char *)"share0/base",
	};
	assert_int_equal(review_record_write(&record, fixture->run), 0);
}

/* As it is when a run has ended; releases the run's lock. */
static inline void fixture_end_run(struct review_fixture *fixture)
{
	fixture_write_record(fixture, 1796068000);
	fd_close(&fixture->run);
}

/* A new run on the same host directory; the earlier one's descriptors are closed. */
static inline void fixture_begin_run(struct review_fixture *fixture)
{
	int FD_CLEANUP store = review_store_open(true), FD_CLEANUP directory = -1;
	char link[128];

	assert_int_equal(chdir(fixture->scratch), 0);
	fd_close(&fixture->upper);
	fd_close(&fixture->base);
	fd_close(&fixture->run);
	assert_true(store >= 0);
	/* For the shell: $PWD/upper. */
	unlink("upper");
	fixture->run = review_store_create_run(store, fixture->name);
	assert_true(fixture->run >= 0);
	assert_int_equal(
		review_store_create_share(fixture->run, 0, 0755, &directory, &fixture->upper), 0);
	snprintf(link, sizeof(link), "state/mvagent/runs/%s/share0/upper", fixture->name);
	assert_int_equal(symlink(link, "upper"), 0);
	fixture->base =
		openat(directory, REVIEW_BASE, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fixture->base >= 0);
}

static inline int fixture_setup(void **state)
{
	struct review_fixture *fixture = calloc(1, sizeof(*fixture));
	char state_home[PATH_MAX + 16];

	assert_non_null(fixture);
	fixture->upper = fixture->base = fixture->run = -1;
	umask(022);
	strcpy(fixture->scratch, "/var/tmp/review-XXXXXX");
	assert_non_null(mkdtemp(fixture->scratch));
	snprintf(state_home, sizeof(state_home), "%s/state", fixture->scratch);
	assert_int_equal(setenv("XDG_STATE_HOME", state_home, 1), 0);
	fixture_shell(fixture, "mkdir host");
	assert_int_equal(chdir(fixture->scratch), 0);
	fixture->host = open("host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fixture->host >= 0);
	fixture_begin_run(fixture);
	*state = fixture;
	return 0;
}

static inline int fixture_teardown(void **state)
{
	struct review_fixture *fixture = *state;

	assert_int_equal(chdir("/"), 0);
	fd_close(&fixture->host);
	fd_close(&fixture->upper);
	fd_close(&fixture->base);
	fd_close(&fixture->run);
	fixture_shell(fixture, "chmod -R u+rwx . && rm -rf \"$PWD\"");
	free(fixture);
	return 0;
}

/* Makes or replaces a file. */
static inline void fixture_write(int directory, const char *path, const char *text, mode_t mode)
{
	int FD_CLEANUP fd = openat(directory, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static inline void fixture_mkdir(int directory, const char *path, mode_t mode)
{
	assert_int_equal(mkdirat(directory, path, 0700), 0);
	assert_int_equal(fchmodat(directory, path, mode, 0), 0);
}

static inline void fixture_whiteout(const struct review_fixture *fixture, const char *path)
{
	assert_int_equal(mknodat(fixture->upper, path, S_IFCHR, makedev(0, 0)), 0);
}

static inline void fixture_set_opaque(const struct review_fixture *fixture, const char *path)
{
	int FD_CLEANUP fd = openat(fixture->upper, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fsetxattr(fd, REVIEW_XATTR_OPAQUE, "y", 1, 0), 0);
}

/* Writes the line for what the host has at @path now, as before a change of the guest's. */
static inline void fixture_note_base(const struct review_fixture *fixture, const char *path)
{
	char line[REVIEW_LINE_BYTES];
	struct review_object object;
	struct review_base base;
	ssize_t length;

	assert_int_equal(tree_look_path(fixture->host, path, &object), 0);
	base = (struct review_base){
		.mode = object.mode,
		.inode = object.inode,
		.size = object.size,
		.mtime_ns = object.mtime_ns,
		.ctime_ns = object.ctime_ns,
	};
	length = review_base_format(path, &base, line, sizeof(line));
	assert_true(length > 0);
	assert_int_equal(fd_write_full(fixture->base, line, (size_t)length), 0);
}

/* The guest changes a file of the host's. */
static inline void fixture_change(const struct review_fixture *fixture, const char *path,
				  const char *text, mode_t mode)
{
	fixture_note_base(fixture, path);
	fixture_write(fixture->upper, path, text, mode);
}

/* The guest deletes what the host has. */
static inline void fixture_delete(const struct review_fixture *fixture, const char *path)
{
	fixture_note_base(fixture, path);
	fixture_whiteout(fixture, path);
}

/* The guest works in a directory of the host's. */
static inline void fixture_copy_directory(const struct review_fixture *fixture, const char *path)
{
	struct stat status;

	fixture_note_base(fixture, path);
	assert_int_equal(fstatat(fixture->host, path, &status, AT_SYMLINK_NOFOLLOW), 0);
	fixture_mkdir(fixture->upper, path, status.st_mode & 0777);
}

static inline void fixture_expect_content(int directory, const char *path, const char *wanted)
{
	int FD_CLEANUP fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[4096];
	ssize_t length;

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	length = read(fd, text, sizeof(text) - 1);
	assert_true(length >= 0);
	text[length] = '\0';
	assert_string_equal(text, wanted);
}

static inline void fixture_expect_absent(int directory, const char *path)
{
	struct stat status;

	if (fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0)
		fail_msg("%s is there", path);
	assert_int_equal(errno, ENOENT);
}

static inline mode_t fixture_mode(int directory, const char *path)
{
	struct stat status;

	if (fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW))
		fail_msg("%s: %s", path, strerror(errno));
	return status.st_mode;
}

static inline void fixture_run_child(const struct review_fixture *fixture, bool as_user,
				     void (*test)(const struct review_fixture *fixture))
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (as_user && geteuid() == 0 &&
		    (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
			_exit(2);
		test(fixture);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Not as root, whom permissions do not stop. */
static inline void fixture_as_user(const struct review_fixture *fixture,
				   void (*test)(const struct review_fixture *fixture))
{
	if (geteuid() == 0)
		fixture_shell(fixture, "chown -R 65534:65534 .");
	fixture_run_child(fixture, true, test);
}

#endif
