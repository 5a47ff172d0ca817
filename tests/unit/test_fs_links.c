/* SPDX-License-Identifier: Apache-2.0 */
/* Hard links: those that were there lead out of the share, those of the guest do not. */
#include <sys/xattr.h>

#include "tests/unit/fs_harness.h"

#define OUTSIDE "../outside/original"

static int setup(void **state)
{
	struct harness *h = harness_create(*state ? "/var/tmp" : "/dev/shm", false, 0);
	char from[512], to[512];

	*state = h;
	harness_host_write(h, OUTSIDE, "original");
	harness_path(h, OUTSIDE, from);
	harness_path(h, "a", to);
	assert_int_equal(link(from, to), 0);
	harness_path(h, "b", to);
	assert_int_equal(link(from, to), 0);
	assert_int_equal(chmod(to, 0640), 0);
	return 0;
}

static void assert_text(struct harness *h, const char *name, const char *expected)
{
	char text[64];

	assert_true(harness_host_read(h, name, text, sizeof(text)) >= 0);
	assert_string_equal(text, expected);
}

static void write_node(struct harness *h, uint64_t node_id, const char *text)
{
	struct fuse_open_out out;
	uint32_t written;

	assert_int_equal(call_open(h, FUSE_OPEN, node_id, O_WRONLY, &out), 0);
	assert_int_equal(call_write(h, out.fh, 0, text, (uint32_t)strlen(text), 0, 0, &written), 0);
	assert_int_equal(written, strlen(text));
	assert_int_equal(call_release(h, FUSE_RELEASE, node_id, out.fh), 0);
}

static void test_write_goes_to_a_copy(void **state)
{
	struct harness *h = *state;
	struct stat before = harness_host_stat(h, "a"), after;
	uint64_t a, b;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "b", &b), 0);
	assert_int_not_equal(a, b);
	write_node(h, a, "changed!");
	assert_text(h, "a", "changed!");
	assert_text(h, "b", "original");
	assert_text(h, OUTSIDE, "original");
	after = harness_host_stat(h, "a");
	assert_int_equal(after.st_nlink, 1);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(harness_host_stat(h, OUTSIDE).st_nlink, 2);
	/* No name is left over, and the node is the same. */
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &b), 0);
	assert_int_equal(a, b);
}

static void test_attributes_go_to_a_copy(void **state)
{
	static const struct fuse_setattr_in changes[] = {
		{.valid = FATTR_MODE, .mode = 0777},
		{.valid = FATTR_SIZE, .size = 3},
		{.valid = FATTR_MTIME, .mtime = 1000},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(changes); i++) {
		struct harness *h;
		struct stat before, after;
		uint64_t a;

		if (i)
			setup(state);
		h = *state;
		before = harness_host_stat(h, OUTSIDE);
		assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
		assert_int_equal(harness_call(h, FUSE_SETATTR, a, PIECE(changes[i]), NONE, NONE),
				 0);
		after = harness_host_stat(h, OUTSIDE);
		assert_int_equal(after.st_mode, before.st_mode);
		assert_int_equal(after.st_size, before.st_size);
		assert_int_equal(after.st_mtime, before.st_mtime);
		assert_int_equal(harness_host_stat(h, "a").st_nlink, 1);
		if (i + 1 < ARRAY_SIZE(changes)) {
			harness_teardown(state);
			*state = NULL;
		}
	}
}

static void test_xattr_goes_to_a_copy(void **state)
{
	struct harness *h = *state;
	struct {
		uint32_t size, flags;
	} in = {.size = 1};
	char path[512], value[4];
	uint64_t a;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(
		harness_call(h, FUSE_SETXATTR, a, PIECE(in), NAME("user.x"), BYTES("v", 1)), 0);
	harness_path(h, OUTSIDE, path);
	assert_int_equal(getxattr(path, "user.x", value, sizeof(value)), -1);
	harness_path(h, "a", path);
	assert_int_equal(getxattr(path, "user.x", value, sizeof(value)), 1);
}

