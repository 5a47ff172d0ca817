/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each role's filter against the code that runs behind it: a system call that an object of the role
 * asks the C library for is in the role's table, or is listed here as made before the filter.
 * Otherwise the first guest that gets there has its device process killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/jail/filter.h"

#define TEXT_BYTES (1U << 20)

struct role {
	const char *executable;
	const struct filter_rule *rules;
	const char *archives[8];
};

static const struct role roles[] = {
	{"mvagent-fs", filter_fs, {"fs", "review", "virtio", "wire", "loop", "base"}},
	{"mvagent-blk", filter_blk_host, {"root", "virtio", "loop", "base"}},
	{"mvagent-image", filter_image_directory, {"image", "base"}},
	{"mvagent-vmm", filter_vmm, {"machine", "virtio", "loop", "wire", "base"}},
	{"mvagent-secret", filter_secret, {"secret", "loop", "wire", "base"}},
	{"mvagent-sign", filter_sign, {"sign", "wire", "base"}},
};

/* Functions of the C library by the call that they make, where the names differ. */
static const char *const wrappers[][2] = {
	{"pread", "pread64"},       {"pwrite", "pwrite64"},        {"recv", "recvfrom"},
	{"send", "sendto"},         {"fstat", "newfstatat"},       {"fstatat", "newfstatat"},
	{"lstat", "newfstatat"},    {"stat", "newfstatat"},        {"open", "openat"},
	{"opendir", "openat"},      {"fopen", "openat"},           {"__open_2", "openat"},
	{"__openat_2", "openat"},   {"fcntl64", "fcntl"},          {"eventfd", "eventfd2"},
	{"readdir", "getdents64"},  {"pthread_create", "clone"},   {"futimens", "utimensat"},
	{"signal", "rt_sigaction"}, {"sigaction", "rt_sigaction"}, {"nanosleep", "clock_nanosleep"},
	{"waitpid", "wait4"},
};

/* What is made while the process gets ready, or by a mode in which there is no jail. */
static const struct {
	const char *object, *symbol;
} before[] = {
	{"attr.o", "getgroups"}, /* whose files are the guest's */
	{"attr.o", "geteuid"},
	{"attr.o", "getegid"},
	{"options.o", "geteuid"},
	{"options.o", "getegid"},
	{"options.o", "open"}, /* the image */
	{"scan.o", "geteuid"}, /* how large the walk of the whole share may be */
	{"scan.o", "pthread_create"},
	{"server.o", "fchdir"},
	{"server.o", "getrlimit"},
	{"server.o", "umask"},
	{"watch.o", "fanotify_init"},
	{"vhost_listen.o", "accept4"}, /* a peer's socket, of tests and other monitors */
	{"vhost_listen.o", "bind"},
	{"vhost_listen.o", "fchmod"},
	{"vhost_listen.o", "listen"},
	{"vhost_listen.o", "socket"},
	{"vhost_listen.o", "unlink"},
	{"loop_epoll.o", "epoll_create1"},
	{"policy.o", "memfd_create"}, /* the supervisor writes it for mvagent-sign */
	{"host_plan.o", "open"},      /* the host's tree is read before it is served */
	{"host_plan.o", "openat"},
	{"host_plan.o", "readlinkat"},
	{"host_tree.o", "geteuid"},
	{"host_tree.o", "getegid"},
	{"host_tree.o", "readlinkat"},
	{"host_names.o", "getdents64"},
	{"host_confine.o", "readdir"},
	{"host_root.o", "getrlimit"},
	{"host_root.o", "time"},
	{"host_cache.o", "geteuid"}, /* and so is what is kept of it */
	{"host_cache.o", "openat"},
	{"host_cache.o", "renameat"},
	{"host_cache.o", "unlinkat"},
	{"host_cache.o", "time"},
	{"host_cache_file.o", "openat"},
	{"host_cache_file.o", "readdir"},
	{"host_check.o", "openat"},
	{"host_cache_file.o", "unlinkat"},
	{"host_key.o", "fopen"},
	{"host_key.o", "geteuid"},
	{"verity.o", "pwrite"}, /* of mvagent-image */
	{"boot.o", "pread"},    /* the kernel and its initramfs */
	{"elf.o", "pread"},
	{"fd.o", "pread"},
	{"fd.o", "eventfd"},
	{"fd.o", "socketpair"},
	{"ram.o", "ftruncate"},
	{"ram.o", "memfd_create"},
	{"secret.o", "memfd_create"},     /* of the supervisor */
	{"balloon.o", "fallocate"},       /* of the monitor, and so are these: the others */
	{"vhost_frontend.o", "shutdown"}, /* have them linked because they are in one archive */
	{"vsock_connection.o", "shutdown"},
	{"loop_epoll.o", "preadv2"}, /* of mvagent-blk */
};

