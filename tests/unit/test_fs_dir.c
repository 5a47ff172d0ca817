/* SPDX-License-Identifier: Apache-2.0 */
/* Listings: every entry once, at any size of reply, with lookups counted as the guest will. */
#include "tests/unit/fs_harness.h"

#define ENTRY_COUNT 500

static int setup(void **state)
{
	*state = harness_create(*state ? "/tmp" : "/dev/shm", false, 0);
	return 0;
}

static void make_entries(struct harness *h)
{
	char name[64];

	for (int i = 0; i < ENTRY_COUNT; i++) {
		snprintf(name, sizeof(name), "%.*s%d", i % 40,
			 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", i);
		if (i % 50 == 0)
			call_mkdir(h, FUSE_ROOT_ID, name, 0755, NULL);
		else if (i % 50 == 1)
			call_symlink(h, FUSE_ROOT_ID, name, "target", NULL);
		else
			harness_host_write(h, name, "x");
	}
}

/* What a reply lists: counts of what it has, and where the next one begins. */
struct listing {
	int files, directories, links, dots, others;
	int with_node;
	uint64_t next;
};

static void count_entry(struct listing *listing, const struct fuse_dirent *entry, const char *name)
{
	if ((entry->namelen == 1 && name[0] == '.') ||
	    (entry->namelen == 2 && name[0] == '.' && name[1] == '.'))
		listing->dots++;
	else if (entry->type == DT_REG)
		listing->files++;
	else if (entry->type == DT_DIR)
		listing->directories++;
	else if (entry->type == DT_LNK)
		listing->links++;
	else
		listing->others++;
	listing->next = entry->off;
}

static void parse(struct harness *h, bool plus, struct listing *listing)
{
	size_t at = 0;

	while (at < h->payload_size) {
		struct fuse_direntplus entry;
		size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
		size_t size;

		assert_true(h->payload_size - at >= head);
		memset(&entry, 0, sizeof(entry));
		memcpy(plus ? (void *)&entry : (void *)&entry.dirent, h->payload + at, head);
		size = FUSE_DIRENT_ALIGN(head + entry.dirent.namelen);
		assert_true(size <= h->payload_size - at);
		count_entry(listing, &entry.dirent, (const char *)h->payload + at + head);
		if (entry.entry_out.nodeid) {
			assert_int_equal(entry.entry_out.attr.ino, entry.dirent.ino);
			assert_int_equal(entry.entry_out.attr.mode >> 12, entry.dirent.type);
			listing->with_node++;
		}
		at += size;
	}
}

static struct listing list_all(struct harness *h, uint64_t fh, bool plus, uint32_t size)
{
	struct listing listing = {0};

	h->capacity = size;
	for (;;) {
		assert_int_equal(call_read(h, plus ? FUSE_READDIRPLUS : FUSE_READDIR, fh,
					   listing.next, size),
				 0);
		if (h->payload_size == 0)
			return listing;
		parse(h, plus, &listing);
	}
}

static void check_listing(const struct listing *listing)
{
	assert_int_equal(listing->dots, 2);
	assert_int_equal(listing->directories, ENTRY_COUNT / 50);
	assert_int_equal(listing->links, ENTRY_COUNT / 50);
	assert_int_equal(listing->files, ENTRY_COUNT - 2 * (ENTRY_COUNT / 50));
	assert_int_equal(listing->others, 0);
}

static void test_readdir(void **state)
{
	static const uint32_t sizes[] = {100, 333, 1024, 4096, 65536, 100000};
	struct harness *h = *state;
	struct fuse_open_out open;

	make_entries(h);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct listing listing;

		assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
		listing = list_all(h, open.fh, false, sizes[i]);
		check_listing(&listing);
		/* Once more from the start, on the same handle. */
		listing = list_all(h, open.fh, false, sizes[i]);
		check_listing(&listing);
		assert_int_equal(call_release(h, FUSE_RELEASEDIR, FUSE_ROOT_ID, open.fh), 0);
	}
	assert_int_equal(fs_server_usage(h->server).handles, 0);
}

static void test_readdirplus(void **state)
{
	static const uint32_t sizes[] = {333, 4096, 65536};
	struct harness *h = *state;
	struct fuse_open_out open;
	struct fs_usage before;

	make_entries(h);
	before = fs_server_usage(h->server);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct listing listing;

		assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
		listing = list_all(h, open.fh, true, sizes[i]);
		check_listing(&listing);
		assert_int_equal(listing.with_node, ENTRY_COUNT);
		assert_int_equal(call_release(h, FUSE_RELEASEDIR, FUSE_ROOT_ID, open.fh), 0);
	}
	assert_int_equal(fs_server_usage(h->server).inodes, 1 + ENTRY_COUNT);
	assert_true(before.inodes < 1 + ENTRY_COUNT);
}

