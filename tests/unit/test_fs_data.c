/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on open files, attributes and listings, on tmpfs and on the file system of /tmp. */
#include "tests/unit/fs_harness.h"

#include <linux/falloc.h>
#include <sys/xattr.h>
#include <time.h>

static int setup(void **state)
{
	*state = harness_create(*state ? "/tmp" : "/dev/shm", false, 0);
	return 0;
}

static void test_read_write(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out open;
	uint64_t node, fh;
	uint32_t written;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, &fh), 0);
	assert_int_equal(call_write(h, fh, 3, "abcdef", 6, 0, 0, &written), 0);
	assert_int_equal(written, 6);
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 100), 0);
	assert_int_equal(h->payload_size, 9);
	assert_memory_equal(h->payload, "\0\0\0abcdef", 9);
	assert_int_equal(call_read(h, FUSE_READ, fh, 4, 2), 0);
	assert_int_equal(h->payload_size, 2);
	assert_memory_equal(h->payload, "bc", 2);
	assert_int_equal(call_read(h, FUSE_READ, fh, 9, 2), 0);
	assert_int_equal(h->payload_size, 0);
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 0), 0);
	assert_int_equal(call_write(h, fh, 0, "", 0, 0, 0, &written), 0);
	assert_int_equal(written, 0);
	/* Only as it was opened. */
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &open), 0);
	assert_int_equal(call_write(h, open.fh, 0, "x", 1, 0, 0, &written), -EBADF);
	assert_int_equal(call_release(h, FUSE_RELEASE, node, open.fh), 0);
	assert_int_equal(call_read(h, FUSE_READ, open.fh, 0, 1), -EBADF);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_WRONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READ, open.fh, 0, 1), -EBADF);
}

static void test_limits_of_transfers(void **state)
{
	struct harness *h = *state;
	uint8_t *data = malloc(LIMIT_FS_IO_BYTES + 1);
	uint64_t node, fh;
	uint32_t written;

	assert_non_null(data);
	for (size_t i = 0; i <= LIMIT_FS_IO_BYTES; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, &fh), 0);
	assert_int_equal(call_write(h, fh, 0, data, LIMIT_FS_IO_BYTES, 0, 0, &written), 0);
	assert_int_equal(written, LIMIT_FS_IO_BYTES);
	assert_int_equal(call_write(h, fh, 0, data, LIMIT_FS_IO_BYTES + 1, 0, 0, &written),
			 -EINVAL);
	h->capacity = LIMIT_FS_IO_BYTES;
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, LIMIT_FS_IO_BYTES), 0);
	assert_int_equal(h->payload_size, LIMIT_FS_IO_BYTES);
	assert_memory_equal(h->payload, data, LIMIT_FS_IO_BYTES);
	h->capacity = LIMIT_FS_IO_BYTES + 1;
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, LIMIT_FS_IO_BYTES + 1), -EINVAL);
	h->capacity = 512;
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 513), -EINVAL);
	assert_int_equal(call_read(h, FUSE_READ, fh, UINT64_MAX, 1), -EINVAL);
	assert_int_equal(call_read(h, FUSE_READ, fh, INT64_MAX, 1), -EINVAL);
	assert_int_equal(call_write(h, fh, UINT64_MAX, "x", 1, 0, 0, &written), -EINVAL);
	assert_int_equal(call_write(h, fh, INT64_MAX, "x", 1, 0, 0, &written), -EINVAL);
	free(data);
}

static void test_append(void **state)
{
	struct harness *h = *state;
	uint64_t node, fh;
	uint32_t written;
	char text[16];

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR | O_APPEND, 0644, &node, &fh), 0);
	assert_int_equal(call_write(h, fh, 0, "one", 3, O_APPEND, 0, &written), 0);
	assert_int_equal(call_write(h, fh, 0, "two", 3, O_APPEND, 0, &written), 0);
	/* A page of a mapping goes to its place. */
	assert_int_equal(call_write(h, fh, 1, "X", 1, O_APPEND, FUSE_WRITE_CACHE, &written), 0);
	assert_int_equal(harness_host_read(h, "f", text, sizeof(text)), 6);
	assert_string_equal(text, "oXetwo");
}

