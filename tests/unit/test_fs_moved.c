/* SPDX-License-Identifier: Apache-2.0 */
/* What the host moves out of a share that is a mount of its own, as in the jail: it is closed. */
#include "tests/unit/fs_harness.h"

#include <sched.h>
#include <sys/mount.h>
#include <time.h>

static void test_moved_out(void **state)
{
	const struct timespec pause = {.tv_nsec = 150000000};
	struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0777};
	uint64_t directory, below, file, stays;
	int share_fd, outside_fd;
	struct fuse_open_out open_out;
	struct fuse_attr attr;
	struct harness *h;
	struct stat status;

	(void)state;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip(); /* needs root */
	h = harness_create_place("/dev/shm");
	share_fd = open(h->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	outside_fd = open(h->outside, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mount(h->directory, h->directory, NULL, MS_BIND, NULL), 0);
	harness_serve(h, &(struct fs_config){0});
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &directory), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "stays", 0755, &stays), 0);
	assert_int_equal(call_mkdir(h, directory, "below", 0755, &below), 0);
	assert_int_equal(call_mknod(h, below, "file", S_IFREG | 0644, &file), 0);
	assert_int_equal(renameat(share_fd, "d", outside_fd, "d"), 0);
	nanosleep(&pause, NULL);
	assert_int_equal(call_mkdir(h, below, "new", 0755, NULL), -ESTALE);
	assert_int_equal(call_create(h, directory, "new", O_RDWR, 0644, NULL, NULL), -ESTALE);
	assert_int_equal(call_lookup(h, directory, "below", NULL), -ESTALE);
	assert_int_equal(call_open(h, FUSE_OPEN, file, O_RDWR, &open_out), -ESTALE);
	assert_int_equal(call_open(h, FUSE_OPENDIR, below, O_RDONLY, &open_out), -ESTALE);
	assert_int_equal(call_setattr(h, file, &mode, NULL), -ESTALE);
	assert_int_equal(call_setattr(h, directory, &mode, NULL), -ESTALE);
	assert_int_equal(call_remove(h, FUSE_UNLINK, below, "file"), -ESTALE);
	assert_int_equal(call_rename(h, below, "file", stays, "file", 0), -ESTALE);
	assert_int_equal(call_link(h, file, stays, "file"), -ESTALE);
	assert_int_equal(fstatat(outside_fd, "d/below/file", &status, 0), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0644);
	assert_int_equal(call_mkdir(h, stays, "new", 0755, NULL), 0);
	/* Back again, or elsewhere in the share: looked up anew it is there. */
	assert_int_equal(renameat(outside_fd, "d", share_fd, "e"), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "e", &directory), 0);
	assert_int_equal(call_lookup(h, directory, "below", &below), 0);
	assert_int_equal(call_lookup(h, below, "file", &file), 0);
	assert_int_equal(call_getattr(h, file, &attr), 0);
	/* Within the share it goes on being the same. */
	assert_int_equal(renameat(share_fd, "e", share_fd, "f"), 0);
	nanosleep(&pause, NULL);
	assert_int_equal(call_mkdir(h, below, "new", 0755, NULL), 0);
	assert_int_equal(umount2(h->directory, MNT_DETACH), 0);
	close(share_fd);
	close(outside_fd);
	harness_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved_out),
	};

	return cmocka_run_group_tests_name("fs moved", tests, NULL, NULL);
}
