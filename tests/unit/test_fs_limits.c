/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, and what happens when descriptors run short: old ones go and come back by name. */
#include "tests/unit/fs_harness.h"

#define FEW_DESCRIPTORS LIMIT_FS_FD_MINIMUM

static struct fuse_init_out last_init(const struct harness *h)
{
	struct fuse_init_out out;

	assert_int_equal(h->payload_size, sizeof(out));
	memcpy(&out, h->payload, sizeof(out));
	return out;
}

static void test_init(void **state)
{
	struct harness *h = harness_create("/dev/shm", false, 0);
	struct fuse_init_in in = {.major = 7, .minor = 31, .flags = FUSE_MAX_PAGES};
	struct fuse_init_out out;
	uint64_t node;

	(void)state;
	assert_int_equal(harness_init_session(h), 0);
	out = last_init(h);
	assert_int_equal(out.major, 7);
	assert_true(out.minor >= 31 && out.minor <= 41);
	assert_int_equal(out.max_write, 1 << 20);
	assert_int_equal(out.max_pages, 256);
	assert_int_equal(out.time_gran, 1);
	assert_int_equal(out.flags2, 0);
	assert_int_equal(out.flags & (FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_DONT_MASK |
				      FUSE_WRITEBACK_CACHE | FUSE_POSIX_ACL | FUSE_SECURITY_CTX |
				      FUSE_EXPORT_SUPPORT),
			 0);
	/* A second session starts afresh; ids of the first mean nothing in it. */
	harness_host_write(h, "f", "x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "f", &node), 0);
	assert_int_equal(harness_call(h, FUSE_INIT, 0, BYTES(&in, 16), NONE, NONE), 0);
	out = last_init(h);
	assert_int_equal(out.minor, 31);
	assert_int_equal(out.flags, FUSE_MAX_PAGES);
	assert_int_equal(harness_call(h, FUSE_READLINK, node, NONE, NONE, NONE), -ESTALE);
	assert_int_equal(fs_server_usage(h->server).inodes, 1);

	in.major = 8;
	assert_int_equal(harness_call(h, FUSE_INIT, 0, PIECE(in), NONE, NONE), 0);
	assert_int_equal(last_init(h).major, 7);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "f", NULL), -EIO);
	in.major = 6;
	assert_int_equal(harness_call(h, FUSE_INIT, 0, PIECE(in), NONE, NONE), -EPROTO);
	in.major = 7;
	in.minor = 12;
	assert_int_equal(harness_call(h, FUSE_INIT, 0, PIECE(in), NONE, NONE), -EPROTO);
	assert_int_equal(harness_call(h, FUSE_INIT, 0, BYTES(&in, 15), NONE, NONE), -EINVAL);
	harness_destroy(h);
}

static void test_destroy(void **state)
{
	struct harness *h = harness_create("/dev/shm", false, 0);
	uint64_t fh;

	(void)state;
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, NULL, &fh), 0);
	assert_int_equal(harness_call(h, FUSE_DESTROY, 0, NONE, NONE, NONE), 0);
	assert_int_equal(fs_server_usage(h->server).inodes, 1);
	assert_int_equal(fs_server_usage(h->server).handles, 0);
	assert_int_equal(fs_server_usage(h->server).descriptors, 1);
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 1), -EIO);
	harness_destroy(h);
}