/* What `nm` prints of files below this build: one line a symbol. */
static void list(const char *options, const char *path, char *text)
{
	char build[PATH_MAX], command[PATH_MAX + 128];
	ssize_t length = readlink("/proc/self/exe", build, sizeof(build) - 1);
	FILE *output;
	size_t size;

	assert_true(length > 0);
	build[length] = '\0';
	for (unsigned int up = 0; up < 3; up++) /* tests/unit/NAME */
		*strrchr(build, '/') = '\0';
	assert_true(snprintf(command, sizeof(command), "nm %s '%s/%s'", options, build, path) <
		    (int)sizeof(command));
	output = popen(command, "r");
	assert_non_null(output);
	size = fread(text, 1, TEXT_BYTES - 1, output);
	assert_true(size > 0 && size < TEXT_BYTES - 1);
	text[size] = '\0';
	assert_int_equal(pclose(output), 0);
}

static bool is_before(const char *object, const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		if (!strcmp(before[i].object, object) && !strcmp(before[i].symbol, symbol))
			return true;
	return false;
}

static bool allowed(const struct filter_rule *rules, int call)
{
	for (; rules->call != -1; rules++)
		if (rules->call == call)
			return true;
	return false;
}

/* The system call behind @symbol, or a negative number. */
static int call_of(const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++)
		if (!strcmp(wrappers[i][0], symbol))
			symbol = wrappers[i][1];
	return seccomp_syscall_resolve_name(symbol);
}

/* Parts a line of `nm -A`, "PATH/libX.a:OBJECT: VALUE TYPE SYMBOL". */
static void part(char *line, char **object, char **symbol)
{
	char *end;

	*object = strchr(line, ':');
	*symbol = strrchr(line, ' ');
	assert_true(*object && *symbol);
	++*symbol;
	end = strchr(++*object, ':');
	assert_non_null(end);
	*end = '\0';
}

/* Whether the linker took @object, whose functions are in @defined, into @executable: both what
 * `nm` prints. */
static bool is_linked(const char *object, const char *defined, const char *executable)
{
	char mark[128], function[256];

	snprintf(mark, sizeof(mark), ":%s:", object);
	for (const char *line = strstr(defined, mark); line; line = strstr(line + 1, mark)) {
		const char *type = strstr(line, " T ");

		if (!type || type > strchrnul(line, '\n'))
			continue;
		snprintf(function, sizeof(function), "%.*s\n", (int)(strchrnul(type, '\n') - type),
			 type);
		if (strstr(executable, function))
			return true;
	}
	return false;
}

/* Checks one call of an object; returns whether it is a system call. */
static bool check(const struct role *role, const char *object, const char *symbol)
{
	int call = call_of(symbol);

	if (call < 0)
		return false;
	if (!allowed(role->rules, call) && !allowed(filter_common, call) &&
	    !is_before(object, symbol))
		fail_msg("%s: %s calls %s, which the filter does not let through", role->executable,
			 object, symbol);
	return true;
}

static unsigned int check_archive(const struct role *role, const char *name, const char *executable)
{
	char *defined = malloc(TEXT_BYTES), *undefined = malloc(TEXT_BYTES);
	char path[64], *position, *object, *symbol;
	unsigned int found = 0;

	assert_true(defined && undefined);
	snprintf(path, sizeof(path), "lib/lib%s.a", name);
	list("-A --defined-only --extern-only", path, defined);
	list("-A --undefined-only", path, undefined);
	for (char *line = strtok_r(undefined, "\n", &position); line;
	     line = strtok_r(NULL, "\n", &position)) {
		part(line, &object, &symbol);
		if (is_linked(object, defined, executable))
			found += check(role, object, symbol);
	}
	free(undefined);
	free(defined);
	return found;
}

static void test_calls_are_allowed(void **state)
{
	char *executable = malloc(TEXT_BYTES), path[64];

	(void)state;
	assert_non_null(executable);
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		unsigned int found = 0;

		snprintf(path, sizeof(path), "libexec/mvagent/%s", roles[i].executable);
		list("--defined-only --extern-only", path, executable);
		for (const char *const *name = roles[i].archives; *name; name++)
			found += check_archive(&roles[i], *name, executable);
		/* The check itself sees something. */
		assert_true(found > 5);
	}
	free(executable);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_are_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
