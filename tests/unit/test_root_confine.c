/* SPDX-License-Identifier: Apache-2.0 */
/* A process that serves a host's directories can open what enters, and nothing else. */
#include "vmm/root/host_confine.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <linux/landlock.h>

#include "tests/unit/erofs_image.h"
#include "tests/unit/host_fixture.h"

static const char files[] =
	"mkdir -p usr/lib opt etc/ssl/certs etc/ssl/private etc/python3 root cache && chmod 700 "
	"cache && "
	"printf a >usr/lib/a && printf b >opt/b && printf cert >etc/ssl/certs/c && "
	"printf SECRET >etc/ssl/private/key && printf SECRET >etc/shadow && "
	"printf services >etc/services && printf rc >etc/python3/rc && printf SECRET >root/file && "
	"printf image >cache/host-1 && ln -s ../../etc/shadow usr/lib/leak && "
	"ln -s ../shadow etc/python3/leak";

/* By the descriptor of the source that has the path, or else by the path. 0 or -errno. */
static int open_at(const struct host *host, const char *path, int flags)
{
	char full[128];
	int fd = -1;

	snprintf(full, sizeof(full), "%s/%s", host->path, path);
	fd = open(full, flags | O_CLOEXEC, 0600);
	for (unsigned int i = 0; i < host->plan.source_count && fd < 0; i++) {
		const struct plan_source *source = &host->plan.sources[i];
		size_t length = strlen(source->path + 1);

		if (strncmp(path, source->path + 1, length) == 0 && path[length] == '/')
			fd = openat(source->fd, path + length + 1, flags | O_CLOEXEC, 0600);
	}
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -errno : 0;
}

/* In a child: 0, or the number of the expectation that failed. */
static int confined(const struct host *host, bool with_plan)
{
	static const char *const inside[] = {"usr/lib/a", "opt/b", "etc/ssl/certs/c",
					     "etc/services", "etc/python3/rc"};
	static const char *const outside[] = {
		"etc/shadow",       "etc/ssl/private/key", "root/file", "usr/lib/leak",
		"etc/python3/leak", "cache/host-1",        "etc",       "."};

	if (host_confine(with_plan ? &host->plan : NULL, false, NULL))
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		if ((open_at(host, inside[i], O_RDONLY) == 0) != with_plan)
			return 10 + (int)i;
		if (open_at(host, inside[i], O_RDWR) == 0)
			return 20 + (int)i;
	}
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		if (open_at(host, outside[i], O_RDONLY) == 0)
			return 30 + (int)i;
	}
	/* Nor up from what it has. */
	if (openat(host->plan.sources[0].fd, "../etc/shadow", O_RDONLY | O_CLOEXEC) >= 0)
		return 49;
	if (open_at(host, "usr/new", O_WRONLY | O_CREAT) == 0)
		return 50;
#ifndef __SANITIZE_ADDRESS__ /* sanitized processes stay root: jail.c */
	if (geteuid() == 0)
		return 51;
#endif
	return 0;
}

static void check(bool with_plan)
{
	struct host host;
	pid_t child;
	int status;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 2)
		skip();
	host_start(&host, files);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(confined(&host, with_plan));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	host_plan_destroy(&host.plan);
	assert_int_equal(shell(NULL, "rm -rf %s", host.path), 0);
}

static void what_enters_is_all_that_can_be_opened(void **state)
{
	(void)state;
	check(true);
}

static void with_an_image_nothing_can_be_opened(void **state)
{
	(void)state;
	check(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_enters_is_all_that_can_be_opened),
		cmocka_unit_test(with_an_image_nothing_can_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