static int count_open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* More inodes than descriptors: each one still answers, and the process holds to its bound. */
static void test_many_inodes_few_descriptors(void **state)
{
	struct harness *h = harness_create(*state ? "/tmp" : "/dev/shm", false, FEW_DESCRIPTORS);
	static uint64_t directories[30], files[30][30];
	int before = count_open_descriptors();
	struct fuse_attr attr;
	char name[16];

	for (unsigned int i = 0; i < 30; i++) {
		uint64_t parent = i == 0 ? FUSE_ROOT_ID : directories[i - 1]; /* a deep tree */

		assert_int_equal(call_mkdir(h, parent, "d", 0755, &directories[i]), 0);
		for (unsigned int j = 0; j < 30; j++) {
			snprintf(name, sizeof(name), "f%u", j);
			assert_int_equal(call_mknod(h, directories[i], name,
						    S_IFREG | 0600 | (j & 7), &files[i][j]),
					 0);
		}
	}
	assert_int_equal(fs_server_usage(h->server).inodes, 1 + 30 + 900);
	/* Only directories are opened before the guest makes use of them. */
	assert_int_equal(fs_server_usage(h->server).descriptors, 1 + 30);
	for (unsigned int j = 0; j < 30; j++)
		assert_int_equal(call_getattr(h, files[j][j], &attr), 0);
	for (unsigned int j = 0; j < 29; j++)
		assert_int_equal(call_getattr(h, files[j][j + 1], &attr), 0);
	assert_int_equal(fs_server_usage(h->server).descriptors, FEW_DESCRIPTORS);
	assert_true(count_open_descriptors() <= before + FEW_DESCRIPTORS);
	for (unsigned int j = 0; j < 30; j++)
		for (unsigned int i = 0; i < 30; i++) {
			assert_int_equal(call_getattr(h, files[29 - i][j], &attr), 0);
			assert_int_equal(attr.mode, S_IFREG | 0600 | (j & 7));
		}
	/* Names moved by the guest are found at their new place, with all that is below. */
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "moved", 0), 0);
	assert_int_equal(call_getattr(h, files[29][29], &attr), 0);
	assert_int_equal(call_getattr(h, files[0][0], &attr), 0);
	harness_destroy(h);
}

/* An inode whose descriptor went, and whose name leads elsewhere now, is stale and no other. */
static void test_evicted_inode_is_checked(void **state)
{
	struct harness *h = harness_create(*state ? "/tmp" : "/dev/shm", false, FEW_DESCRIPTORS);
	struct fuse_attr attr;
	uint64_t victim, again;
	char name[16], from[512], to[512];

	harness_host_write(h, "victim", "x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "victim", &victim), 0);
	assert_int_equal(call_getattr(h, victim, &attr), 0);
	for (unsigned int i = 0; i < 2 * FEW_DESCRIPTORS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, name, 0700, NULL), 0);
	}
	harness_host_write(h, "other", "y");
	harness_path(h, "other", from);
	harness_path(h, "victim", to);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(call_getattr(h, victim, &attr), -ESTALE);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "victim", &again), 0);
	assert_true(again != victim);
	assert_int_equal(call_getattr(h, again, &attr), 0);
	harness_destroy(h);
}

/* What the guest unlinked has no name to be found by: its descriptor stays. */
static void test_unlinked_inodes_stay_open(void **state)
{
	struct harness *h = harness_create("/dev/shm", false, FEW_DESCRIPTORS);
	struct fuse_attr attr;
	uint64_t removed, replaced;
	char name[16];

	(void)state;
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "removed", S_IFREG | 0600, &removed), 0);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "replaced", S_IFREG | 0600, &replaced), 0);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "new", S_IFREG | 0600, NULL), 0);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "removed"), 0);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "new", FUSE_ROOT_ID, "replaced", 0), 0);
	for (unsigned int i = 0; i < 2 * FEW_DESCRIPTORS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(call_mknod(h, FUSE_ROOT_ID, name, S_IFREG | 0600, NULL), 0);
	}
	assert_int_equal(call_getattr(h, removed, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	assert_int_equal(call_getattr(h, replaced, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	harness_destroy(h);
}

/* The guest can use up its own share of descriptors, and gets it back; names are found all along.
 */
static void test_exhaustion(void **state)
{
	struct harness *h = harness_create("/dev/shm", false, FEW_DESCRIPTORS);
	uint64_t handles[FEW_DESCRIPTORS], node;
	unsigned int count = 0;
	int before = count_open_descriptors();
	struct fuse_open_out open;
	int error = 0;

	(void)state;
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "f", S_IFREG | 0600, &node), 0);
	while (count < FEW_DESCRIPTORS) {
		error = call_open(h, FUSE_OPEN, node, O_RDONLY, &open);
		if (error)
			break;
		handles[count++] = open.fh;
	}
	assert_int_equal(error, -ENFILE);
	assert_true(count >= FEW_DESCRIPTORS / 4);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "g", O_RDWR, 0600, NULL, NULL), -ENFILE);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "f", NULL), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0700, NULL), 0);
	assert_true(count_open_descriptors() <= before + FEW_DESCRIPTORS);
	while (count)
		assert_int_equal(call_release(h, FUSE_RELEASE, node, handles[--count]), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDONLY, &open), 0);
	harness_destroy(h);
}