/* Each listed node can be forgotten exactly as often as it was handed out. */
static void test_readdirplus_counts_lookups(void **state)
{
	struct harness *h = *state;
	struct fuse_direntplus entry;
	struct fuse_open_out open;
	uint64_t node = 0;
	size_t at = 0;

	harness_host_write(h, "only", "x");
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READDIRPLUS, open.fh, 0, 1024), 0);
	while (at < h->payload_size) {
		memcpy(&entry, h->payload + at, FUSE_NAME_OFFSET_DIRENTPLUS);
		if (entry.entry_out.nodeid)
			node = entry.entry_out.nodeid;
		at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + entry.dirent.namelen);
	}
	assert_true(node > FUSE_ROOT_ID);
	/* Too small for the first entry: an error, and nothing was counted. */
	assert_int_equal(call_read(h, FUSE_READDIRPLUS, open.fh, 0, 100), -EINVAL);
	harness_forget(h, node, 1);
	assert_int_equal(fs_server_usage(h->server).inodes, 1);
	assert_int_equal(fs_server_counters(h->server)->invalid, 0);
}

static void test_directory_changes_under_way(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out open;
	struct listing listing;
	uint64_t d;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	assert_int_equal(call_open(h, FUSE_OPENDIR, d, O_RDONLY, &open), 0);
	listing = list_all(h, open.fh, false, 1024);
	assert_int_equal(listing.dots, 2);
	harness_host_write(h, "d/new", "x");
	listing = list_all(h, open.fh, false, 1024); /* from the start: rewinddir(3) */
	assert_int_equal(listing.files, 1);
	assert_int_equal(call_remove(h, FUSE_UNLINK, d, "new"), 0);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), 0);
	assert_int_equal(call_read(h, FUSE_READDIR, open.fh, 0, 1024), 0);
	assert_int_equal(h->payload_size, 0);
}

static void test_dots_of_the_root_hide_what_is_above(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out open;
	struct fuse_dirent entry;
	size_t at = 0;
	ino_t root = harness_host_stat(h, ".").st_ino;
	int seen = 0;

	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READDIR, open.fh, 0, 1024), 0);
	while (at < h->payload_size) {
		memcpy(&entry, h->payload + at, FUSE_NAME_OFFSET);
		assert_int_equal(entry.ino, root);
		at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
		seen++;
	}
	assert_int_equal(seen, 2);
}

static void test_positions_never_given_out(void **state)
{
	static const uint64_t positions[] = {3, 1 << 20, INT64_MAX, 1ULL << 63, UINT64_MAX};
	struct harness *h = *state;
	struct fuse_open_out open;
	struct listing listing;

	make_entries(h);
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
	for (size_t i = 0; i < ARRAY_SIZE(positions); i++) {
		int error = call_read(h, FUSE_READDIR, open.fh, positions[i], 1024);

		if (positions[i] > INT64_MAX)
			assert_int_equal(error, -EINVAL);
	}
	listing = list_all(h, open.fh, false, 1024);
	check_listing(&listing);
}

static void test_wrong_kinds(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out open;
	uint64_t f, fh;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &f, &fh), 0);
	assert_int_equal(call_open(h, FUSE_OPENDIR, f, O_RDONLY, &open), -ENOTDIR);
	assert_int_equal(call_open(h, FUSE_OPEN, FUSE_ROOT_ID, O_RDONLY, &open), -EISDIR);
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDWR, &open), -EISDIR);
	assert_int_equal(call_read(h, FUSE_READDIR, fh, 0, 1024), -EBADF);
	assert_int_equal(call_release(h, FUSE_RELEASEDIR, f, fh), -EBADF);
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READ, open.fh, 0, 100), -EBADF);
	assert_int_equal(call_release(h, FUSE_RELEASE, FUSE_ROOT_ID, open.fh), -EBADF);
}

#define ON_TMPFS(test) cmocka_unit_test_prestate_setup_teardown(test, setup, harness_teardown, NULL)
#define ON_DISK(test)                                                  \
	{                                                              \
#test " (/tmp)", test, setup, harness_teardown, "/tmp" \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_TMPFS(test_readdir),
		ON_TMPFS(test_readdirplus),
		ON_TMPFS(test_readdirplus_counts_lookups),
		ON_TMPFS(test_directory_changes_under_way),
		ON_TMPFS(test_dots_of_the_root_hide_what_is_above),
		ON_TMPFS(test_positions_never_given_out),
		ON_TMPFS(test_wrong_kinds),
		ON_DISK(test_readdir),
		ON_DISK(test_readdirplus),
		ON_DISK(test_directory_changes_under_way),
		ON_DISK(test_positions_never_given_out),
	};

	return cmocka_run_group_tests_name("fs_dir", tests, NULL, NULL);
}
