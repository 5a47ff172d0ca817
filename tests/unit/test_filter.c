/* SPDX-License-Identifier: Apache-2.0 */
/* Each role's filter, attacked from inside: every one of these calls has to end the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/jail/filter.h"

/* A system call with arguments that would otherwise do something, or at least be looked at. */
struct attack {
	const char *name;
	long call;
	long arguments[6];
};

#define ATTACK(name, ...)           \
	{                           \
#name, SYS_##name,  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}

/* No role may do any of these. */
static const struct attack attacks[] = {
	ATTACK(socket, AF_INET, SOCK_STREAM),
	ATTACK(socket, AF_UNIX, SOCK_STREAM),
	ATTACK(socketpair, AF_UNIX, SOCK_STREAM),
	ATTACK(connect, 0),
	ATTACK(bind, 0),
	ATTACK(listen, 0),
	ATTACK(accept4, 0),
	ATTACK(open, (long)"/etc/passwd"),
	ATTACK(creat, (long)"/tmp/x"),
	ATTACK(open_by_handle_at, 0),
	ATTACK(ptrace, 0),
	ATTACK(process_vm_readv, 1),
	ATTACK(process_vm_writev, 1),
	ATTACK(pidfd_open, 1),
	ATTACK(pidfd_getfd, 0),
	ATTACK(pidfd_send_signal, 0),
	ATTACK(kill, 1, 0),
	ATTACK(tkill, 1, 0),
	ATTACK(tgkill, 1, 1, 0),
	ATTACK(fcntl, 0, F_SETOWN, 1),
	ATTACK(fcntl, 0, F_SETSIG, SIGKILL),
	ATTACK(rt_sigqueueinfo, 1, 0),
	ATTACK(fork),
	ATTACK(vfork),
	ATTACK(clone, SIGCHLD),
	ATTACK(clone, CLONE_NEWUSER | SIGCHLD),
	ATTACK(execve, (long)"/bin/true"),
	ATTACK(execveat, AT_FDCWD, (long)"/bin/true"),
	ATTACK(io_uring_setup, 8),
	ATTACK(io_uring_register, 0),
	ATTACK(unshare, CLONE_NEWUSER),
	ATTACK(setns, 0),
	ATTACK(mount, 0),
	ATTACK(umount2, (long)"/"),
	ATTACK(pivot_root, 0),
	ATTACK(chroot, (long)"/"),
	ATTACK(chdir, (long)"/"),
	ATTACK(fsopen, (long)"tmpfs"),
	ATTACK(open_tree, AT_FDCWD),
	ATTACK(move_mount, 0),
	ATTACK(keyctl, 0),
	ATTACK(add_key, 0),
	ATTACK(request_key, 0),
	ATTACK(perf_event_open, 0),
	ATTACK(bpf, 0),
	ATTACK(userfaultfd, 0),
	ATTACK(memfd_create, (long)"x"),
	ATTACK(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1),
	ATTACK(mprotect, 0, 4096, PROT_READ | PROT_EXEC),
	ATTACK(ioctl, 0, KVM_CREATE_VM),
	ATTACK(ioctl, 0, KVM_SET_USER_MEMORY_REGION),
	ATTACK(ioctl, 0, 0x5412), /* TIOCSTI: types into a terminal */
	ATTACK(setuid, 0),
	ATTACK(setresuid, 0),
	ATTACK(setgroups, 0),
	ATTACK(capset, 0),
	ATTACK(personality, 0),
	ATTACK(init_module, 0),
	ATTACK(finit_module, 0),
	ATTACK(kexec_load, 0),
	ATTACK(reboot, 0),
	ATTACK(swapon, 0),
	ATTACK(shmget, 0),
	ATTACK(msgget, 0),
	ATTACK(semget, 0),
	ATTACK(mq_open, (long)"/x"),
	ATTACK(inotify_init1, 0),
	ATTACK(seccomp, 0),
	ATTACK(clock_settime, 0),
	ATTACK(setrlimit, 0),
	ATTACK(prlimit64, 1),
	ATTACK(sched_setaffinity, 1),
	ATTACK(arch_prctl, 0x3001),
	ATTACK(modify_ldt, 0),
	ATTACK(iopl, 3),
	ATTACK(prctl, PR_SET_DUMPABLE, 1),
	ATTACK(splice, 0),
	ATTACK(vmsplice, 0),
	ATTACK(sendfile, 0),
	ATTACK(truncate, (long)"/tmp/x"),
};

/* What the roles that serve no files may not do either. */
static const struct attack file_attacks[] = {
	ATTACK(openat, AT_FDCWD, (long)"/etc/passwd"),
	ATTACK(openat2, AT_FDCWD),
	ATTACK(unlinkat, AT_FDCWD, (long)"/tmp/x"),
	ATTACK(mkdirat, AT_FDCWD, (long)"/tmp/x"),
	ATTACK(renameat2, AT_FDCWD),
	ATTACK(symlinkat, (long)"x"),
	ATTACK(linkat, AT_FDCWD),
	ATTACK(mknodat, AT_FDCWD),
	ATTACK(getdents64, 0),
	ATTACK(setxattr, (long)"/tmp/x"),
	ATTACK(pwritev2, 0),
	ATTACK(ftruncate, 0),
	ATTACK(readlinkat, AT_FDCWD),
	ATTACK(fchmodat, AT_FDCWD),
};

static int enter(const struct filter_rule *role)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || filter_enter(role);
}