static void test_sparse(void **state)
{
	struct harness *h = *state;
	struct fuse_fallocate_in allocate = {.offset = 0, .length = 65536};
	struct fuse_lseek_in seek = {.whence = SEEK_DATA};
	struct fuse_lseek_out at;
	uint64_t node, fh;
	uint32_t written;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, &fh), 0);
	assert_int_equal(call_write(h, fh, 1 << 20, "x", 1, 0, 0, &written), 0);
	seek.fh = fh;
	assert_int_equal(harness_call(h, FUSE_LSEEK, node, PIECE(seek), NONE, NONE), 0);
	memcpy(&at, h->payload, sizeof(at));
	assert_int_equal(at.offset, 1 << 20);
	seek.whence = SEEK_HOLE;
	assert_int_equal(harness_call(h, FUSE_LSEEK, node, PIECE(seek), NONE, NONE), 0);
	memcpy(&at, h->payload, sizeof(at));
	assert_int_equal(at.offset, 0);
	seek.offset = 2 << 20;
	assert_int_equal(harness_call(h, FUSE_LSEEK, node, PIECE(seek), NONE, NONE), -ENXIO);
	seek.offset = UINT64_MAX;
	assert_int_equal(harness_call(h, FUSE_LSEEK, node, PIECE(seek), NONE, NONE), -ENXIO);
	seek.whence = SEEK_SET;
	assert_int_equal(harness_call(h, FUSE_LSEEK, node, PIECE(seek), NONE, NONE), -EINVAL);
	allocate.fh = fh;
	assert_int_equal(harness_call(h, FUSE_FALLOCATE, node, PIECE(allocate), NONE, NONE), 0);
	assert_true(harness_host_stat(h, "f").st_blocks >= 128);
	allocate.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	allocate.length = 2 << 20;
	assert_int_equal(harness_call(h, FUSE_FALLOCATE, node, PIECE(allocate), NONE, NONE), 0);
	assert_int_equal(harness_host_stat(h, "f").st_blocks, 0);
	assert_int_equal(harness_host_stat(h, "f").st_size, (1 << 20) + 1);
	allocate.mode = 0x8000;
	assert_int_equal(harness_call(h, FUSE_FALLOCATE, node, PIECE(allocate), NONE, NONE),
			 -EOPNOTSUPP);
	allocate.mode = 0;
	allocate.length = UINT64_MAX;
	assert_int_equal(harness_call(h, FUSE_FALLOCATE, node, PIECE(allocate), NONE, NONE),
			 -EINVAL);
}

static void test_copy_file_range(void **state)
{
	struct harness *h = *state;
	struct fuse_copy_file_range_in in = {.off_in = 1, .off_out = 2, .len = 3};
	struct fuse_write_out out;
	uint64_t a, b;
	uint32_t written;
	char text[16];

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "a", O_RDWR, 0644, NULL, &a), 0);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "b", O_RDWR, 0644, NULL, &b), 0);
	assert_int_equal(call_write(h, a, 0, "abcdef", 6, 0, 0, &written), 0);
	assert_int_equal(call_write(h, b, 0, "123456", 6, 0, 0, &written), 0);
	in.fh_in = a;
	in.fh_out = b;
	assert_int_equal(harness_call(h, FUSE_COPY_FILE_RANGE, 1, PIECE(in), NONE, NONE), 0);
	memcpy(&out, h->payload, sizeof(out));
	assert_int_equal(out.size, 3);
	harness_host_read(h, "b", text, sizeof(text));
	assert_string_equal(text, "12bcd6");
	in.flags = 1;
	assert_int_equal(harness_call(h, FUSE_COPY_FILE_RANGE, 1, PIECE(in), NONE, NONE), -EINVAL);
	in.flags = 0;
	in.fh_in = 12345;
	assert_int_equal(harness_call(h, FUSE_COPY_FILE_RANGE, 1, PIECE(in), NONE, NONE), -EBADF);
}

static void test_sync(void **state)
{
	struct harness *h = *state;
	struct fuse_fsync_in in = {0};
	struct fuse_syncfs_in syncfs_in = {0};
	struct fuse_open_out directory;
	uint64_t fh;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, NULL, &fh), 0);
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &directory), 0);
	in.fh = fh;
	assert_int_equal(harness_call(h, FUSE_FSYNC, 1, PIECE(in), NONE, NONE), 0);
	assert_int_equal(harness_call(h, FUSE_FSYNCDIR, 1, PIECE(in), NONE, NONE), -EBADF);
	in.fsync_flags = FUSE_FSYNC_FDATASYNC;
	assert_int_equal(harness_call(h, FUSE_FSYNC, 1, PIECE(in), NONE, NONE), 0);
	in.fh = directory.fh;
	assert_int_equal(harness_call(h, FUSE_FSYNCDIR, 1, PIECE(in), NONE, NONE), 0);
	assert_int_equal(harness_call(h, FUSE_FSYNC, 1, PIECE(in), NONE, NONE), -EBADF);
	assert_int_equal(harness_call(h, FUSE_SYNCFS, 1, PIECE(syncfs_in), NONE, NONE), 0);
}