/* Who had it open to read reads on in what the name stands for. */
static void test_open_files_follow(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out out;
	uint64_t a;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, a, O_RDONLY, &out), 0);
	write_node(h, a, "changed!");
	assert_int_equal(call_read(h, FUSE_READ, out.fh, 0, 64), 0);
	assert_int_equal(h->payload_size, 8);
	assert_memory_equal(h->payload, "changed!", 8);
	assert_int_equal(call_release(h, FUSE_RELEASE, a, out.fh), 0);
}

static void test_links_of_the_guest_stay(void **state)
{
	struct harness *h = *state;
	uint64_t c, d;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "c", O_RDWR, 0644, &c, NULL), 0);
	assert_int_equal(call_link(h, c, FUSE_ROOT_ID, "d"), 0);
	harness_forget(h, c, 2);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "c", &c), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "d", &d), 0);
	assert_int_equal(c, d);
	write_node(h, c, "both");
	assert_text(h, "d", "both");
	assert_int_equal(harness_host_stat(h, "d").st_nlink, 2);
	/* As git does: the first name goes, a host's link comes. */
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "c"), 0);
	write_node(h, d, "one!");
	assert_text(h, "d", "one!");
}

/* Linked by the guest first, so that the count of links is no evidence any more. */
static void test_link_then_write(void **state)
{
	struct harness *h = *state;
	uint64_t a;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(call_link(h, a, FUSE_ROOT_ID, "c"), 0);
	write_node(h, a, "changed!");
	assert_text(h, OUTSIDE, "original");
	assert_text(h, "c", "changed!");
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "a"), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "c", &a), 0);
	write_node(h, a, "again...");
	assert_text(h, OUTSIDE, "original");
	assert_text(h, "c", "again...");
}

/* Moved, or without a name: the copy is made where the file is. */
static void test_moved_and_unlinked(void **state)
{
	struct harness *h = *state;
	uint64_t a, b, again;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "a", FUSE_ROOT_ID, "c", 0), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "c", &again), 0);
	assert_int_equal(again, a);
	write_node(h, a, "changed!");
	assert_text(h, "c", "changed!");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "b", &b), 0);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "b"), 0);
	write_node(h, b, "nowhere!");
	assert_false(harness_host_exists(h, "b"));
	assert_text(h, OUTSIDE, "original");
}

/* What cannot be copied is not changed. */
static void test_special_files(void **state)
{
	struct harness *h = *state;
	struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0777};
	struct fuse_setattr_in touch = {.valid = FATTR_MTIME, .mtime = 1000};
	char from[512], to[512];
	uint64_t id;

	harness_path(h, "../outside/fifo", from);
	harness_path(h, "fifo", to);
	assert_int_equal(mkfifo(from, 0600), 0);
	assert_int_equal(link(from, to), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "fifo", &id), 0);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(mode), NONE, NONE), -EPERM);
	assert_int_equal(harness_host_stat(h, "fifo").st_mode, S_IFIFO | 0600);
	harness_path(h, "../outside/symlink", from);
	harness_path(h, "symlink", to);
	assert_int_equal(symlink("x", from), 0);
	assert_int_equal(linkat(AT_FDCWD, from, AT_FDCWD, to, 0), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "symlink", &id), 0);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(touch), NONE, NONE), -EPERM);
	assert_int_not_equal(harness_host_stat(h, "symlink").st_mtime, 1000);
	/* The guest's own it may change. */
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "mine", "x", &id), 0);
	assert_int_equal(call_link(h, id, FUSE_ROOT_ID, "also"), 0);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(touch), NONE, NONE), 0);
}

static void test_host_replaces_meanwhile(void **state)
{
	struct harness *h = *state;
	char from[512], to[512];
	uint64_t a;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "a", &a), 0);
	harness_host_write(h, "new", "host's");
	harness_path(h, "new", from);
	harness_path(h, "a", to);
	assert_int_equal(rename(from, to), 0);
	write_node(h, a, "changed!");
	assert_text(h, "a", "host's");
	assert_text(h, OUTSIDE, "original");
	assert_text(h, "b", "original");
}

