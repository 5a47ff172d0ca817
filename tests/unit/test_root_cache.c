/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the host that are kept: believed only while nothing changed, and by nobody else. */
#include "vmm/root/host_cache.h"

#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/erofs_image.h"
#include "tests/unit/host_fixture.h"
#include "vmm/root/host_cache_file.h"

static const char files[] =
	"mkdir -p usr/bin usr/lib/deep etc opt cache && chmod 700 cache && printf a >usr/bin/a && "
	"printf b >usr/lib/deep/b && ln usr/bin/a usr/lib/a && ln -s a usr/bin/l && "
	"printf services >etc/services";

static int open_cache_directory(const struct host *host)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/cache", host->path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* One image of the host in its cache. The clock is far ahead, so that all is settled. */
static void keep(struct host *host)
{
	struct host_cache *cache;
	int fd = open_cache_directory(host);

	assert_int_equal(host_cache_open(&cache, fd, &host->plan), 0);
	assert_non_null(cache);
	assert_int_equal(host_image_build(&host->image, &host->plan, NULL), 0);
	host_cache_save(cache, &host->image, time(NULL) + 100);
	host_cache_close(cache);
	close(fd);
}

/* Loads what is kept for the plan. 0 or -ENOENT. */
static int load(struct host *host, struct host_image *image)
{
	struct host_cache *cache;
	int fd = open_cache_directory(host);
	int result;

	assert_int_equal(host_cache_open(&cache, fd, &host->plan), 0);
	result = host_cache_load(cache, &host->plan, image);
	host_cache_close(cache);
	close(fd);
	return result;
}

static unsigned int count_kept(const struct host *host)
{
	char line[512];

	assert_int_equal(shell(line, "ls %s/cache | wc -l", host->path), 0);
	return (unsigned int)atoi(line);
}

static void what_is_loaded_is_what_was_kept(void **state)
{
	struct host_image loaded;
	struct host host;

	(void)state;
	host_start(&host, files);
	keep(&host);
	assert_int_equal(load(&host, &loaded), 0);
	assert_int_equal(loaded.layout.block_count, host.image.layout.block_count);
	assert_int_equal(loaded.tree.node_count, host.image.tree.node_count);
	assert_int_equal(loaded.extent_count, host.image.extent_count);
	assert_memory_equal(loaded.metadata, host.image.metadata, host.image.layout.metadata_bytes);
	assert_memory_equal(&loaded.counts, &host.image.counts, sizeof(loaded.counts));
	host_image_destroy(&host.image);
	host.image = loaded;
	assert_int_equal(
		host_content_create(&host.content, &host.plan, &host.image, LIMIT_BLK_INFLIGHT + 1),
		0);
	assert_true(host_device_has(&host, "services"));
	host_stop(&host);
}

/* How many system calls a child makes to load what is kept. */
static unsigned int count_calls_of_load(struct host *host)
{
	pid_t child = fork();
	unsigned int stops = 0;
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct host_image loaded;

		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
			_exit(2);
		_exit(load(host, &loaded) != 0);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		stops++;
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL))
			fail_msg("PTRACE_SYSCALL: %s", strerror(errno));
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* It stops where a call begins and where it ends. */
	return stops / 2;
}

/* A warm start is one statx(2) for each directory, few opens, nothing for each file. */
static void checking_costs_one_call_for_each_directory(void **state)
{
	const unsigned int directories = 40 * 20, others = 150;
	unsigned int calls;
	struct host host;

	(void)state;
	host_start(&host, "mkdir -p cache && chmod 700 cache && for i in $(seq 40); do for k in "
			  "$(seq 19); do mkdir -p usr/share/$i/$k && : >usr/share/$i/$k/a && "
			  ": >usr/share/$i/$k/b; done; done");
	keep(&host);
	calls = count_calls_of_load(&host);
	print_message("%u calls for %llu directories and %llu files\n", calls,
		      (unsigned long long)host.image.counts.directories,
		      (unsigned long long)host.image.counts.files);
	assert_in_range(calls, directories, directories * 5 / 4 + others);
	host_stop(&host);
}