static void test_setattr(void **state)
{
	struct harness *h = *state;
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 07711};
	struct fuse_attr attr;
	uint64_t f, d, l, fh;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &f, &fh), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "l", "f", &l), 0);
	assert_int_equal(call_setattr(h, f, &in, &attr), 0);
	assert_int_equal(attr.mode, S_IFREG | 01711);
	assert_int_equal(call_setattr(h, d, &in, &attr), 0);
	assert_int_equal(attr.mode, S_IFDIR | 01711);
	assert_int_equal(call_setattr(h, l, &in, NULL), -EOPNOTSUPP);

	in = (struct fuse_setattr_in){.valid = FATTR_SIZE, .size = 4096};
	assert_int_equal(call_setattr(h, f, &in, &attr), 0);
	assert_int_equal(attr.size, 4096);
	assert_int_equal(call_setattr(h, d, &in, NULL), -EISDIR);
	assert_int_equal(call_setattr(h, l, &in, NULL), -EINVAL);
	in.size = UINT64_MAX;
	assert_int_equal(call_setattr(h, f, &in, NULL), -EINVAL);
	in = (struct fuse_setattr_in){.valid = FATTR_SIZE | FATTR_FH, .size = 7, .fh = fh};
	assert_int_equal(call_setattr(h, f, &in, &attr), 0);
	assert_int_equal(attr.size, 7);
	in.fh ^= 1ULL << 32;
	assert_int_equal(call_setattr(h, f, &in, NULL), -EBADF);

	in = (struct fuse_setattr_in){
		.valid = FATTR_MTIME | FATTR_ATIME, .mtime = 1000, .mtimensec = 5, .atime = 77};
	assert_int_equal(call_setattr(h, f, &in, &attr), 0);
	assert_int_equal(attr.mtime, 1000);
	assert_int_equal(attr.mtimensec, 5);
	assert_int_equal(attr.atime, 77);
	assert_int_equal(call_setattr(h, l, &in, &attr), 0); /* the link's own times */
	assert_int_equal(attr.mode & S_IFMT, S_IFLNK);
	assert_int_equal(attr.mtime, 1000);
	in.valid = FATTR_MTIME_NOW | FATTR_MTIME;
	assert_int_equal(call_setattr(h, f, &in, &attr), 0);
	assert_true(attr.mtime > 1000000000);
	assert_int_equal(attr.atime, 77);
	in.mtimensec = UTIME_OMIT;
	assert_int_equal(call_setattr(h, f, &in, NULL), -EINVAL);
}

static void test_owner(void **state)
{
	struct harness *h = *state;
	struct fuse_setattr_in in = {
		.valid = FATTR_UID | FATTR_GID, .uid = HARNESS_GUEST_UID, .gid = HARNESS_GUEST_GID};
	struct fuse_attr attr;
	struct stat status;
	uint64_t f, other;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &f, NULL), 0);
	assert_int_equal(call_setattr(h, f, &in, &attr), 0);
	assert_int_equal(attr.uid, HARNESS_GUEST_UID);
	status = harness_host_stat(h, "f");
	assert_int_equal(status.st_uid, geteuid());
	in.uid = 0;
	assert_int_equal(call_setattr(h, f, &in, NULL), -EPERM);
	in.uid = HARNESS_GUEST_UID;
	in.gid = 0;
	assert_int_equal(call_setattr(h, f, &in, NULL), -EPERM);
	assert_int_equal(harness_host_stat(h, "f").st_gid, status.st_gid);
	if (geteuid() == 0) {
		char path[512];

		harness_host_write(h, "other", "");
		harness_path(h, "other", path);
		assert_int_equal(chown(path, 4321, 4321), 0);
		assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "other", &other), 0);
		assert_int_equal(call_getattr(h, other, &attr), 0);
		assert_int_equal(attr.uid, ATTR_OVERFLOW_ID);
		assert_int_equal(attr.gid, ATTR_OVERFLOW_ID);
		in.uid = in.gid = ATTR_OVERFLOW_ID;
		assert_int_equal(call_setattr(h, other, &in, NULL), -EPERM);
		assert_int_equal(harness_host_stat(h, "other").st_uid, 4321);
	}
}

