/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conform [OPTION]... DIRECTORY [GROUP]...: does the file system of DIRECTORY behave as POSIX and
 * Linux's manual pages say? What is expected was taken from those, and holds on tmpfs and ext4.
 */
#include "tests/posix/conform.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

struct group {
	const char *name;
	conform_group *run;
};

static const struct group groups[] = {
	{"open-flags", conform_open_flags},
	{"open-other", conform_open_other},
	{"path-operations", conform_path_operations},
	{"trailing-slash", conform_trailing_slash},
	{"create-remove", conform_create_remove},
	{"rename", conform_rename},
	{"link", conform_link},
	{"symlink", conform_symlink},
	{"names", conform_names},
	{"mode", conform_mode},
	{"umask", conform_umask},
	{"permission", conform_permission},
	{"directory-permission", conform_directory_permission},
	{"other-users", conform_other_users},
	{"owner", conform_owner},
	{"times", conform_times},
	{"set-times", conform_set_times},
	{"data", conform_data},
	{"append", conform_append},
	{"descriptors", conform_descriptors},
	{"size", conform_size},
	{"holes", conform_holes},
	{"fallocate", conform_fallocate},
	{"copy", conform_copy},
	{"map", conform_map},
	{"whole", conform_whole},
	{"listing", conform_listing},
	{"large-listing", conform_large_listing},
	{"xattr", conform_xattr},
	{"xattr-namespaces", conform_xattr_namespaces},
	{"locks", conform_locks},
	{"posix-locks", conform_posix_locks},
	{"special", conform_special},
	{"programs", conform_programs},
	{"unlinked", conform_unlinked},
};

#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

static const char usage[] =
	"usage: conform [--share [--owner-rights]] [--backing tmpfs|ext4] [--other DIR] DIRECTORY "
	"[GROUP]...\n"
	"       conform --deviations\n"
	"  --share    DIRECTORY is an mvagent share: what it declares to do differently is "
	"expected\n"
	"  --owner-rights  the share is served by an ordinary user, not by root\n"
	"  --backing  the file system that keeps its files; by default the one that is mounted "
	"there\n"
	"  --other    a writable directory on another mount (default: the first of /dev/shm, "
	"/tmp,\n"
	"             /var/tmp that is one)\n"
	"  --large    an absolute path of a directory of the files entry0 to entry9999, to list\n"
	"             instead of making it\n"
	"  --deviations  print what a share declares to do differently\n";

static void print_deviations(void)
{
	for (unsigned int i = 0; i < DEVIATION_COUNT; i++) {
		const struct deviation_text *text = deviation_text((enum deviation)i);

		printf("%s\n  a local file system: %s\n  a share: %s\n  because %s\n", text->name,
		       text->standard, text->share, text->reason);
	}
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static const char *find_other(const char *directory)
{
	static const char *const candidates[] = {"/dev/shm", "/tmp", "/var/tmp"};
	struct stat here, there;

	if (stat(directory, &here))
		return NULL;
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++)
		if (stat(candidates[i], &there) == 0 && there.st_dev != here.st_dev &&
		    access(candidates[i], W_OK) == 0)
			return candidates[i];
	return NULL;
}

static int find_backing(struct suite *suite, const char *name, const char *directory)
{
	struct statfs status;

	if (statfs(directory, &status)) {
		fprintf(stderr, "conform: %s: %s\n", directory, strerror(errno));
		return -1;
	}
	if (name ? strcmp(name, "tmpfs") == 0 : status.f_type == TMPFS_MAGIC) {
		suite->backing = BACKING_TMPFS;
		return 0;
	}
	if (name ? strcmp(name, "ext4") == 0 : status.f_type == EXT4_SUPER_MAGIC) {
		suite->backing = BACKING_EXT4;
		return 0;
	}
	fprintf(stderr, "conform: %s: say with --backing whether tmpfs or ext4 keeps its files\n",
		directory);
	return -1;
}

/* A new file is the maker's; on a share it is whose the share is. */
static int find_owner(struct suite *suite, const char *directory)
{
	struct stat status;

	suite->user = geteuid();
	suite->group_id = getegid();
	if (!suite->share)
		return 0;
	if (stat(directory, &status)) {
		fprintf(stderr, "conform: %s: %s\n", directory, strerror(errno));
		return -1;
	}
	suite->user = status.st_uid;
	suite->group_id = status.st_gid;
	return 0;
}