/* After each of these the image is not believed, and not kept any longer. */
static void changes_are_found(void **state)
{
	static const char *const changes[] = {
		"printf c >usr/lib/deep/c",
		"rm usr/lib/deep/b",
		"mv usr/lib/deep/b usr/lib/deep/c",
		"cp usr/lib/deep/b usr/lib/n && mv usr/lib/n usr/lib/deep/b",
		"ln -sfn b usr/bin/l",
		"chmod 700 usr/lib/deep",
		"mv usr/lib/deep usr/lib/other && ln -s other usr/lib/deep",
		"mkdir etc/ssl",
		"printf more >>etc/services",
		"rm -r opt",
		"mkdir sbin",
		"mv usr usr2 && cp -a usr2 usr",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct host_image loaded;
		struct host host;

		host_start(&host, files);
		keep(&host);
		assert_int_equal(load(&host, &loaded), 0);
		host_image_destroy(&loaded);
		host_run(&host, changes[i]);
		/* As the next run would: what is at the listed paths may be something else. */
		host_plan_destroy(&host.plan);
		assert_int_equal(host_plan_create(&host.plan, host.path), 0);
		if (load(&host, &loaded) != -ENOENT)
			fail_msg("'%s' was not found", changes[i]);
		host_stop(&host);
	}
}

static void other_plans_have_other_images(void **state)
{
	struct host_image loaded;
	struct host host;

	(void)state;
	host_start(&host, files);
	keep(&host);
	assert_int_equal(host_plan_hide(&host.plan, "/opt"), 0);
	assert_int_equal(load(&host, &loaded), -ENOENT);
	host_image_destroy(&host.image);
	keep(&host);
	assert_int_equal(load(&host, &loaded), 0);
	host_image_destroy(&loaded);
	assert_int_equal(count_kept(&host), 2);
	host_stop(&host);
}

static void few_images_are_kept(void **state)
{
	static const char *const hides[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct host_image loaded;
	struct host host;

	(void)state;
	host_start(&host, files);
	for (size_t i = 0; i < ARRAY_SIZE(hides); i++) {
		assert_int_equal(host_plan_hide(&host.plan, hides[i]), 0);
		keep(&host);
		host_image_destroy(&host.image);
	}
	assert_int_equal(count_kept(&host), HOST_CACHE_FILES);
	assert_int_equal(load(&host, &loaded), 0);
	host_image_destroy(&loaded);
	host_stop(&host);
}

/* What another user could have put there. */
static void what_is_not_the_users_alone_is_ignored(void **state)
{
	static const char *const changes[] = {
		"chmod 640 cache/host-*",
		"chmod 604 cache/host-*",
		"chmod 750 cache",
		"chmod 701 cache",
		"mv cache/host-* x && ln -s ../x cache/$(ls cache.name)",
		"chown 65534 cache/host-*",
		"chown 65534 cache"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct host_image loaded;
		struct capture capture;
		struct host host;

		if (strstr(changes[i], "chown") && getuid() != 0)
			continue;
		host_start(&host, files);
		keep(&host);
		host_run(&host, "mkdir cache.name && touch cache.name/$(ls cache)");
		host_run(&host, changes[i]);
		capture_begin(&capture);
		assert_int_equal(load(&host, &loaded), -ENOENT);
		capture_end(&capture);
		host_stop(&host);
	}
}

/* Every byte of the header, of nodes and extents: whatever is in the file, it is refused or can be
 * served without harm. */
static void damaged_files_do_no_harm(void **state)
{
	char path[512];
	struct host host;
	unsigned int refused = 0;
	uint8_t *original;
	struct stat status;
	int fd;

	(void)state;
	host_start(&host, files);
	keep(&host);
	assert_int_equal(shell(path, "ls %s/cache/host-*", host.path), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &status), 0);
	original = malloc((size_t)status.st_size);
	assert_non_null(original);
	assert_int_equal(fd_read_full(fd, original, (size_t)status.st_size), 0);
	close(fd);
	for (off_t i = 0; i < status.st_size; i += i < 4096 ? 8 : 7) {
		static const uint8_t damages[] = {0xff, 0x01, 0x80};
		struct host_image loaded;
		uint8_t damaged = original[i] ^ damages[i % 3];

		if (i >= 512 && i < 4096)
			continue;
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert_int_equal(fd_write_full(fd, original, (size_t)status.st_size), 0);
		assert_int_equal(pwrite(fd, &damaged, 1, i), 1);
		close(fd);
		if (load(&host, &loaded) == -ENOENT) {
			refused++;
			continue;
		}
		host_image_destroy(&host.image);
		host.image = loaded;
		assert_int_equal(host_content_create(&host.content, &host.plan, &host.image,
						     LIMIT_BLK_INFLIGHT + 1),
				 0);
		for (uint64_t at = 0; at < host_device_bytes(&host); at += 4096) {
			uint8_t block[4096];
			struct capture capture;

			capture_begin(&capture);
			host_read(&host, at, block, sizeof(block));
			capture_end(&capture);
		}
		host_content_destroy(host.content);
		host.content = NULL;
	}
	assert_in_range(refused, 20, UINT_MAX);
	free(original);
	host_stop(&host);
}