/* Files without names cannot be let go: they run into the bound as well. */
static void test_exhaustion_by_nameless_files(void **state)
{
	struct harness *h = harness_create("/dev/shm", false, FEW_DESCRIPTORS);
	struct fuse_create_in in = {.flags = O_RDWR, .mode = 0600};
	struct fuse_entry_out entry;
	struct fuse_open_out open;
	struct fuse_attr attr;
	char path[512];
	uint64_t file;
	int made = 0;

	(void)state;
	while (harness_call(h, FUSE_TMPFILE, FUSE_ROOT_ID, PIECE(in), NAME("/"), NONE) == 0) {
		memcpy(&entry, h->payload, sizeof(entry));
		memcpy(&open, h->payload + sizeof(entry), sizeof(open));
		assert_int_equal(call_release(h, FUSE_RELEASE, entry.nodeid, open.fh), 0);
		assert_true(++made < FEW_DESCRIPTORS);
	}
	assert_int_equal(h->error, -ENFILE);
	assert_true(fs_server_usage(h->server).descriptors <= FEW_DESCRIPTORS);
	harness_forget(h, entry.nodeid, 1);
	assert_int_equal(harness_call(h, FUSE_TMPFILE, FUSE_ROOT_ID, PIECE(in), NAME("/"), NONE),
			 0);
	assert_int_equal(harness_call(h, FUSE_TMPFILE, FUSE_ROOT_ID, PIECE(in), NAME("/"), NONE),
			 -ENFILE);
	harness_path(h, "there", path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "there", NULL), -ENFILE);
	/* It takes no descriptor to see that nothing is there, or a file. */
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "absent", NULL), -ENOENT);
	harness_host_write(h, "file", "x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "file", &file), 0);
	assert_int_equal(call_getattr(h, file, &attr), -ENFILE);
	assert_int_equal(harness_init_session(h), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "there", NULL), 0);
	harness_destroy(h);
}

/* The host moves directories into a circle of what was seen last: no endless walk. */
static void test_parents_in_a_circle(void **state)
{
	struct harness *h = harness_create("/dev/shm", false, FEW_DESCRIPTORS);
	struct fuse_attr attr;
	char a[512], b[512], t[512], name[16];
	uint64_t node_a, node_b;

	(void)state;
	harness_path(h, "a", a);
	harness_path(h, "a/b", b);
	harness_path(h, "t", t);
	assert_int_equal(mkdir(a, 0755), 0);
	assert_int_equal(mkdir(b, 0755), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &node_a), 0);
	assert_int_equal(call_lookup(h, node_a, "b", &node_b), 0);
	assert_int_equal(rename(b, t), 0);
	harness_path(h, "t/a", b);
	assert_int_equal(rename(a, b), 0);
	assert_int_equal(call_lookup(h, node_b, "a", NULL), 0); /* a's parent is b, b's is a */
	for (unsigned int i = 0; i < 2 * FEW_DESCRIPTORS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, name, 0700, NULL), 0);
	}
	assert_int_equal(call_getattr(h, node_a, &attr), -ESTALE);
	assert_int_equal(call_getattr(h, node_b, &attr), -ESTALE);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "t", &node_b), 0);
	assert_int_equal(call_getattr(h, node_a, &attr), 0);
	harness_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_many_inodes_few_descriptors),
		{"test_many_inodes_few_descriptors (/tmp)", test_many_inodes_few_descriptors, NULL,
		 NULL, "/tmp"},
		cmocka_unit_test(test_evicted_inode_is_checked),
		{"test_evicted_inode_is_checked (/tmp)", test_evicted_inode_is_checked, NULL, NULL,
		 "/tmp"},
		cmocka_unit_test(test_unlinked_inodes_stay_open),
		cmocka_unit_test(test_exhaustion),
		cmocka_unit_test(test_exhaustion_by_nameless_files),
		cmocka_unit_test(test_parents_in_a_circle),
	};

	return cmocka_run_group_tests_name("fs_limits", tests, NULL, NULL);
}
