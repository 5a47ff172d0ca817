/* SPDX-License-Identifier: Apache-2.0 */
/* A read-only share: every operation that changes anything is refused here, whatever the guest's
 * kernel may believe, and the tree stays as it is. */
#include "tests/unit/fs_harness.h"

#include <dirent.h>

#include "vmm/base/bytes.h"

static uint64_t file_node, file_handle, directory_node;

static int setup(void **state)
{
	struct harness *h = harness_create("/dev/shm", true, 0);
	struct fuse_open_out open;
	char path[512];

	harness_host_write(h, "file", "content");
	harness_path(h, "dir", path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "file", &file_node), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "dir", &directory_node), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, file_node, O_RDONLY, &open), 0);
	file_handle = open.fh;
	*state = h;
	return 0;
}

static unsigned int count_entries(const struct harness *h)
{
	DIR *directory = opendir(h->directory);
	unsigned int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void check_unchanged(struct harness *h)
{
	struct stat status = harness_host_stat(h, "file");
	char text[16];

	assert_int_equal(count_entries(h), 4);
	assert_int_equal(harness_host_read(h, "file", text, sizeof(text)), 7);
	assert_string_equal(text, "content");
	assert_int_equal(status.st_mode, S_IFREG | 0644);
	assert_int_equal(status.st_nlink, 1);
	assert_true(status.st_mtime > 1000000000);
}

static void test_names(void **state)
{
	struct harness *h = *state;
	struct fuse_create_in create = {.flags = O_RDWR, .mode = 0600};
	struct fuse_rename_in rename_in = {.newdir = FUSE_ROOT_ID};

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "x", 0755, NULL), -EROFS);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "x", S_IFREG | 0600, NULL), -EROFS);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "x", "y", NULL), -EROFS);
	assert_int_equal(call_link(h, file_node, FUSE_ROOT_ID, "x"), -EROFS);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "file"), -EROFS);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "dir"), -EROFS);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "file", FUSE_ROOT_ID, "x", 0), -EROFS);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "file", FUSE_ROOT_ID, "dir", RENAME_EXCHANGE),
			 -EROFS);
	assert_int_equal(harness_call(h, FUSE_RENAME, FUSE_ROOT_ID, PIECE(rename_in), NAME("file"),
				      NAME("x")),
			 -EROFS);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "x", O_RDWR, 0600, NULL, NULL), -EROFS);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "x", O_RDONLY, 0600, NULL, NULL), -EROFS);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "file", O_RDWR | O_TRUNC, 0600, NULL, NULL),
			 -EROFS);
	assert_int_equal(
		harness_call(h, FUSE_TMPFILE, FUSE_ROOT_ID, PIECE(create), NAME("/"), NONE),
		-EROFS);
	check_unchanged(h);
}

static void test_data(void **state)
{
	struct harness *h = *state;
	struct fuse_fallocate_in allocate = {.fh = file_handle, .length = 4096};
	struct fuse_copy_file_range_in copy = {
		.fh_in = file_handle, .fh_out = file_handle, .off_out = 7, .len = 7};
	struct fuse_open_out open;
	uint32_t written;

	assert_int_equal(call_open(h, FUSE_OPEN, file_node, O_RDWR, &open), -EROFS);
	assert_int_equal(call_open(h, FUSE_OPEN, file_node, O_WRONLY, &open), -EROFS);
	assert_int_equal(call_open(h, FUSE_OPEN, file_node, O_RDONLY | O_TRUNC, &open), -EROFS);
	assert_int_equal(call_write(h, file_handle, 0, "x", 1, 0, 0, &written), -EROFS);
	assert_int_equal(call_write(h, file_handle, 0, "x", 1, 0, FUSE_WRITE_CACHE, &written),
			 -EROFS);
	assert_int_equal(harness_call(h, FUSE_FALLOCATE, file_node, PIECE(allocate), NONE, NONE),
			 -EROFS);
	assert_int_equal(harness_call(h, FUSE_COPY_FILE_RANGE, file_node, PIECE(copy), NONE, NONE),
			 -EROFS);
	check_unchanged(h);
}

static void test_attributes(void **state)
{
	static const uint32_t valid[] = {FATTR_MODE,
					 FATTR_UID,
					 FATTR_GID,
					 FATTR_SIZE,
					 FATTR_SIZE | FATTR_FH,
					 FATTR_ATIME,
					 FATTR_MTIME,
					 FATTR_ATIME_NOW,
					 FATTR_MTIME_NOW,
					 FATTR_CTIME,
					 0};
	struct harness *h = *state;
	struct fuse_access_in access_in = {.mask = W_OK};
	uint32_t xattr[2] = {1, 0};

	for (size_t i = 0; i < ARRAY_SIZE(valid); i++) {
		struct fuse_setattr_in in = {.valid = valid[i],
					     .fh = file_handle,
					     .uid = HARNESS_GUEST_UID,
					     .gid = HARNESS_GUEST_GID};

		assert_int_equal(call_setattr(h, file_node, &in, NULL), -EROFS);
	}
	assert_int_equal(harness_call(h, FUSE_SETXATTR, file_node, PIECE(xattr), NAME("user.x"),
				      BYTES("v", 1)),
			 -EROFS);
	assert_int_equal(call_remove(h, FUSE_REMOVEXATTR, file_node, "user.x"), -EROFS);
	assert_int_equal(harness_call(h, FUSE_ACCESS, file_node, PIECE(access_in), NONE, NONE),
			 -EROFS);
	check_unchanged(h);
}

static void test_reading_works(void **state)
{
	struct harness *h = *state;
	struct fuse_access_in access_in = {.mask = R_OK};
	struct fuse_fsync_in sync_in = {.fh = file_handle};
	struct fuse_open_out open;
	struct fuse_attr attr;

	assert_int_equal(call_read(h, FUSE_READ, file_handle, 0, 100), 0);
	assert_int_equal(h->payload_size, 7);
	assert_memory_equal(h->payload, "content", 7);
	assert_int_equal(call_getattr(h, file_node, &attr), 0);
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READDIRPLUS, open.fh, 0, 1024), 0);
	assert_true(h->payload_size > 0);
	assert_int_equal(harness_call(h, FUSE_ACCESS, file_node, PIECE(access_in), NONE, NONE), 0);
	assert_int_equal(harness_call(h, FUSE_FSYNC, file_node, PIECE(sync_in), NONE, NONE), 0);
	assert_int_equal(harness_call(h, FUSE_STATFS, FUSE_ROOT_ID, NONE, NONE, NONE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_data, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_attributes, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_reading_works, setup, harness_teardown),
	};

	return cmocka_run_group_tests_name("fs_readonly", tests, NULL, NULL);
}