static void shortened_files_are_refused(void **state)
{
	static const off_t lengths[] = {0, 1, 4095, 4096, 8192, -4096, -1};
	struct host host;
	char path[512];

	(void)state;
	host_start(&host, files);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct host_image loaded;
		struct stat status;

		keep(&host);
		host_image_destroy(&host.image);
		assert_int_equal(shell(path, "ls %s/cache/host-*", host.path), 0);
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(
			truncate(path, lengths[i] < 0 ? status.st_size + lengths[i] : lengths[i]),
			0);
		assert_int_equal(load(&host, &loaded), -ENOENT);
		assert_int_equal(count_kept(&host), 0);
	}
	host_stop(&host);
}

/* A change in the same tick of the clock would not be seen. */
static void what_changed_just_now_is_not_kept(void **state)
{
	struct host_cache *cache;
	struct host host;
	int fd;

	(void)state;
	host_start(&host, files);
	fd = open_cache_directory(&host);
	assert_int_equal(host_cache_open(&cache, fd, &host.plan), 0);
	host_build(&host);
	host_cache_save(cache, &host.image, time(NULL));
	assert_int_equal(count_kept(&host), 0);
	host_cache_close(cache);
	close(fd);
	host_stop(&host);
}

static void a_writer_that_was_killed_leaves_no_harm(void **state)
{
	struct host_image loaded;
	struct host host;

	(void)state;
	host_start(&host, files);
	keep(&host);
	host_image_destroy(&host.image);
	host_run(&host, "cd cache && n=$(ls) && printf half >$n.new && rm $n && chmod 600 $n.new");
	/* It may be at work still. */
	keep(&host);
	assert_int_equal(load(&host, &loaded), -ENOENT);
	host_image_destroy(&host.image);
	host_run(&host, "touch -d '2 minutes ago' cache/*.new");
	keep(&host);
	assert_int_equal(load(&host, &loaded), 0);
	host_image_destroy(&loaded);
	assert_int_equal(count_kept(&host), 1);
	host_stop(&host);
}

static void without_a_directory_there_is_no_cache(void **state)
{
	struct host_cache *cache;
	struct host_image loaded;
	struct host host;

	(void)state;
	host_start(&host, files);
	assert_int_equal(host_cache_open(&cache, -1, &host.plan), 0);
	assert_null(cache);
	assert_int_equal(host_cache_load(cache, &host.plan, &loaded), -ENOENT);
	host_cache_save(cache, &host.image, 0);
	host_cache_close(cache);
	host_stop(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_loaded_is_what_was_kept),
		cmocka_unit_test(checking_costs_one_call_for_each_directory),
		cmocka_unit_test(changes_are_found),
		cmocka_unit_test(other_plans_have_other_images),
		cmocka_unit_test(few_images_are_kept),
		cmocka_unit_test(what_is_not_the_users_alone_is_ignored),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(shortened_files_are_refused),
		cmocka_unit_test(what_changed_just_now_is_not_kept),
		cmocka_unit_test(a_writer_that_was_killed_leaves_no_harm),
		cmocka_unit_test(without_a_directory_there_is_no_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