static void host_rename(struct harness *h, const char *from_name, const char *to_name)
{
	char from[512], to[512];

	harness_path(h, from_name, from);
	harness_path(h, to_name, to);
	assert_int_equal(rename(from, to), 0);
}

static void host_link(struct harness *h, const char *from_name, const char *to_name)
{
	char from[512], to[512];

	harness_path(h, from_name, from);
	harness_path(h, to_name, to);
	assert_int_equal(link(from, to), 0);
}

/* The host links a file that the guest knows already. */
static void test_links_that_came_later(void **state)
{
	struct harness *h = *state;
	struct fuse_create_in in = {.flags = O_RDWR, .mode = 0644};
	struct fuse_open_out out;
	char path[512];
	uint64_t x, t;

	for (int kept = 0; kept < 2; kept++) {
		harness_host_write(h, "x", "inside");
		assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "x", &x), 0);
		host_link(h, "x", "../outside/x");
		if (!kept)
			assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "x"), 0);
		write_node(h, x, "evil!!");
		assert_text(h, "../outside/x", "inside");
		if (kept)
			assert_text(h, "x", "evil!!");
		harness_path(h, "../outside/x", path);
		assert_int_equal(unlink(path), 0);
	}
	/* After a link of the guest's own. */
	harness_host_write(h, "own", "inside");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "own", &x), 0);
	assert_int_equal(call_link(h, x, FUSE_ROOT_ID, "other"), 0);
	write_node(h, x, "insid2");
	assert_text(h, "other", "insid2");
	host_link(h, "own", "../outside/own");
	write_node(h, x, "evil!!");
	assert_text(h, "../outside/own", "insid2");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "other", &x), 0);
	write_node(h, x, "evil!!");
	assert_text(h, "../outside/own", "insid2");
	/* After a file without a name got one. */
	assert_int_equal(
		call_entry(h, harness_call(h, FUSE_TMPFILE, 1, PIECE(in), NAME("/"), NONE), &t), 0);
	memcpy(&out, h->payload + sizeof(struct fuse_entry_out), sizeof(out));
	assert_int_equal(call_release(h, FUSE_RELEASE, t, out.fh), 0);
	assert_int_equal(call_link(h, t, FUSE_ROOT_ID, "t"), 0);
	write_node(h, t, "mine");
	assert_text(h, "t", "mine");
	host_link(h, "t", "../outside/t");
	write_node(h, t, "evil");
	assert_text(h, "../outside/t", "mine");
	assert_text(h, "t", "evil");
}

/* The host takes away the name that the guest knows, and not the file. */
static void test_names_that_went(void **state)
{
	struct harness *h = *state;
	struct fuse_attr attr; /* asking for it has the file opened, and kept so */
	char path[512];
	uint64_t x, y;

	harness_host_write(h, "x", "inside");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "x", &x), 0);
	assert_int_equal(call_getattr(h, x, &attr), 0);
	host_rename(h, "x", "../outside/x");
	write_node(h, x, "evil!!");
	assert_text(h, "../outside/x", "inside");
	harness_host_write(h, "y", "inside");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "y", &y), 0);
	assert_int_equal(call_getattr(h, y, &attr), 0);
	host_link(h, "y", "../outside/y");
	harness_path(h, "y", path);
	assert_int_equal(unlink(path), 0);
	write_node(h, y, "evil!!");
	assert_text(h, "../outside/y", "inside");
	/* Of two names, one; then a link elsewhere. */
	harness_host_write(h, "z", "inside");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "z", &x), 0);
	assert_int_equal(call_link(h, x, FUSE_ROOT_ID, "zz"), 0);
	harness_path(h, "z", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "zz", &x), 0);
	write_node(h, x, "insid2");
	assert_text(h, "zz", "insid2");
	host_link(h, "zz", "../outside/z");
	write_node(h, x, "evil!!");
	assert_text(h, "../outside/z", "insid2");
	/* Moved within the share it is the guest's to write to. */
	harness_host_write(h, "w", "inside");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "w", &x), 0);
	assert_int_equal(call_getattr(h, x, &attr), 0);
	host_rename(h, "w", "ww");
	write_node(h, x, "moved!");
	assert_text(h, "ww", "moved!");
	/* One that was never opened is not there any more. */
	harness_host_write(h, "v", "inside");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "v", &x), 0);
	host_rename(h, "v", "../outside/v");
	assert_int_equal(call_getattr(h, x, &attr), -ESTALE);
}

