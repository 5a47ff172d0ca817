/* SPDX-License-Identifier: Apache-2.0 */
/* The jail where a host has only part of it: what is done without, what is a failure, what is said.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/jail_checks.h"
#include "tests/unit/jail_checks.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/jail.h"
#include "vmm/jail/landlock.h"
#include "vmm/jail/mounts.h"
#include "vmm/jail/namespaces.h"

static char place[64];
static int own_fd; /* place/own, which USER can go to only when place/ is open to all */

static int make_place(void **state)
{
	char command[256];

	(void)state;
	strcpy(place, "/dev/shm/mvagent-walls-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir own && echo x >own/f && chmod -R a+rwX own", place);
	if (system(command))
		return -1;
	snprintf(command, sizeof(command), "%s/own", place);
	own_fd = open(command, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return own_fd < 0 ? -1 : 0;
}

static int remove_place(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", place);
	return system(command);
}

/* The line of the first thing in @check that was not so in a child, or HELD. */
static void expect_in_child(int (*check)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(check());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == UNAVAILABLE)
		skip(); /* this host has no such wall */
	assert_int_equal(WEXITSTATUS(status), HELD);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 2;
}

/* From here on @call fails with @error. */
static int make_fail(int call, int error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)error), call, 0);

	result = result ? result : seccomp_load(filter);
	seccomp_release(filter);
	return result;
}

static int become_user(void)
{
	HOLDS(!setgroups(0, NULL) && !setresgid(USER, USER, USER) && !setresuid(USER, USER, USER));
	HOLDS(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); /* as after execve */
	return HELD;
}