static void test_directory_keeps_its_group_bit(void **state)
{
	struct harness *h = *state;
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 02700};
	struct fuse_attr attr;
	char path[512];
	uint64_t d;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	assert_int_equal(call_setattr(h, d, &in, &attr), 0);
	assert_int_equal(attr.mode, S_IFDIR | 0700);
	harness_path(h, "d", path);
	assert_int_equal(chmod(path, 02755), 0);
	assert_int_equal(call_setattr(h, d, &in, &attr), 0);
	assert_int_equal(attr.mode, S_IFDIR | 02700);
	in.mode = 0700;
	assert_int_equal(call_setattr(h, d, &in, &attr), 0);
	assert_int_equal(attr.mode, S_IFDIR | 0700);
}

static void test_statx(void **state)
{
	struct harness *h = *state;
	struct fuse_statx_in in = {.sx_mask = STATX_BASIC_STATS | STATX_BTIME};
	struct fuse_statx_out out;
	struct statx status;
	char path[512];
	uint64_t node, fh;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, &fh), 0);
	assert_int_equal(harness_call(h, FUSE_STATX, node, PIECE(in), NONE, NONE), 0);
	assert_int_equal(h->payload_size, sizeof(out));
	memcpy(&out, h->payload, sizeof(out));
	harness_path(h, "f", path);
	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &status), 0);
	assert_int_equal(out.stat.ino, status.stx_ino);
	assert_int_equal(out.stat.mode, S_IFREG | 0644);
	assert_int_equal(out.stat.uid, HARNESS_GUEST_UID);
	assert_int_equal(out.stat.btime.tv_sec, status.stx_btime.tv_sec);
	in.getattr_flags = FUSE_GETATTR_FH;
	in.fh = fh;
	assert_int_equal(harness_call(h, FUSE_STATX, node, PIECE(in), NONE, NONE), 0);
	in.fh = fh + 1;
	assert_int_equal(harness_call(h, FUSE_STATX, node, PIECE(in), NONE, NONE), -EBADF);
}

static int get_xattr(struct harness *h, uint64_t node, const char *name, uint32_t size)
{
	struct fuse_getxattr_in in = {.size = size};

	return harness_call(h, FUSE_GETXATTR, node, PIECE(in), NAME(name), NONE);
}

static int set_xattr(struct harness *h, uint64_t node, const char *name, const char *value,
		     uint32_t flags)
{
	uint32_t in[2] = {(uint32_t)strlen(value), flags};

	return harness_call(h, FUSE_SETXATTR, node, PIECE(in), NAME(name),
			    BYTES(value, strlen(value)));
}

static void test_xattr(void **state)
{
	struct harness *h = *state;
	struct fuse_getxattr_in list = {.size = 100};
	struct fuse_getxattr_out out;
	uint64_t f, l;
	char path[512];

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &f, NULL), 0);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "l", "f", &l), 0);
	if (set_xattr(h, f, "user.a", "value", 0) == -EOPNOTSUPP)
		skip(); /* tmpfs knows user attributes from Linux 6.6 on */
	assert_int_equal(h->error, 0);
	assert_int_equal(set_xattr(h, f, "user.a", "value", XATTR_CREATE), -EEXIST);
	assert_int_equal(set_xattr(h, f, "user.b", "value", XATTR_REPLACE), -ENODATA);
	assert_int_equal(get_xattr(h, f, "user.a", 0), 0);
	memcpy(&out, h->payload, sizeof(out));
	assert_int_equal(out.size, 5);
	assert_int_equal(get_xattr(h, f, "user.a", 4), -ERANGE);
	assert_int_equal(get_xattr(h, f, "user.a", 5), 0);
	assert_int_equal(h->payload_size, 5);
	assert_memory_equal(h->payload, "value", 5);
	assert_int_equal(get_xattr(h, f, "user.absent", 5), -ENODATA);
	/* No other name space exists, for reading or writing, whatever the host has there. */
	harness_path(h, "f", path);
	if (geteuid() == 0)
		assert_int_equal(setxattr(path, "trusted.secret", "s", 1, 0), 0);
	assert_int_equal(get_xattr(h, f, "trusted.secret", 5), -EOPNOTSUPP);
	assert_int_equal(set_xattr(h, f, "trusted.x", "v", 0), -EOPNOTSUPP);
	assert_int_equal(set_xattr(h, f, "security.capability", "v", 0), -EOPNOTSUPP);
	assert_int_equal(set_xattr(h, f, "system.posix_acl_access", "v", 0), -EOPNOTSUPP);
	assert_int_equal(set_xattr(h, f, "user", "v", 0), -EOPNOTSUPP);
	assert_int_equal(set_xattr(h, f, "user.", "v", 0), -EINVAL);
	assert_int_equal(set_xattr(h, f, "", "v", 0), -ERANGE);
	assert_int_equal(harness_call(h, FUSE_LISTXATTR, f, PIECE(list), NONE, NONE), 0);
	assert_int_equal(h->payload_size, 7);
	assert_memory_equal(h->payload, "user.a", 7);
	assert_int_equal(harness_call(h, FUSE_LISTXATTR, l, PIECE(list), NONE, NONE), 0);
	assert_int_equal(h->payload_size, 0);
	assert_int_equal(get_xattr(h, l, "user.a", 5), -ENODATA);
	assert_int_equal(set_xattr(h, l, "user.a", "v", 0), -EPERM);
	assert_int_equal(call_remove(h, FUSE_REMOVEXATTR, f, "user.a"), 0);
	assert_int_equal(call_remove(h, FUSE_REMOVEXATTR, f, "user.a"), -ENODATA);
	assert_int_equal(call_remove(h, FUSE_REMOVEXATTR, f, "trusted.secret"), -EOPNOTSUPP);
}

