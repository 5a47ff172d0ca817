/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of 300,000 files with 256 descriptors: all is listed, looked up, asked for its attributes
 * and partly read, twice, while the guest forgets nothing. MVAGENT_LARGE_FILES changes the number.
 */
#include <sys/resource.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/fs_harness.h"

#define DIRECTORY_FILES 100U
#define READ_EACH       50U /* one file in so many is read */

/* What the server may keep for each inode that the guest knows: the inode, its name, its share of
 * the tables. */
#define INODE_BYTES 400U

static unsigned int wanted_files(void)
{
	const char *text = getenv("MVAGENT_LARGE_FILES");

	return text ? (unsigned int)atoi(text) : 300000;
}

static void make_tree(struct harness *h, unsigned int files)
{
	int root = open(h->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[64];

	assert_true(root >= 0);
	for (unsigned int i = 0; i < files; i++) {
		int fd;

		if (i % (100 * DIRECTORY_FILES) == 0) {
			snprintf(name, sizeof(name), "d%u", i / (100 * DIRECTORY_FILES));
			assert_int_equal(mkdirat(root, name, 0755), 0);
		}
		if (i % DIRECTORY_FILES == 0) {
			snprintf(name, sizeof(name), "d%u/e%u", i / (100 * DIRECTORY_FILES),
				 i / DIRECTORY_FILES);
			assert_int_equal(mkdirat(root, name, 0755), 0);
		}
		snprintf(name, sizeof(name), "d%u/e%u/file%u", i / (100 * DIRECTORY_FILES),
			 i / DIRECTORY_FILES, i);
		fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
		if (i % READ_EACH == 0)
			assert_int_equal(write(fd, name, strlen(name)), strlen(name));
		close(fd);
	}
	close(root);
}

static long resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, pages;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &pages), 2);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void stat_and_read(struct harness *h, const struct fuse_entry_out *entry)
{
	struct fuse_open_out out;
	struct fuse_attr attr;

	assert_int_equal(call_getattr(h, entry->nodeid, &attr), 0);
	assert_int_equal(attr.ino, entry->attr.ino);
	if (attr.size == 0)
		return;
	assert_int_equal(call_open(h, FUSE_OPEN, entry->nodeid, O_RDONLY, &out), 0);
	assert_int_equal(call_read(h, FUSE_READ, out.fh, 0, 64), 0);
	assert_int_equal(h->payload_size, attr.size);
	assert_int_equal(call_release(h, FUSE_RELEASE, entry->nodeid, out.fh), 0);
}

static unsigned int walk(struct harness *h, uint64_t directory);

/* Everything in one reply to READDIRPLUS. Files counted; *@offset: where the next one begins. */
static unsigned int take_listing(struct harness *h, uint64_t *offset)
{
	uint8_t *listing = malloc(h->payload_size + 1);
	size_t size = h->payload_size;
	unsigned int files = 0;

	assert_non_null(listing);
	memcpy(listing, h->payload, size);
	for (size_t at = 0; at < size;) {
		struct fuse_direntplus plus;

		memcpy(&plus, listing + at, FUSE_NAME_OFFSET_DIRENTPLUS);
		at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + plus.dirent.namelen);
		*offset = plus.dirent.off;
		if (!plus.entry_out.nodeid)
			continue; /* "." and ".." */
		if (S_ISDIR(plus.entry_out.attr.mode))
			files += walk(h, plus.entry_out.nodeid);
		else
			stat_and_read(h, &plus.entry_out);
		files += !S_ISDIR(plus.entry_out.attr.mode);
	}
	free(listing);
	return files;
}

static unsigned int walk(struct harness *h, uint64_t directory)
{
	struct fuse_open_out out;
	unsigned int files = 0;
	uint64_t offset = 0;
	bool more = true;

	assert_int_equal(call_open(h, FUSE_OPENDIR, directory, O_RDONLY, &out), 0);
	while (more) {
		assert_int_equal(call_read(h, FUSE_READDIRPLUS, out.fh, offset, 32768), 0);
		more = h->payload_size > 0;
		files += take_listing(h, &offset);
	}
	assert_int_equal(call_release(h, FUSE_RELEASEDIR, directory, out.fh), 0);
	return files;
}

static void test_many_files_few_descriptors(void **state)
{
	const unsigned int files = wanted_files();
	struct harness *h = harness_create_place("/dev/shm");
	struct fs_config config = {.policy = policy_create(), .scan = true};
	struct rlimit before, limit;
	struct fs_usage usage;
	char remove[96];
	long resident;

	*state = h;
	assert_int_equal(policy_add_defaults(config.policy), 0);
	make_tree(h, files);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){256, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	resident = resident_bytes();
	harness_serve(h, &config);
	h->capacity = 32768;
	for (int round = 0; round < 2; round++)
		assert_int_equal(walk(h, FUSE_ROOT_ID), files);
	usage = fs_server_usage(h->server);
	resident = resident_bytes() - resident;
	assert_true(usage.inodes > files);
	assert_in_range(usage.descriptors, 1, 256);
	print_message("%u inodes, %u descriptors, %ld bytes each\n", usage.inodes,
		      usage.descriptors, resident / (long)usage.inodes);
	/* Sanitizers need memory of their own. */
#ifndef __SANITIZE_ADDRESS__
	assert_in_range(resident / (long)usage.inodes, 0, INODE_BYTES);
#endif
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	snprintf(remove, sizeof(remove), "rm -rf '%s'/*", h->directory);
	assert_int_equal(system(remove), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_many_files_few_descriptors, harness_teardown),
	};

	return cmocka_run_group_tests_name("fs large", tests, NULL, NULL);
}