/* How a child ends that makes one call under the filter of @role: its wait status. */
static int attempt(const struct filter_rule *role, const struct attack *attack)
{
	const long *a = attack->arguments;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		if (enter(role))
			_exit(1);
		syscall(attack->call, a[0], a[1], a[2], a[3], a[4], a[5]);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void expect_killed(const struct filter_rule *role, const char *name,
			  const struct attack *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int status = attempt(role, &list[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("%s: %s (number %zu) was not stopped: status %#x", name,
				 list[i].name, i, (unsigned int)status);
	}
}

static void test_fs_is_stopped(void **state)
{
	const struct attack more[] = {ATTACK(eventfd2, 0)};

	(void)state;
	expect_killed(filter_fs, "fs", attacks, ARRAY_SIZE(attacks));
	expect_killed(filter_fs, "fs", more, ARRAY_SIZE(more));
}

static void test_blk_is_stopped(void **state)
{
	(void)state;
	expect_killed(filter_blk, "blk", attacks, ARRAY_SIZE(attacks));
	expect_killed(filter_blk, "blk", file_attacks, ARRAY_SIZE(file_attacks));
	expect_killed(filter_blk_host, "blk of the host", attacks, ARRAY_SIZE(attacks));
	for (size_t i = 0; i < ARRAY_SIZE(file_attacks); i++) {
		/* Opening is by openat2, and the cache loses files. */
		if (file_attacks[i].call != SYS_openat2)
			expect_killed(filter_blk_host, "blk of the host", &file_attacks[i], 1);
	}
}

static void test_vmm_is_stopped(void **state)
{
	(void)state;
	expect_killed(filter_vmm, "vmm", attacks, ARRAY_SIZE(attacks));
	expect_killed(filter_vmm, "vmm", file_attacks, ARRAY_SIZE(file_attacks));
}

static void test_sign_is_stopped(void **state)
{
	(void)state;
	expect_killed(filter_sign, "sign", attacks, ARRAY_SIZE(attacks));
	expect_killed(filter_sign, "sign", file_attacks, ARRAY_SIZE(file_attacks));
}

static void test_secret_is_stopped(void **state)
{
	(void)state;
	expect_killed(filter_secret, "secret", attacks, ARRAY_SIZE(attacks));
	expect_killed(filter_secret, "secret", file_attacks, ARRAY_SIZE(file_attacks));
}

static void *thread(void *argument)
{
	return argument;
}

static int compare_numbers(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(uint32_t));
}

/* Calls that the C library makes of its own accord, so that no name of them is in our code. */
static bool library_works(void)
{
	const size_t count = 1U << 20;
	uint32_t *numbers = malloc(count * sizeof(*numbers));

	for (size_t i = 0; numbers && i < count; i++)
		numbers[i] = (uint32_t)(i * 2654435761U);
	if (!numbers)
		return false;
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	numbers = realloc(numbers, 4 * count * sizeof(*numbers));
	free(numbers);
	return numbers && fprintf(stderr, "%s\n", strerror(EXDEV)) > 0;
}

static bool directory_works(void)
{
	int fd = openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	bool works = directory && readdir(directory);

	if (directory) {
		rewinddir(directory);
		works = readdir(directory) && works && closedir(directory) == 0;
	}
	return works;
}

/* A thread's memory: comes, grows much and goes back. */
static void *thread_of_much(void *argument)
{
	char *parts[256];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i] = malloc(100000);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		free(parts[i]);
	return argument;
}

/* What the roles need goes on: this is no filter that forbids everything. */
static int work_under(const struct filter_rule *role)
{
	char *memory;
	pthread_t id;

	if (enter(role))
		return 1;
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || munmap(memory, 4096))
		return 2;
	if (role == filter_vmm &&
	    (pthread_create(&id, NULL, thread_of_much, NULL) || pthread_join(id, NULL)))
		return 3;
	if (role == filter_fs && !directory_works())
		return 4;
	return library_works() ? 0 : 5;
}

static void test_work_goes_on(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip(); /* a sanitizer makes calls of its own at the end */
#endif
	const struct filter_rule *roles[] = {filter_fs,  filter_blk,    filter_blk_host,
					     filter_vmm, filter_secret, filter_sign};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0)
			_exit(work_under(roles[i]));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* A thread that was made before the filter and begins under it (the file server's scan). */
static void test_thread_that_begins(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* as above */
#endif
	for (int round = 0; round < 200; round++) {
		pid_t child = fork();
		pthread_t id;
		int status;

		assert_true(child >= 0);
		if (child == 0) {
			if (pthread_create(&id, NULL, thread, NULL) || enter(filter_fs))
				_exit(1);
			_exit(pthread_join(id, NULL) ? 2 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* A thread that was there before is under the filter too. */
static int go[2];

static void *late_attack(void *argument)
{
	char byte;

	if (read(go[0], &byte, 1) == 1)
		syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	return argument;
}

static void test_all_threads(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		pthread_t id;

		if (pipe2(go, O_CLOEXEC) || pthread_create(&id, NULL, late_attack, NULL) ||
		    enter(filter_fs) || write(go[1], "x", 1) != 1)
			_exit(1);
		pthread_join(id, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fs_is_stopped),   cmocka_unit_test(test_blk_is_stopped),
		cmocka_unit_test(test_vmm_is_stopped),  cmocka_unit_test(test_secret_is_stopped),
		cmocka_unit_test(test_sign_is_stopped), cmocka_unit_test(test_work_goes_on),
		cmocka_unit_test(test_all_threads),     cmocka_unit_test(test_thread_that_begins),
	};

	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
