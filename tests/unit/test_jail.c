/* SPDX-License-Identifier: Apache-2.0 */
/* A process in the jail, as root and as a user, with all of its walls and with one alone: what it
 * can reach and what not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/jail_checks.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/jail.h"
#include "vmm/jail/landlock.h"
#include "vmm/jail/mounts.h"
#include "vmm/jail/namespaces.h"

struct place {
	char path[64];
	int own, read; /* directories */
	uint16_t port; /* TCP, on the loopback */
	pid_t parent;
};

static struct place place;

static int make_place(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	char command[256];
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	strcpy(place.path, "/dev/shm/mvagent-jail-XXXXXX");
	if (!mkdtemp(place.path) || chmod(place.path, 0755))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir own read other && echo x | tee own/f read/f other/f >/dev/null && "
		 "chmod -R a+rwX .",
		 place.path);
	if (system(command))
		return -1;
	snprintf(command, sizeof(command), "%s/own", place.path);
	place.own = open(command, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(command, sizeof(command), "%s/read", place.path);
	place.read = open(command, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s", place.path);
	if (bind(tcp, (struct sockaddr *)&address, sizeof(address)) || listen(tcp, 8) ||
	    getsockname(tcp, (struct sockaddr *)&address, &length) ||
	    bind(abstract, (struct sockaddr *)&name, sizeof(name)) || listen(abstract, 8))
		return -1;
	place.port = ntohs(address.sin_port);
	place.parent = getpid();
	return 0;
}

static int remove_place(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", place.path);
	return system(command);
}

static bool can_connect(int family)
{
	struct sockaddr_in tcp = {.sin_family = AF_INET,
				  .sin_port = htons(place.port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), result;

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s", place.path);
	result = family == AF_INET ? connect(fd, (struct sockaddr *)&tcp, sizeof(tcp))
				   : connect(fd, (struct sockaddr *)&name, sizeof(name));
	close(fd);
	return result == 0;
}

static struct jail the_jail(const struct jail_directory *directories)
{
	return (struct jail){.directories = directories,
			     .directory_count = 2,
			     .capabilities = CAPABILITIES_FILE_SERVER,
			     .proc = true,
			     .keep_user = true};
}

/* What has to be so whichever wall is there. */
static int check_files(void)
{
	char path[128];

	HOLDS(openat(place.own, "f", O_RDWR | O_CLOEXEC) >= 0);
	HOLDS(openat(place.own, "new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0);
	HOLDS(!unlinkat(place.own, "new", 0));
	HOLDS(openat(place.read, "f", O_RDONLY | O_CLOEXEC) >= 0);
	HOLDS(openat(place.read, "f", O_RDWR | O_CLOEXEC) < 0);
	HOLDS(mkdirat(place.read, "new", 0700) && unlinkat(place.read, "f", 0));
	/* Neither by path nor by going up from what it has. */
	HOLDS(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	snprintf(path, sizeof(path), "%s/other/f", place.path);
	HOLDS(open(path, O_RDONLY | O_CLOEXEC) < 0);
	HOLDS(openat(place.own, "../other/f", O_RDONLY | O_CLOEXEC) < 0);
	return HELD;
}

static int check_namespaces(void)
{
	char name[64];

	HOLDS(getpid() == 1 && getppid() == 0);
	HOLDS(kill(place.parent, 0) && errno == ESRCH);
	HOLDS(!can_connect(AF_INET) && !can_connect(AF_UNIX));
	HOLDS(!gethostname(name, sizeof(name))); /* readable, and not to be changed: */
	HOLDS(sethostname("x", 1) && errno == EPERM);
	return HELD;
}

static int check_mounts(void)
{
	struct stat status, root;

	/* The root is empty but for /proc, and cannot be written; a directory has nothing above. */
	HOLDS(!stat("/proc/self/fd", &status) && stat("/proc/1/root/etc", &status));
	HOLDS(stat("/etc", &status) && errno == ENOENT && stat("/dev", &status));
	HOLDS(mkdir("/new", 0700) && errno == EROFS);
	HOLDS(!fstatat(place.own, "..", &status, 0) && !fstat(place.own, &root));
	HOLDS(status.st_ino == root.st_ino && status.st_dev == root.st_dev);
	HOLDS(mkdirat(place.read, "new", 0700) && errno == EROFS);
	return HELD;
}

static int check_process(void)
{
	struct rlimit limit;

	HOLDS(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
#ifndef __SANITIZE_ADDRESS__
	HOLDS(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
#endif
	HOLDS(!getrlimit(RLIMIT_CORE, &limit) && limit.rlim_max == 0);
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++)
		HOLDS(!(capabilities_have(i) && ~CAPABILITIES_FILE_SERVER & CAPABILITY_BIT(i)));
	HOLDS(unshare(CLONE_NEWNS) && mount("x", "/", "tmpfs", 0, NULL));
	return HELD;
}

static int with_all_walls(void)
{
	const struct jail_directory directories[] = {{place.own, true, false},
						     {place.read, false, false}};
	struct jail jail = the_jail(directories);
	int result;

	HOLDS(!jail_enter(&jail));
	result = check_files();
	result = result ? result : check_namespaces();
	result = result ? result : check_mounts();
	return result ? result : check_process();
}

static int with_mounts_alone(void)
{
	const struct jail_directory directories[] = {{place.own, true, false},
						     {place.read, false, false}};
	int result;

	HOLDS(!mounts_enter(directories, 2, true));
	HOLDS(!capabilities_keep_only(CAPABILITIES_FILE_SERVER));
	result = check_files();
	return result ? result : check_mounts();
}

static int with_landlock_alone(void)
{
	const struct jail_directory directories[] = {{place.own, true, false},
						     {place.read, false, false}};
	int error;

	HOLDS(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	error = landlock_confine(directories, 2, false);
	if (error == -EOPNOTSUPP)
		return UNAVAILABLE;
	HOLDS(!error);
	return check_files();
}

/* In a child, apart from the host when @apart, as @user. */
static int run_as(uid_t user, bool apart, int (*check)(void))
{
	pid_t outer = fork();
	int status;

	assert_true(outer >= 0);
	if (outer == 0) {
		bool are_apart = false;
		pid_t inner;

		if (user && geteuid() == 0 &&
		    (setgroups(0, NULL) || setresgid(user, user, user) ||
		     setresuid(user, user, user)))
			_exit(UNAVAILABLE);
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as after execve */
		inner = apart ? namespaces_fork(&are_apart) : fork();
		if (inner == 0)
			_exit(check());
		if (inner < 0 || waitpid(inner, &status, 0) != inner || !WIFEXITED(status))
			_exit(1);
		_exit(apart && !are_apart ? UNAVAILABLE : WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect_held(uid_t user, bool apart, int (*check)(void))
{
	int result = run_as(user, apart, check);

	if (result == UNAVAILABLE)
		skip(); /* this host has no such wall for that user */
	assert_int_equal(result, HELD);
}

/* In a chroot that is a mount, where a descriptor's path is another one as soon as the mounts are
 * others. */
static int in_a_chroot(void)
{
	char proc[128];

	snprintf(proc, sizeof(proc), "%s/proc", place.path);
	HOLDS(!mkdir(proc, 0755) || errno == EEXIST);
	HOLDS(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	HOLDS(!mount(place.path, place.path, NULL, MS_BIND, NULL));
	HOLDS(!mount("/proc", proc, NULL, MS_BIND | MS_REC, NULL));
	HOLDS(!chroot(place.path) && !chdir("/"));
	place.own = open("/own", O_PATH | O_DIRECTORY | O_CLOEXEC);
	place.read = open("/read", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return with_all_walls();
}

static void test_all_in_a_chroot(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	expect_held(0, true, in_a_chroot);
}

/* root without files to change becomes nobody, whom root's own files do not let in. */
static int as_nobody(void)
{
	struct jail jail = {0};
	int death;

	HOLDS(!prctl(PR_SET_PDEATHSIG, SIGUSR1) && !jail_enter(&jail));
	HOLDS(getuid() == 65534 && geteuid() == 65534 && getgid() == 65534);
	HOLDS(getgroups(0, NULL) == 0 && setuid(0));
	HOLDS(!prctl(PR_GET_PDEATHSIG, &death) && death == SIGUSR1);
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++)
		HOLDS(!capabilities_have(i) && prctl(PR_CAPBSET_READ, i) == 0);
	return HELD;
}

static void test_root_becomes_nobody(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* sanitized processes stay root: jail.c */
#endif
	if (geteuid())
		skip();
	expect_held(0, true, as_nobody);
}

/* Or the user whose files it is to change, with no power over others'. */
static int as_owner(void)
{
	const struct jail_directory directories[] = {{place.own, true, false},
						     {place.read, false, false}};
	struct jail jail = the_jail(directories);
	struct stat status;
	int result;

	jail.owner = USER;
	jail.owner_group = USER + 1;
	HOLDS(!jail_enter(&jail));
	HOLDS(getuid() == USER && geteuid() == USER && getegid() == USER + 1 && setuid(0));
	HOLDS(mknodat(place.own, "made", S_IFREG | 0600, 0) == 0);
	HOLDS(!fstatat(place.own, "made", &status, 0) && status.st_uid == USER);
	HOLDS(!unlinkat(place.own, "made", 0));
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++)
		HOLDS(!capabilities_have(i));
	result = check_files();
	return result ? result : check_mounts();
}

static void test_root_becomes_the_owner(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* sanitized processes stay root: jail.c */
#endif
	if (geteuid())
		skip();
	expect_held(0, true, as_owner);
}

static void test_all_as_root(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	expect_held(0, true, with_all_walls);
}

static void test_all_as_user(void **state)
{
	(void)state;
	expect_held(USER, true, with_all_walls);
}

static void test_mounts_alone(void **state)
{
	(void)state;
	expect_held(USER, true, with_mounts_alone);
}

static void test_landlock_alone(void **state)
{
	(void)state;
	expect_held(USER, false, with_landlock_alone);
}

/* As a user without a namespace there is no mount namespace; nothing is changed then. */
static int without_namespace(void)
{
	HOLDS(mounts_enter(NULL, 0, false) == -EOPNOTSUPP);
	HOLDS(access("/etc/passwd", R_OK) == 0);
	return HELD;
}

static void test_mounts_need_a_namespace(void **state)
{
	(void)state;
	expect_held(USER, false, without_namespace);
}

static int forbid_walls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 0);

	error = error ? error
		      : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS),
					 SCMP_SYS(landlock_create_ruleset), 0);
	error = error ? error : seccomp_load(filter);
	seccomp_release(filter);
	return error;
}

/* Where neither can be had it goes no further, unless it is told to. */
static int without_walls(void)
{
	struct capture capture;
	struct jail jail = {0};
	int refused, allowed;

	HOLDS(!forbid_walls());
	capture_begin(&capture);
	refused = jail_enter(&jail);
	jail.allow_degraded = true;
	allowed = jail_enter(&jail);
	capture_end(&capture);
	HOLDS(refused == -EPERM && allowed == 0);
	HOLDS(strstr(capture.text, "this host allows neither user namespaces nor Landlock"));
	HOLDS(strstr(capture.text, "--allow-degraded"));
	HOLDS(strstr(capture.text, "nothing but its own care keeps this process"));
	return HELD;
}

static void test_no_walls_no_run(void **state)
{
	(void)state;
	expect_held(USER, false, without_walls);
}

static void close_end(int *fd)
{
	close(*fd);
	*fd = -1;
}

/* SIGKILL of the parent reaches what was forked, though it is the first of its namespace. */
static void test_ends_with_its_parent(void **state)
{
	int pair[2];
	pid_t parent;
	char byte;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	parent = fork();
	if (parent == 0) {
		bool apart;
		pid_t child = namespaces_fork(&apart);

		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			assert_int_equal(write(pair[1], "x", 1), 1);
		}
		close_end(&pair[1]);
		for (;;)
			pause();
	}
	close_end(&pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	assert_int_equal(read(pair[0], &byte, 1), 0);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_as_root),
		cmocka_unit_test(test_root_becomes_nobody),
		cmocka_unit_test(test_root_becomes_the_owner),
		cmocka_unit_test(test_all_as_user),
		cmocka_unit_test(test_all_in_a_chroot),
		cmocka_unit_test(test_mounts_alone),
		cmocka_unit_test(test_landlock_alone),
		cmocka_unit_test(test_mounts_need_a_namespace),
		cmocka_unit_test(test_no_walls_no_run),
		cmocka_unit_test(test_ends_with_its_parent),
	};

	return cmocka_run_group_tests_name("jail", tests, make_place, remove_place);
}