/* The name that the guest made last goes, and comes again, while it looks up none. */
static void test_links_again(void **state)
{
	static const mode_t types[] = {S_IFREG, S_IFIFO, S_IFSOCK};
	struct harness *h = *state;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		uint64_t x;

		assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "x", types[i] | 0600, &x), 0);
		for (int round = 0; round < 3; round++) {
			assert_int_equal(call_link(h, x, FUSE_ROOT_ID, "xx"), 0);
			assert_int_equal(harness_host_stat(h, "x").st_nlink, 2);
			assert_int_equal(harness_host_stat(h, "xx").st_ino,
					 harness_host_stat(h, "x").st_ino);
			assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "xx"), 0);
		}
		assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "x"), 0);
	}
}

/* A guest that claims to have forgotten its files makes away with a name of one by a rename. */
static void test_replaced_when_forgotten(void **state)
{
	struct harness *h = *state;
	uint64_t x, y;

	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "x", S_IFREG | 0644, &x), 0);
	write_node(h, x, "inside");
	assert_int_equal(call_link(h, x, FUSE_ROOT_ID, "xx"), 0);
	assert_int_equal(call_mknod(h, FUSE_ROOT_ID, "y", S_IFREG | 0644, &y), 0);
	harness_forget(h, x, 1000);
	harness_forget(h, y, 1000);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "y", FUSE_ROOT_ID, "xx", 0), 0);
	host_link(h, "x", "../outside/x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "x", &x), 0);
	write_node(h, x, "evil!!");
	assert_text(h, "../outside/x", "inside");
	assert_text(h, "x", "evil!!");
}

static void test_holes_and_size_stay(void **state)
{
	struct harness *h = *state;
	struct fuse_setattr_in touch = {.valid = FATTR_MODE, .mode = 0600};
	struct stat before, after;
	char from[512], to[512], byte;
	uint64_t id;
	int fd;

	harness_path(h, "../outside/sparse", from);
	harness_path(h, "sparse", to);
	fd = open(from, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 5 << 20), 1);
	assert_int_equal(ftruncate(fd, 9 << 20), 0);
	assert_int_equal(link(from, to), 0);
	before = harness_host_stat(h, "sparse");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "sparse", &id), 0);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(touch), NONE, NONE), 0);
	after = harness_host_stat(h, "sparse");
	assert_int_not_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_size, before.st_size);
	assert_true(after.st_blocks <= before.st_blocks + 16);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	close(fd);
	fd = open(to, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, 5 << 20), 1);
	assert_int_equal(byte, 'x');
	close(fd);
}

#define ON_BOTH(test)                                                   \
	cmocka_unit_test_setup_teardown(test, setup, harness_teardown), \
		cmocka_unit_test_prestate_setup_teardown(test, setup, harness_teardown, (void *)1)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_write_goes_to_a_copy),
		cmocka_unit_test_setup_teardown(test_attributes_go_to_a_copy, setup,
						harness_teardown),
		cmocka_unit_test_prestate_setup_teardown(test_xattr_goes_to_a_copy, setup,
							 harness_teardown, (void *)1),
		ON_BOTH(test_open_files_follow),
		ON_BOTH(test_links_of_the_guest_stay),
		ON_BOTH(test_link_then_write),
		ON_BOTH(test_moved_and_unlinked),
		ON_BOTH(test_special_files),
		ON_BOTH(test_host_replaces_meanwhile),
		ON_BOTH(test_links_that_came_later),
		ON_BOTH(test_names_that_went),
		ON_BOTH(test_links_again),
		ON_BOTH(test_replaced_when_forgotten),
		ON_BOTH(test_holes_and_size_stay),
	};

	return cmocka_run_group_tests_name("fs links", tests, NULL, NULL);
}