/* The rest of a check, apart from the host. */
static int go_on_apart(int (*check)(void))
{
	bool apart;
	pid_t child = namespaces_fork(&apart);
	int status;

	if (child == 0)
		_exit(check());
	HOLDS(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return apart ? WEXITSTATUS(status) : UNAVAILABLE;
}

static int short_of_memory(void)
{
	struct capture capture;
	int error;

	HOLDS(!make_fail(SCMP_SYS(unshare), ENOMEM));
	capture_begin(&capture);
	error = mounts_enter(NULL, 0, false);
	capture_end(&capture);
	HOLDS(error == -ENOMEM && strstr(capture.text, "cannot make a mount namespace"));
	return HELD;
}

static int without_unshare(void)
{
	HOLDS(!make_fail(SCMP_SYS(unshare), EPERM));
	HOLDS(mounts_enter(NULL, 0, false) == -EOPNOTSUPP);
	return HELD;
}

static int short_of_memory_apart(void)
{
	return go_on_apart(short_of_memory);
}

static int without_unshare_apart(void)
{
	return go_on_apart(without_unshare);
}

static void test_only_what_is_not_there_is_done_without(void **state)
{
	(void)state;
	expect_in_child(short_of_memory_apart);
	expect_in_child(without_unshare_apart);
}

static int too_many_processes(void)
{
	bool apart;

	HOLDS(!make_fail(SCMP_SYS(clone3), EAGAIN));
	HOLDS(namespaces_fork(&apart) == -EAGAIN);
	return HELD;
}

static int without_clone3(void)
{
	bool apart;
	pid_t child;

	HOLDS(!make_fail(SCMP_SYS(clone3), ENOSYS));
	child = namespaces_fork(&apart);
	if (child == 0)
		_exit(0);
	HOLDS(child > 0 && waitpid(child, NULL, 0) == child && !apart);
	return HELD;
}

static void test_a_process_is_not_made_without_namespaces_for_want_of_memory(void **state)
{
	(void)state;
	expect_in_child(too_many_processes);
	expect_in_child(without_clone3);
}

static int out_of_reach(void)
{
	const struct jail_directory directories[] = {{own_fd, true, false}};
	const struct jail jail = {
		.directories = directories, .directory_count = 1, .proc = true, .keep_user = true};
	char path[96];

	snprintf(path, sizeof(path), "%s/own", place);
	HOLDS(open(path, O_PATH | O_CLOEXEC) < 0 && errno == EACCES);
	if (!has_landlock())
		return UNAVAILABLE;
	HOLDS(!jail_enter(&jail));
	HOLDS(openat(own_fd, "f", O_RDWR | O_CLOEXEC) >= 0);
	HOLDS(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	return HELD;
}

static int out_of_reach_apart(void)
{
	int result = become_user();

	return result ? result : go_on_apart(out_of_reach);
}

/* mkdtemp(3) has made place/ for its owner alone. */
static void test_a_directory_that_cannot_be_found_by_its_path(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	expect_in_child(out_of_reach_apart);
}

static int with_part_of_proc(void)
{
	int descriptors, again;

	HOLDS(!mounts_enter(NULL, 0, true));
	descriptors = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	HOLDS(descriptors >= 0);
	again = openat(descriptors, "1", O_PATH | O_CLOEXEC);
	HOLDS(again >= 0);
#ifndef __SANITIZE_ADDRESS__
	HOLDS(access("/proc/self/status", F_OK) && access("/proc/self/root", F_OK));
	HOLDS(access("/proc/1", F_OK) && access("/proc/meminfo", F_OK));
#endif
	HOLDS(mkdir("/proc/new", 0700) && mkdir("/proc/self/new", 0700));
	return HELD;
}

/* As in a container: a part of /proc is covered, so a user is given no new one. */
static int covered_proc(void)
{
	int result;

	HOLDS(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	HOLDS(!mount("none", "/proc/sys", "tmpfs", 0, NULL));
	result = become_user();
	return result ? result : go_on_apart(with_part_of_proc);
}

static void test_of_a_covered_proc_only_descriptors_come_along(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	expect_in_child(covered_proc);
}

/* Answers that Landlock is of the first version. */
static void *answer_version(void *argument)
{
	int fd = *(int *)argument;
	struct seccomp_notif *request = NULL;
	struct seccomp_notif_resp *response = NULL;

	if (seccomp_notify_alloc(&request, &response))
		return NULL;
	while (seccomp_notify_receive(fd, request) == 0) {
		response->id = request->id;
		response->val = 1;
		response->error = 0;
		response->flags = 0;
		seccomp_notify_respond(fd, response);
		memset(request, 0, sizeof(*request));
	}
	return NULL;
}

static int fake_first_version(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	static int notify_fd;
	pthread_t thread;

	HOLDS(!seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(landlock_create_ruleset), 1,
				SCMP_A2(SCMP_CMP_EQ, 1))); /* LANDLOCK_CREATE_RULESET_VERSION */
	HOLDS(!seccomp_load(filter));
	notify_fd = seccomp_notify_fd(filter);
	/* Only the other call is asked about, so the thread may be under the filter too. */
	HOLDS(notify_fd >= 0 && !pthread_create(&thread, NULL, answer_version, &notify_fd));
	return HELD;
}

static int first_landlock(void)
{
	const struct jail_directory writable = {own_fd, true, false};
	const struct jail_directory readable = {own_fd, false, false};
	int result;

	if (!has_landlock())
		return UNAVAILABLE;
	HOLDS(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	result = fake_first_version();
	if (result)
		return result;
	HOLDS(landlock_confine(&writable, 1, false) == -EOPNOTSUPP);
	HOLDS(open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
	HOLDS(!landlock_confine(&readable, 1, false));
	HOLDS(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	HOLDS(openat(own_fd, "f", O_RDONLY | O_CLOEXEC) >= 0);
	HOLDS(openat(own_fd, "f", O_RDWR | O_CLOEXEC) < 0);
	return HELD;
}

static void test_first_landlock_is_for_who_moves_no_files(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its allocator may ask the kernel while the answer is waited for */
#endif
	expect_in_child(first_landlock);
}

/* --allow-degraded: what is missing is told without being asked for. */
static int told(void)
{
	struct capture capture;
	struct jail jail = {0};
	int quiet, loud;

	if (!has_landlock())
		return UNAVAILABLE;
	HOLDS(!make_fail(SCMP_SYS(unshare), EPERM));
	capture_begin(&capture);
	quiet = jail_enter(&jail);
	capture_end(&capture);
	HOLDS(!quiet && !capture.text[0]);
	jail.allow_degraded = true;
	capture_begin(&capture);
	loud = jail_enter(&jail);
	capture_end(&capture);
	HOLDS(!loud && strstr(capture.text, "allows no mount namespace to this process"));
	return HELD;
}

static void test_missing_walls_are_told_to_who_allows_them(void **state)
{
	(void)state;
	expect_in_child(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_is_not_there_is_done_without),
		cmocka_unit_test(test_a_process_is_not_made_without_namespaces_for_want_of_memory),
		cmocka_unit_test(test_a_directory_that_cannot_be_found_by_its_path),
		cmocka_unit_test(test_of_a_covered_proc_only_descriptors_come_along),
		cmocka_unit_test(test_first_landlock_is_for_who_moves_no_files),
		cmocka_unit_test(test_missing_walls_are_told_to_who_allows_them),
	};

	return cmocka_run_group_tests_name("jail with parts missing", tests, make_place,
					   remove_place);
}