/* As the tests run it: a program that says that it runs, and does not end by itself. */
static void wait_to_be_killed(void)
{
	putchar('.');
	fflush(stdout);
	alarm(60);
	for (;;)
		pause();
}

/* The options into @suite; returns the index of DIRECTORY, or -1. */
static int take_options(struct suite *suite, int argc, char **argv, const char **backing)
{
	static const struct option options[] = {
		{"share", no_argument, NULL, 's'},        {"backing", required_argument, NULL, 'b'},
		{"other", required_argument, NULL, 'o'},  {"deviations", no_argument, NULL, 'd'},
		{"owner-rights", no_argument, NULL, 'r'}, {"large", required_argument, NULL, 'l'},
		{"wait", no_argument, NULL, 'w'},         {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 's')
			suite->share = true;
		else if (option == 'r')
			suite->owner_rights = true;
		else if (option == 'b')
			*backing = optarg;
		else if (option == 'o')
			suite->other = optarg;
		else if (option == 'l')
			suite->large = optarg;
		else if (option == 'd') {
			print_deviations();
			exit(0);
		} else if (option == 'w') {
			wait_to_be_killed();
		} else
			return -1;
	}
	return optind < argc ? optind : -1;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void run_group(struct suite *suite, const struct group *group)
{
	struct check_counters before = *suite->counters;
	double begin = now();

	suite->group = group->name;
	if (mkdir(group->name, 0755) || chdir(group->name)) {
		fprintf(stderr, "conform: %s: %s\n", group->name, strerror(errno));
		exit(2);
	}
	check_in_process(suite, "the group", group->run);
	if (chdir("..")) {
		perror("conform: ..");
		exit(2);
	}
	nftw(group->name, remove_one, 32, FTW_DEPTH | FTW_PHYS);
	if (access(group->name, F_OK) == 0) {
		suite->counters->failed++;
		printf("FAIL %s: its directory could not be removed\n", group->name);
	}
	printf("group %-22s %5lu passed, %lu failed, %lu skipped, %.1f s\n", group->name,
	       suite->counters->passed - before.passed, suite->counters->failed - before.failed,
	       suite->counters->skipped - before.skipped, now() - begin);
	fflush(stdout);
}

static bool is_chosen(const struct group *group, char **names)
{
	if (!*names)
		return true;
	while (*names)
		if (strcmp(*names++, group->name) == 0)
			return true;
	return false;
}

static void print_result(const struct suite *suite)
{
	const struct check_counters *counters = suite->counters;

	for (unsigned int i = 0; i < DEVIATION_COUNT; i++) {
		const struct deviation_text *text = deviation_text((enum deviation)i);

		if (counters->deviations[i])
			printf("deviation %s (%lu checks): %s\n", text->name,
			       counters->deviations[i], text->share);
	}
	printf("conform: %lu passed, %lu failed, %lu skipped\n", counters->passed, counters->failed,
	       counters->skipped);
}

int main(int argc, char **argv)
{
	struct suite suite = {.privileged = geteuid() == 0};
	char program[PATH_MAX + 1], place[64];
	const char *backing = NULL;
	ssize_t length;
	int first = take_options(&suite, argc, argv, &backing);

	if (first < 0) {
		fputs(usage, stderr);
		return 2;
	}
	if (find_backing(&suite, backing, argv[first]))
		return 2;
	if (!suite.other)
		suite.other = find_other(argv[first]);
	if (find_owner(&suite, argv[first]))
		return 2;
	length = readlink("/proc/self/exe", program, PATH_MAX);
	program[length > 0 ? length : 0] = '\0';
	suite.program = program;
	suite.counters = mmap(NULL, sizeof(*suite.counters), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(place, sizeof(place), "conform.%d", getpid());
	umask(022);
	if (suite.counters == MAP_FAILED || chdir(argv[first]) || mkdir(place, 0755) ||
	    chdir(place)) {
		fprintf(stderr, "conform: %s: %s\n", argv[first], strerror(errno));
		return 2;
	}
	for (size_t i = 0; i < GROUP_COUNT; i++)
		if (is_chosen(&groups[i], argv + first + 1))
			run_group(&suite, &groups[i]);
	if (chdir("..") || rmdir(place)) {
		fprintf(stderr, "conform: %s: %s\n", place, strerror(errno));
		suite.counters->failed++;
	}
	print_result(&suite);
	return suite.counters->failed || !suite.counters->passed ? 1 : 0;
}
