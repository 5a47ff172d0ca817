/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of root's powers in a server that root started. Also right for any other user. */
#include "vmm/jail/capabilities.h"

#include "tests/unit/fs_harness.h"

#include <sys/xattr.h>

static void make_set_id(struct harness *h, const char *name, uint64_t *node)
{
	char path[512];

	harness_host_write(h, name, "x");
	harness_path(h, name, path);
	assert_int_equal(chmod(path, 06755), 0);
	assert_int_equal(harness_host_stat(h, name).st_mode, S_IFREG | 06755);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, name, node), 0);
}

static void test_changes_take_set_id_bits(void **state)
{
	struct harness *h = harness_create("/tmp", false, 0);
	struct fuse_setattr_in in = {.valid = FATTR_SIZE | FATTR_KILL_SUIDGID, .size = 0};
	struct fuse_open_out open;
	uint64_t node;
	uint32_t written;

	(void)state;
	make_set_id(h, "written", &node);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDWR, &open), 0);
	assert_int_equal(call_write(h, open.fh, 0, "y", 1, 0, FUSE_WRITE_KILL_SUIDGID, &written),
			 0);
	assert_int_equal(harness_host_stat(h, "written").st_mode, S_IFREG | 0755);

	make_set_id(h, "truncated", &node);
	assert_int_equal(call_setattr(h, node, &in, NULL), 0);
	assert_int_equal(harness_host_stat(h, "truncated").st_mode, S_IFREG | 0755);

	make_set_id(h, "opened", &node);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_WRONLY | O_TRUNC, &open), 0);
	assert_int_equal(harness_host_stat(h, "opened").st_mode, S_IFREG | 0755);

	make_set_id(h, "owned", &node);
	in = (struct fuse_setattr_in){.valid = FATTR_UID, .uid = HARNESS_GUEST_UID};
	assert_int_equal(call_setattr(h, node, &in, NULL), 0);
	assert_int_equal(harness_host_stat(h, "owned").st_mode, S_IFREG | 0755);
	harness_destroy(h);
}

static void test_no_power_over_devices_and_attributes(void **state)
{
	struct harness *h = harness_create("/tmp", false, 0);
	char path[512];

	(void)state;
	harness_path(h, "device", path);
	assert_int_equal(mknod(path, S_IFCHR | 0600, 0x103), -1);
	assert_int_equal(errno, EPERM);
	harness_host_write(h, "file", "x");
	harness_path(h, "file", path);
	assert_int_equal(setxattr(path, "trusted.x", "v", 1, 0), -1);
	assert_int_equal(chown(path, 4321, 4321), -1);
	assert_int_equal(errno, EPERM);
	harness_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes_take_set_id_bits),
		cmocka_unit_test(test_no_power_over_devices_and_attributes),
	};

	if (capabilities_keep_only(CAPABILITIES_FILE_SERVER))
		return 1;
	return cmocka_run_group_tests_name("capabilities", tests, NULL, NULL);
}
