/* SPDX-License-Identifier: Apache-2.0 */
/* An authority more for the guest's programs, in a root directory of the test's own. */
#include "guest/trust.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/wire/session.h"

#define AUTHORITY "-----BEGIN CERTIFICATE-----\nnew\n-----END CERTIFICATE-----\n"
#define OLD       "-----BEGIN CERTIFICATE-----\nold\n-----END CERTIFICATE-----"
#define SKIPPED   77

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

static bool has_text(const char *path, const char *text)
{
	char bytes[512] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes) - 1);

	if (fd >= 0)
		close(fd);
	return length == (ssize_t)strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

/* In @root, which becomes this process's. 0, or the number of what was not as it should be. */
static int try_in(const char *root, bool bundle)
{
	struct failure failure = {0};
	struct stat status;

	if (geteuid() && unshare(CLONE_NEWUSER))
		return SKIPPED;
	if (chroot(root) || chdir("/"))
		return SKIPPED;
	if (mkdir("/run", 0755) || mkdir("/etc", 0755) || mkdir("/etc/ssl", 0755) ||
	    mkdir("/etc/ssl/certs", 0755) ||
	    (bundle && !write_text("/etc/ssl/certs/ca-certificates.crt", OLD)) ||
	    (bundle && symlink("certs/ca-certificates.crt", "/etc/ssl/cert.pem")))
		return 1;
	if (trust_add(AUTHORITY, &failure))
		return 2;
	if (!has_text(SESSION_AUTHORITY_FILE, AUTHORITY))
		return 3;
	if (!has_text(SESSION_BUNDLE_FILE, bundle ? OLD "\n" AUTHORITY : "\n" AUTHORITY))
		return 4;
	if (bundle && !has_text("/etc/ssl/certs/ca-certificates.crt", OLD "\n" AUTHORITY))
		return 5;
	if (!bundle && !stat("/etc/ssl/certs/ca-certificates.crt", &status))
		return 6;
	if (stat(SESSION_BUNDLE_FILE, &status) || (status.st_mode & 0777) != 0644)
		return 7;
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

static void test_with(bool bundle)
{
	char root[] = "/tmp/mvagent-trust-XXXXXX";
	int status;
	pid_t child;

	assert_non_null(mkdtemp(root));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(try_in(root, bundle));
	assert_int_equal(waitpid(child, &status, 0), child);
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_bundle(void **state)
{
	(void)state;
	test_with(true);
}

static void test_no_bundle(void **state)
{
	(void)state;
	test_with(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bundle),
		cmocka_unit_test(test_no_bundle),
	};

	return cmocka_run_group_tests_name("guest trust", tests, NULL, NULL);
}
