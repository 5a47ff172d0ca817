/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that look up, make, move and remove names, on tmpfs and on the file system of /tmp. */
#include "tests/unit/fs_harness.h"

static int setup(void **state)
{
	*state = harness_create(*state ? "/tmp" : "/dev/shm", false, 0);
	return 0;
}

static void test_lookup(void **state)
{
	struct harness *h = *state;
	struct fuse_entry_out entry;
	struct stat status;
	uint64_t a, again, d;

	harness_host_write(h, "a", "text");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(h->payload_size, sizeof(entry));
	memcpy(&entry, h->payload, sizeof(entry));
	status = harness_host_stat(h, "a");
	assert_int_equal(entry.attr.ino, status.st_ino);
	assert_int_equal(entry.attr.mode, S_IFREG | 0644);
	assert_int_equal(entry.attr.size, 4);
	assert_int_equal(entry.attr.uid, HARNESS_GUEST_UID);
	assert_int_equal(entry.attr.gid, HARNESS_GUEST_GID);
	assert_int_equal(entry.attr.mtime, status.st_mtim.tv_sec);
	assert_int_equal(entry.attr.mtimensec, status.st_mtim.tv_nsec);
	assert_int_equal(entry.entry_valid, 1);
	assert_int_equal(entry.attr_valid, 1);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &again), 0);
	assert_int_equal(again, a);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "absent", NULL), -ENOENT);
	assert_int_equal(call_lookup(h, a, "x", NULL), -ENOTDIR);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	assert_int_equal(call_lookup(h, d, "a", NULL), -ENOENT);
}

static void test_hard_links_are_one_inode(void **state)
{
	struct harness *h = *state;
	uint64_t a, b;

	harness_host_write(h, "a", "x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(call_link(h, a, FUSE_ROOT_ID, "b"), 0);
	harness_forget(h, a, 1);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "b", &b), 0);
	assert_int_equal(a, b);
	harness_forget(h, a, 1);
	assert_int_equal(call_link(h, a, FUSE_ROOT_ID, "c"), 0);
	harness_forget(h, a, 2);
	assert_int_equal(call_link(h, a, FUSE_ROOT_ID, "d"), -ESTALE);
}

static void test_mkdir(void **state)
{
	struct harness *h = *state;
	uint64_t d;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0750, &d), 0);
	assert_int_equal(harness_host_stat(h, "d").st_mode, S_IFDIR | 0750);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0750, NULL), -EEXIST);
	assert_int_equal(call_mkdir(h, d, "setid", 07777, NULL), 0);
	assert_int_equal(harness_host_stat(h, "d/setid").st_mode, S_IFDIR | 01777);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), -ENOTEMPTY);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "d"), -EISDIR);
	assert_int_equal(call_remove(h, FUSE_RMDIR, d, "setid"), 0);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), 0);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), -ENOENT);
	/* The directory is gone, but the guest still has it as its working directory, say. */
	assert_int_equal(call_mkdir(h, d, "x", 0755, NULL), -ENOENT);
}

static void test_mknod(void **state)
{
	struct harness *h = *state;

	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "reg", S_IFREG | 06644, NULL), 0);
	assert_int_equal(harness_host_stat(h, "reg").st_mode, S_IFREG | 0644);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "fifo", S_IFIFO | 0600, NULL), 0);
	assert_int_equal(harness_host_stat(h, "fifo").st_mode, S_IFIFO | 0600);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "sock", S_IFSOCK | 0600, NULL), 0);
	assert_int_equal(harness_host_stat(h, "sock").st_mode, S_IFSOCK | 0600);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "chr", S_IFCHR | 0600, NULL), -EPERM);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "blk", S_IFBLK | 0600, NULL), -EPERM);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "dir", S_IFDIR | 0600, NULL), -EINVAL);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "lnk", S_IFLNK | 0600, NULL), -EINVAL);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "reg", S_IFREG | 0600, NULL), -EEXIST);
	assert_false(harness_host_exists(h, "chr"));
	assert_false(harness_host_exists(h, "blk"));
}