static void test_keep_cache(void **state)
{
	struct harness *h = *state;
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct fuse_open_out out;
	uint64_t node;
	char path[512];

	harness_host_write(h, "f", "one");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "f", &node), 0);
	/* Just changed: another change could bear the same time, so nothing may be kept. */
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags & FOPEN_KEEP_CACHE, 0);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags & FOPEN_KEEP_CACHE, 0);
	sleep(3);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags & FOPEN_KEEP_CACHE, 0);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags & FOPEN_KEEP_CACHE, FOPEN_KEEP_CACHE);
	/* An edit of the host that hides itself by setting the time back is seen all the same. */
	harness_host_write(h, "f", "two");
	harness_path(h, "f", path);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags & FOPEN_KEEP_CACHE, 0);
}

static void test_access_and_rest(void **state)
{
	struct harness *h = *state;
	struct fuse_access_in access_in = {.mask = R_OK};
	struct fuse_ioctl_in ioctl_in = {0};
	struct fuse_statfs_out statfs_out;
	uint64_t node;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, NULL), 0);
	assert_int_equal(harness_call(h, FUSE_ACCESS, node, PIECE(access_in), NONE, NONE), 0);
	access_in.mask = X_OK;
	assert_int_equal(harness_call(h, FUSE_ACCESS, node, PIECE(access_in), NONE, NONE), -EACCES);
	access_in.mask = 0xff;
	assert_int_equal(harness_call(h, FUSE_ACCESS, node, PIECE(access_in), NONE, NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_IOCTL, node, PIECE(ioctl_in), NONE, NONE), -ENOSYS);
	assert_int_equal(harness_call(h, FUSE_FLUSH, node, NONE, NONE, NONE), -ENOSYS);
	assert_int_equal(harness_call(h, FUSE_STATFS, 1, NONE, NONE, NONE), 0);
	assert_int_equal(h->payload_size, sizeof(statfs_out));
	memcpy(&statfs_out, h->payload, sizeof(statfs_out));
	assert_int_equal(statfs_out.st.namelen, 255);
	assert_true(statfs_out.st.blocks > 0);
}

#define ON_TMPFS(test) cmocka_unit_test_prestate_setup_teardown(test, setup, harness_teardown, NULL)
#define ON_DISK(test)                                                  \
	{                                                              \
#test " (/tmp)", test, setup, harness_teardown, "/tmp" \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_TMPFS(test_read_write),
		ON_TMPFS(test_limits_of_transfers),
		ON_TMPFS(test_append),
		ON_TMPFS(test_sparse),
		ON_TMPFS(test_copy_file_range),
		ON_TMPFS(test_sync),
		ON_TMPFS(test_setattr),
		ON_TMPFS(test_owner),
		ON_TMPFS(test_directory_keeps_its_group_bit),
		ON_TMPFS(test_statx),
		ON_TMPFS(test_xattr),
		ON_TMPFS(test_keep_cache),
		ON_TMPFS(test_access_and_rest),
		ON_DISK(test_read_write),
		ON_DISK(test_limits_of_transfers),
		ON_DISK(test_append),
		ON_DISK(test_sparse),
		ON_DISK(test_copy_file_range),
		ON_DISK(test_sync),
		ON_DISK(test_setattr),
		ON_DISK(test_owner),
		ON_DISK(test_directory_keeps_its_group_bit),
		ON_DISK(test_statx),
		ON_DISK(test_xattr),
		ON_DISK(test_access_and_rest),
	};

	return cmocka_run_group_tests_name("fs_data", tests, NULL, NULL);
}