static void test_symlink(void **state)
{
	struct harness *h = *state;
	char target[LIMIT_FS_SYMLINK_BYTES + 2];
	uint64_t node;

	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "l", "../../etc/passwd", &node), 0);
	assert_int_equal(harness_call(h, FUSE_READLINK, node, NONE, NONE, NONE), 0);
	assert_int_equal(h->payload_size, 16);
	assert_memory_equal(h->payload, "../../etc/passwd", 16);
	/* It is never followed: not as a directory, not as a file. */
	assert_int_equal(call_lookup(h, node, "x", NULL), -ENOTDIR);
	assert_int_equal(harness_call(h, FUSE_READLINK, FUSE_ROOT_ID, NONE, NONE, NONE), -EINVAL);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "l", "x", NULL), -EEXIST);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "e", "", NULL), -ENOENT);
	memset(target, 'x', sizeof(target));
	target[LIMIT_FS_SYMLINK_BYTES + 1] = '\0';
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "n", target, NULL), -ENAMETOOLONG);
	target[LIMIT_FS_SYMLINK_BYTES] = '\0';
	h->capacity = 8192;
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "n", target, &node), 0);
	assert_int_equal(harness_call(h, FUSE_READLINK, node, NONE, NONE, NONE), 0);
	assert_int_equal(h->payload_size, LIMIT_FS_SYMLINK_BYTES);
}

static void test_unlinked_file_lives_on(void **state)
{
	struct harness *h = *state;
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0600};
	struct fuse_attr attr;
	uint64_t node, fh;
	uint32_t written;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, &fh), 0);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "f"), -ENOTDIR);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), 0);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), -ENOENT);
	assert_int_equal(call_write(h, fh, 0, "data", 4, 0, 0, &written), 0);
	assert_int_equal(written, 4);
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 100), 0);
	assert_int_equal(h->payload_size, 4);
	assert_int_equal(call_setattr(h, node, &in, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	assert_int_equal(attr.size, 4);
	assert_int_equal(attr.mode, S_IFREG | 0600);
	assert_int_equal(call_release(h, FUSE_RELEASE, node, fh), 0);
	harness_forget(h, node, 1);
	assert_int_equal(fs_server_usage(h->server).inodes, 1);
	assert_int_equal(fs_server_usage(h->server).descriptors, 1);
}

static void test_rename(void **state)
{
	struct harness *h = *state;
	struct fuse_rename_in plain;
	uint64_t d;
	char text[16];

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	harness_host_write(h, "a", "A");
	harness_host_write(h, "b", "B");
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "a", FUSE_ROOT_ID, "b", RENAME_NOREPLACE),
			 -EEXIST);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "a", FUSE_ROOT_ID, "b", RENAME_EXCHANGE), 0);
	assert_int_equal(harness_host_read(h, "a", text, sizeof(text)), 1);
	assert_string_equal(text, "B");
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "a", d, "n", RENAME_NOREPLACE), 0);
	assert_int_equal(harness_host_read(h, "d/n", text, sizeof(text)), 1);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "a", d, "n", 0), -ENOENT);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "b", FUSE_ROOT_ID, "d", 0), -EISDIR);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "b", 0), -ENOTDIR);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "d", d, "x", 0), -EINVAL);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "b", d, "n", RENAME_WHITEOUT), -EINVAL);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "b", d, "n", 0x80), -EINVAL);
	plain.newdir = d;
	assert_int_equal(
		harness_call(h, FUSE_RENAME, FUSE_ROOT_ID, PIECE(plain), NAME("b"), NAME("n")), 0);
	assert_int_equal(harness_host_read(h, "d/n", text, sizeof(text)), 1);
	assert_string_equal(text, "A");
}

static void test_create(void **state)
{
	struct harness *h = *state;
	uint64_t node, other, fh;
	char text[16];
	uint32_t written;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR | O_EXCL, 06640, &node, &fh), 0);
	assert_int_equal(harness_host_stat(h, "f").st_mode, S_IFREG | 0640);
	assert_int_equal(call_write(h, fh, 0, "hello", 5, 0, 0, &written), 0);
	assert_int_equal(harness_host_read(h, "f", text, sizeof(text)), 5);
	/* There already: an error with O_EXCL, an open without, a truncation with O_TRUNC. */
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR | O_EXCL, 0600, NULL, NULL),
			 -EEXIST);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0600, &other, &fh), 0);
	assert_int_equal(other, node);
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 100), 0);
	assert_memory_equal(h->payload, "hello", 5);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR | O_TRUNC, 0600, NULL, NULL), 0);
	assert_int_equal(harness_host_stat(h, "f").st_size, 0);
	assert_int_equal(harness_host_stat(h, "f").st_mode, S_IFREG | 0640);
	/* What is there and no file is not opened. */
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "l", "f", NULL), 0);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "l", O_RDWR, 0600, NULL, NULL), -ELOOP);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, NULL), 0);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "d", O_RDWR, 0600, NULL, NULL), -EISDIR);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "p", S_IFIFO | 0600, NULL), 0);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "p", O_RDWR, 0600, NULL, NULL), -ENXIO);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "g", 3, 0600, NULL, NULL), -EINVAL);
	assert_false(harness_host_exists(h, "g"));
}

static void test_tmpfile(void **state)
{
	struct harness *h = *state;
	struct fuse_create_in in = {.flags = O_RDWR, .mode = S_IFREG | 0600};
	struct fuse_entry_out entry;
	struct fuse_attr attr;

	assert_int_equal(harness_call(h, FUSE_TMPFILE, FUSE_ROOT_ID, PIECE(in), NAME("/"), NONE),
			 0);
	memcpy(&entry, h->payload, sizeof(entry));
	assert_int_equal(entry.attr.nlink, 0);
	assert_int_equal(entry.attr.mode, S_IFREG | 0600);
	assert_int_equal(call_link(h, entry.nodeid, FUSE_ROOT_ID, "named"), 0);
	assert_true(harness_host_exists(h, "named"));
	assert_int_equal(call_getattr(h, entry.nodeid, &attr), 0);
	assert_int_equal(attr.nlink, 1);
}

static void test_link(void **state)
{
	struct harness *h = *state;
	uint64_t a, d, l;

	harness_host_write(h, "a", "x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "l", "/etc/passwd", &l), 0);
	assert_int_equal(call_link(h, a, d, "b"), 0);
	assert_int_equal(harness_host_stat(h, "d/b").st_ino, harness_host_stat(h, "a").st_ino);
	assert_int_equal(call_link(h, a, d, "b"), -EEXIST);
	assert_int_equal(call_link(h, d, d, "e"), -EPERM);
	assert_int_equal(call_link(h, a, a, "e"), -ENOTDIR);
	/* The link itself gets a second name, not what it points to. */
	assert_int_equal(call_link(h, l, d, "m"), 0);
	assert_int_equal(harness_host_stat(h, "d/m").st_ino, harness_host_stat(h, "l").st_ino);
}

static void test_names_of_any_bytes(void **state)
{
	static const char *const names[] = {"...",  "..a",      " ",        "-",    "\n", "\\",
					    "a\tb", "\xff\xfe", "\xc3\xa4", "%n%s", "a:b"};
	struct harness *h = *state;
	char longest[LIMIT_FS_NAME_BYTES + 1];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, names[i], 0755, NULL), 0);
		assert_true(harness_host_exists(h, names[i]));
		assert_int_equal(call_lookup(h, FUSE_ROOT_ID, names[i], NULL), 0);
		assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, names[i]), 0);
		assert_false(harness_host_exists(h, names[i]));
	}
	memset(longest, 'n', LIMIT_FS_NAME_BYTES);
	longest[LIMIT_FS_NAME_BYTES] = '\0';
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, longest, 0755, NULL), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, longest, NULL), 0);
}

#define ON_TMPFS(test) cmocka_unit_test_prestate_setup_teardown(test, setup, harness_teardown, NULL)
#define ON_DISK(test)                                                  \
	{                                                              \
#test " (/tmp)", test, setup, harness_teardown, "/tmp" \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_TMPFS(test_lookup),
		ON_TMPFS(test_hard_links_are_one_inode),
		ON_TMPFS(test_mkdir),
		ON_TMPFS(test_mknod),
		ON_TMPFS(test_symlink),
		ON_TMPFS(test_unlinked_file_lives_on),
		ON_TMPFS(test_rename),
		ON_TMPFS(test_create),
		ON_TMPFS(test_tmpfile),
		ON_TMPFS(test_link),
		ON_TMPFS(test_names_of_any_bytes),
		ON_DISK(test_lookup),
		ON_DISK(test_hard_links_are_one_inode),
		ON_DISK(test_mkdir),
		ON_DISK(test_mknod),
		ON_DISK(test_symlink),
		ON_DISK(test_unlinked_file_lives_on),
		ON_DISK(test_rename),
		ON_DISK(test_create),
		ON_DISK(test_tmpfile),
		ON_DISK(test_link),
		ON_DISK(test_names_of_any_bytes),
	};

	return cmocka_run_group_tests_name("fs_names", tests, NULL, NULL);
}
