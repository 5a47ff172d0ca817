/* SPDX-License-Identifier: Apache-2.0 */
/* A share under review: what is copied up, what the upper layer and base hold after that, and that
 * the lower layer stays as it is. */
#include "tests/unit/fs_review.h"

#include <sys/statvfs.h>

#define OLD 978307200

static void lower_write(struct review *r, const char *path, const char *text)
{
	const struct timespec times[2] = {{OLD, 0}, {OLD, 5}};

	harness_host_write(r->h, path, text);
	assert_int_equal(utimensat(r->lower_fd, path, times, 0), 0);
}

static void lower_mkdir(struct review *r, const char *path)
{
	assert_int_equal(mkdirat(r->lower_fd, path, 0755), 0);
}

/* Times of directories, once they are filled. */
static void lower_age(struct review *r, const char *path)
{
	const struct timespec times[2] = {{OLD, 0}, {OLD, 9}};

	assert_int_equal(utimensat(r->lower_fd, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void make_whiteout(struct review *r, const char *path)
{
	assert_int_equal(mknodat(r->upper_fd, path, S_IFCHR, 0), 0);
}

/* f, d/f, d/g, d/e/f, l -> f, p (a fifo) */
static int setup(void **state)
{
	struct review *r = review_create_place("/dev/shm");

	lower_write(r, "f", "lower f");
	lower_mkdir(r, "d");
	lower_mkdir(r, "d/e");
	lower_write(r, "d/f", "lower d/f");
	lower_write(r, "d/g", "lower d/g");
	lower_write(r, "d/e/f", "lower d/e/f");
	assert_int_equal(symlinkat("f", r->lower_fd, "l"), 0);
	assert_int_equal(mkfifoat(r->lower_fd, "p", 0640), 0);
	lower_age(r, "d/e");
	lower_age(r, "d");
	lower_age(r, "l");
	lower_age(r, "p");
	review_serve(r, (struct fs_config){0});
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	review_destroy(*state);
	return 0;
}

/* The node at a path. */
static uint64_t node(struct review *r, const char *path)
{
	uint64_t found = FUSE_ROOT_ID;
	char component[64];

	while (*path) {
		size_t length = strcspn(path, "/");

		snprintf(component, sizeof(component), "%.*s", (int)length, path);
		if (call_lookup(r->h, found, component, &found))
			return 0;
		path += length + (path[length] == '/');
	}
	return found;
}

static struct fuse_attr attributes(struct review *r, const char *path)
{
	struct fuse_attr attr;

	assert_int_equal(call_getattr(r->h, node(r, path), &attr), 0);
	return attr;
}

static uint64_t open_file(struct review *r, const char *path, uint32_t flags)
{
	struct fuse_open_out out;

	assert_int_equal(call_open(r->h, FUSE_OPEN, node(r, path), flags, &out), 0);
	return out.fh;
}

static void expect_read(struct review *r, uint64_t fh, const char *text)
{
	r->h->capacity = 4096;
	assert_int_equal(call_read(r->h, FUSE_READ, fh, 0, 4096), 0);
	assert_int_equal(r->h->payload_size, strlen(text));
	assert_memory_equal(r->h->payload, text, strlen(text));
}

static void expect_content(struct review *r, const char *path, const char *text)
{
	uint64_t fh = open_file(r, path, O_RDONLY);

	expect_read(r, fh, text);
	assert_int_equal(call_release(r->h, FUSE_RELEASE, node(r, path), fh), 0);
}

static void write_file(struct review *r, const char *path, const char *text)
{
	uint64_t fh = open_file(r, path, O_WRONLY);
	uint32_t written;

	assert_int_equal(call_write(r->h, fh, 0, text, (uint32_t)strlen(text), 0, 0, &written), 0);
	assert_int_equal(call_release(r->h, FUSE_RELEASE, node(r, path), fh), 0);
}

static int chmod_node(struct review *r, uint64_t id, uint32_t mode)
{
	const struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = mode};

	return call_setattr(r->h, id, &in, NULL);
}

static void test_layers_are_one(void **state)
{
	struct review *r = *state;
	FD_CLEANUP int fd = -1;

	/* As an earlier server left it. */
	make_whiteout(r, "f");
	assert_int_equal(mkdirat(r->upper_fd, "d", 0700), 0);
	make_whiteout(r, "d/f");
	assert_int_equal(mkdirat(r->upper_fd, "d/e", 0711), 0);
	fd = openat(r->upper_fd, "d/e", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, REVIEW_XATTR_OPAQUE, "y", 1, 0), 0);
	assert_int_equal(mkdirat(r->upper_fd, "p", 0755), 0);

	assert_int_equal(node(r, "f"), 0);
	assert_int_equal(node(r, "d/f"), 0);
	expect_content(r, "d/g", "lower d/g");
	assert_int_equal(attributes(r, "d").mode, S_IFDIR | 0700);
	assert_int_equal(attributes(r, "d/e").mode, S_IFDIR | 0711);
	assert_int_equal(node(r, "d/e/f"), 0);
	assert_int_equal(attributes(r, "p").mode, S_IFDIR | 0755);
	assert_true(S_ISLNK(attributes(r, "l").mode));
}

static void test_reading_copies_nothing(void **state)
{
	struct review *r = *state;
	struct fuse_open_out out;

	expect_content(r, "d/e/f", "lower d/e/f");
	assert_int_equal(call_open(r->h, FUSE_OPENDIR, node(r, "d"), O_RDONLY, &out), 0);
	r->h->capacity = 4096;
	assert_int_equal(call_read(r->h, FUSE_READDIRPLUS, out.fh, 0, 4096), 0);
	assert_false(review_upper_has(r, "d"));
}

static void test_writing_copies_up(void **state)
{
	struct review *r = *state;
	struct fuse_attr before = attributes(r, "d/e/f"), parent = attributes(r, "d/e"), after;
	uint64_t id = node(r, "d/e/f");

	write_file(r, "d/e/f", "UPPER");
	expect_content(r, "d/e/f", "UPPER d/e/f");
	review_expect_base(r, "d");
	review_expect_base(r, "d/e");
	review_expect_base(r, "d/e/f");
	assert_false(review_upper_has(r, "d/f"));
	after = attributes(r, "d/e/f");
	assert_int_equal(after.ino, before.ino);
	assert_int_equal(after.mode, before.mode);
	assert_int_equal(node(r, "d/e/f"), id);
	/* The directories are copies as well, and as old as what they were copied from. */
	after = attributes(r, "d/e");
	assert_int_equal(after.ino, parent.ino);
	assert_int_equal(after.mtime, OLD);
	assert_int_equal(after.mtimensec, 9);
	assert_int_equal(after.mode, parent.mode);
	assert_int_equal(attributes(r, "d").mtime, OLD);
	/* Also when all was forgotten. */
	assert_int_equal(harness_init_session(r->h), 0);
	assert_int_equal(attributes(r, "d/e/f").ino, before.ino);
	assert_int_equal(attributes(r, "d/e").ino, parent.ino);
	expect_content(r, "d/e/f", "UPPER d/e/f");
}

static void test_open_files_go_on_with_the_copy(void **state)
{
	struct review *r = *state;
	uint64_t reader = open_file(r, "f", O_RDONLY);

	expect_read(r, reader, "lower f");
	write_file(r, "f", "UPPER");
	expect_read(r, reader, "UPPER f");
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), 0);
	expect_read(r, reader, "UPPER f");
}

static void test_attributes_copy_up(void **state)
{
	struct review *r = *state;
	const struct fuse_setattr_in times = {.valid = FATTR_MTIME, .mtime = 1000};
	const struct fuse_setattr_in size = {.valid = FATTR_SIZE, .size = 3};
	struct {
		uint32_t size, flags;
	} set = {.size = 1};

	assert_int_equal(chmod_node(r, node(r, "p"), S_IFIFO | 0600), 0);
	assert_int_equal(attributes(r, "p").mode, S_IFIFO | 0600);
	assert_int_equal(call_setattr(r->h, node(r, "l"), &times, NULL), 0);
	assert_int_equal(attributes(r, "l").mtime, 1000);
	assert_int_equal(call_setattr(r->h, node(r, "d/f"), &size, NULL), 0);
	expect_content(r, "d/f", "low");
	assert_int_equal(harness_call(r->h, FUSE_SETXATTR, node(r, "d"), PIECE(set), NAME("user.a"),
				      BYTES("1", 1)),
			 0);
	assert_int_equal(call_link(r->h, node(r, "d/g"), FUSE_ROOT_ID, "linked"), 0);
	assert_int_equal(attributes(r, "d/g").nlink, 2);
	assert_int_equal(attributes(r, "d/g").ino, attributes(r, "linked").ino);
	write_file(r, "linked", "LINKED");
	expect_content(r, "d/g", "LINKEDd/g");
	review_expect_base(r, "p");
	review_expect_base(r, "l");
	review_expect_base(r, "d/f");
	review_expect_base(r, "d/g");
	assert_false(review_upper_has(r, "f"));
}

static void test_unlink(void **state)
{
	struct review *r = *state;
	uint64_t fh;

	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), 0);
	assert_true(review_is_whiteout_at(r, "f"));
	review_expect_base(r, "f");
	assert_int_equal(node(r, "f"), 0);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), -ENOENT);
	/* Made anew and deleted again. */
	assert_int_equal(call_create(r->h, FUSE_ROOT_ID, "f", O_RDWR | O_EXCL, 0600, NULL, &fh), 0);
	assert_int_equal(attributes(r, "f").mode, S_IFREG | 0600);
	assert_int_equal(attributes(r, "f").size, 0);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), 0);
	assert_true(review_is_whiteout_at(r, "f"));
	/* A copy, deleted. */
	write_file(r, "d/f", "x");
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, node(r, "d"), "f"), 0);
	assert_true(review_is_whiteout_at(r, "d/f"));
	/* What the lower layer never had leaves nothing. */
	assert_int_equal(call_mknod(r->h, FUSE_ROOT_ID, "own", S_IFREG | 0644, NULL), 0);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "own"), 0);
	assert_false(review_upper_has(r, "own"));
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "d"), -EISDIR);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "l"), -ENOTDIR);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "l"), 0);
	assert_int_equal(call_symlink(r->h, FUSE_ROOT_ID, "l", "elsewhere", NULL), 0);
	assert_true(S_ISLNK(attributes(r, "l").mode));
}

static void test_rmdir(void **state)
{
	struct review *r = *state;
	uint64_t d = node(r, "d");

	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), -ENOTEMPTY);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, node(r, "d/e"), "f"), 0);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, d, "e"), 0);
	assert_true(review_is_whiteout_at(r, "d/e"));
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "f"), 0);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), -ENOTEMPTY);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "g"), 0);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), 0);
	assert_true(review_is_whiteout_at(r, "d"));
	review_expect_base(r, "d/e/f");
	review_expect_base(r, "d/e");
	review_expect_base(r, "d");
	/* Nothing of the old one comes back with a new one. */
	assert_int_equal(call_mkdir(r->h, FUSE_ROOT_ID, "d", 0555, NULL), 0);
	assert_true(review_is_opaque_at(r, "d"));
	assert_int_equal(attributes(r, "d").mode, S_IFDIR | 0555);
	assert_int_equal(node(r, "d/f"), 0);
	assert_int_equal(node(r, "d/e"), 0);
	review_serve_again(r);
	assert_int_equal(node(r, "d/f"), 0);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), 0);
	assert_true(review_is_whiteout_at(r, "d"));
}

static void test_rename_of_files(void **state)
{
	struct review *r = *state;
	uint64_t d = node(r, "d"), id = node(r, "f");

	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "f", d, "moved", 0), 0);
	assert_true(review_is_whiteout_at(r, "f"));
	assert_int_equal(node(r, "d/moved"), id);
	expect_content(r, "d/moved", "lower f");
	/* Over a file of the lower layer, which gets its line. */
	assert_int_equal(call_rename(r->h, d, "moved", d, "g", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(call_rename(r->h, d, "moved", d, "g", 0), 0);
	expect_content(r, "d/g", "lower f");
	assert_false(review_upper_has(r, "d/moved"));
	review_expect_base(r, "d/g");
	/* Back over the whiteout. */
	assert_int_equal(call_rename(r->h, d, "g", FUSE_ROOT_ID, "f", RENAME_NOREPLACE), 0);
	expect_content(r, "f", "lower f");
	assert_true(review_is_whiteout_at(r, "d/g"));
	review_expect_base(r, "f");
	assert_int_equal(call_rename(r->h, d, "f", FUSE_ROOT_ID, "l", RENAME_EXCHANGE), 0);
	assert_true(S_ISLNK(attributes(r, "d/f").mode));
	expect_content(r, "l", "lower d/f");
	review_expect_base(r, "d/f");
	review_expect_base(r, "l");
}

static void test_rename_of_directories(void **state)
{
	struct review *r = *state;
	uint64_t d = node(r, "d"), e = node(r, "d/e"), file = node(r, "d/e/f"),
		 reader = open_file(r, "d/e/f", O_RDONLY);
	uint64_t number = attributes(r, "d/e/f").ino;
	uint32_t written;
	struct fuse_open_out out;

	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "g"), 0);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "new", 0), 0);
	assert_true(review_is_whiteout_at(r, "d"));
	assert_true(review_is_opaque_at(r, "new"));
	review_expect_base(r, "d");
	review_expect_base(r, "d/e/f");
	review_expect_base(r, "d/f");
	review_expect_base(r, "d/g");
	assert_int_equal(node(r, "d"), 0);
	/* What the guest knows it still knows, at the new place. */
	assert_int_equal(node(r, "new"), d);
	assert_int_equal(node(r, "new/e"), e);
	assert_int_equal(node(r, "new/e/f"), file);
	assert_int_equal(attributes(r, "new/e/f").ino, number);
	assert_int_equal(node(r, "new/g"), 0);
	assert_int_equal(call_open(r->h, FUSE_OPEN, file, O_RDWR, &out), 0);
	assert_int_equal(call_write(r->h, out.fh, 0, "UPPER", 5, 0, 0, &written), 0);
	expect_read(r, reader, "UPPER d/e/f");
	/* A new directory of the old name is another one. */
	assert_int_equal(call_mkdir(r->h, FUSE_ROOT_ID, "d", 0755, NULL), 0);
	assert_int_equal(node(r, "d/f"), 0);
	/* A directory over an empty one, where the lower layer has another. */
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "new", FUSE_ROOT_ID, "d", 0), 0);
	expect_content(r, "d/f", "lower d/f");
	assert_int_equal(node(r, "d/g"), 0);
	review_serve_again(r);
	expect_content(r, "d/e/f", "UPPER d/e/f");
	assert_int_equal(node(r, "d/g"), 0);
	assert_int_equal(node(r, "new"), 0);
}

static void test_exchange_of_directories(void **state)
{
	struct review *r = *state;

	assert_int_equal(call_mkdir(r->h, FUSE_ROOT_ID, "own", 0755, NULL), 0);
	assert_int_equal(call_mknod(r->h, node(r, "own"), "mine", S_IFREG | 0644, NULL), 0);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "own", FUSE_ROOT_ID, "d", RENAME_EXCHANGE),
			 0);
	assert_int_equal(node(r, "d/f"), 0);
	assert_int_not_equal(node(r, "d/mine"), 0);
	expect_content(r, "own/e/f", "lower d/e/f");
	assert_int_equal(call_rename(r->h, node(r, "own"), "e", FUSE_ROOT_ID, "f", RENAME_EXCHANGE),
			 0);
	expect_content(r, "f/f", "lower d/e/f");
	expect_content(r, "own/e", "lower f");
	review_serve_again(r);
	expect_content(r, "f/f", "lower d/e/f");
	assert_int_equal(node(r, "d/e"), 0);
}

static void test_hard_links_of_the_host(void **state)
{
	struct review *r = *state;

	assert_int_equal(linkat(r->lower_fd, "f", r->lower_fd, "d/linked", 0), 0);
	review_note_host(r);
	write_file(r, "f", "UPPER");
	expect_content(r, "f", "UPPER f");
	expect_content(r, "d/linked", "lower f");
	/* cp(1) and others take one number for one file. */
	assert_int_not_equal(attributes(r, "f").ino, attributes(r, "d/linked").ino);
	assert_int_equal(attributes(r, "f").nlink, 1);
	write_file(r, "d/linked", "OTHER");
	expect_content(r, "f", "UPPER f");
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "f", node(r, "d"), "linked", 0), 0);
	expect_content(r, "d/linked", "UPPER f");
	assert_int_equal(node(r, "f"), 0);
}

static void test_files_without_a_name(void **state)
{
	struct review *r = *state;
	uint64_t id = node(r, "f"), reader = open_file(r, "f", O_RDONLY);
	struct fuse_create_in in = {.flags = O_RDWR, .mode = 0600};
	struct fuse_open_out out;
	struct fuse_entry_out entry;
	uint32_t written;

	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), 0);
	assert_int_equal(chmod_node(r, id, S_IFREG | 0600), 0);
	assert_int_equal(call_open(r->h, FUSE_OPEN, id, O_RDWR, &out), 0);
	assert_int_equal(call_write(r->h, out.fh, 0, "UPPER", 5, 0, 0, &written), 0);
	expect_read(r, reader, "UPPER f");
	assert_true(review_is_whiteout_at(r, "f"));
	/* O_TMPFILE in a directory of the lower layer, and a name for it there. */
	assert_int_equal(harness_call(r->h, FUSE_TMPFILE, node(r, "d"), PIECE(in), NAME("/"), NONE),
			 0);
	memcpy(&entry, r->h->payload, sizeof(entry));
	assert_false(review_upper_has(r, "d"));
	assert_int_equal(call_link(r->h, entry.nodeid, node(r, "d"), "named"), 0);
	assert_int_equal(attributes(r, "d/named").mode, S_IFREG | 0600);
}

static void test_nothing_can_be_forged(void **state)
{
	struct review *r = *state;
	struct fuse_getxattr_in get = {.size = 0};
	struct fuse_getxattr_out size;
	struct {
		uint32_t size, flags;
	} set = {.size = 1};

	write_file(r, "d/f", "x");
	assert_int_equal(call_mknod(r->h, FUSE_ROOT_ID, "w", S_IFCHR | 0600, NULL), -EPERM);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "f", FUSE_ROOT_ID, "w", RENAME_WHITEOUT),
			 -EINVAL);
	assert_int_equal(harness_call(r->h, FUSE_SETXATTR, node(r, "d"), PIECE(set),
				      NAME(REVIEW_XATTR_OPAQUE), BYTES("y", 1)),
			 -EOPNOTSUPP);
	assert_int_equal(harness_call(r->h, FUSE_GETXATTR, node(r, "d/f"), PIECE(get),
				      NAME(REVIEW_XATTR_ORIGIN), NONE),
			 -EOPNOTSUPP);
	assert_int_equal(harness_call(r->h, FUSE_REMOVEXATTR, node(r, "d/f"),
				      NAME(REVIEW_XATTR_ORIGIN), NONE, NONE),
			 -EOPNOTSUPP);
	assert_int_equal(harness_call(r->h, FUSE_LISTXATTR, node(r, "d/f"), PIECE(get), NONE, NONE),
			 0);
	memcpy(&size, r->h->payload, sizeof(size));
	assert_int_equal(size.size, 0);
}

static void test_statfs_is_the_upper_layers(void **state)
{
	struct review *r = *state;
	struct fuse_statfs_out out;
	struct statvfs status;

	assert_int_equal(fstatvfs(r->upper_fd, &status), 0);
	assert_int_equal(harness_call(r->h, FUSE_STATFS, FUSE_ROOT_ID, NONE, NONE, NONE), 0);
	memcpy(&out, r->h->payload, sizeof(out));
	assert_int_equal(out.st.blocks, status.f_blocks);
	assert_int_equal(out.st.files, status.f_files);
}

/* A device of the host is neither copied nor moved nor deleted. */
static void test_devices_stay(void **state)
{
	struct review *r = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mknodat(r->lower_fd, "d/null", S_IFCHR | 0666, makedev(1, 3)), 0);
	review_note_host(r);
	assert_int_equal(chmod_node(r, node(r, "d/null"), S_IFCHR | 0600), -EPERM);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, node(r, "d"), "null"), -EPERM);
	assert_int_equal(call_rename(r->h, node(r, "d"), "null", FUSE_ROOT_ID, "n", 0), -EPERM);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "n", 0), -EXDEV);
	assert_false(review_upper_has(r, "d/null"));
}

/* Without its line of base a change is not made. */
static void test_base_comes_first(void **state)
{
	struct review *r = review_create_place("/dev/shm");
	struct fs_review layers = {.upper_fd = r->upper_fd};
	struct fs_config config = {.review = &layers};
	FD_CLEANUP int base = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct fuse_open_out out;

	(void)state;
	lower_write(r, "f", "lower");
	r->before = snapshot_take(r->h->directory);
	layers.base_fd = base;
	harness_serve(r->h, &config);
	assert_int_equal(call_open(r->h, FUSE_OPEN, node(r, "f"), O_RDWR, &out), -ENOSPC);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, FUSE_ROOT_ID, "f"), -ENOSPC);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "f", FUSE_ROOT_ID, "g", 0), -ENOSPC);
	expect_content(r, "f", "lower");
	assert_false(review_upper_has(r, "f"));
	review_destroy(r);
}

/* Not by root: directories that their owner made unwritable. */
static void as_user(void)
{
	struct review *r = review_create_place("/dev/shm");
	struct fuse_open_out out;

	lower_mkdir(r, "locked");
	lower_write(r, "locked/f", "lower");
	lower_write(r, "locked/secret", "lower");
	assert_int_equal(fchmodat(r->lower_fd, "locked/secret", 0, 0), 0);
	assert_int_equal(fchmodat(r->lower_fd, "locked", 0555, 0), 0);
	review_serve(r, (struct fs_config){0});
	assert_int_equal(call_mknod(r->h, node(r, "locked"), "g", S_IFREG | 0644, NULL), -EACCES);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, node(r, "locked"), "f"), -EACCES);
	assert_false(review_upper_has(r, "locked"));
	/* The file itself may be changed. */
	write_file(r, "locked/f", "UPPER");
	expect_content(r, "locked/f", "UPPER");
	assert_int_equal(attributes(r, "locked").mode, S_IFDIR | 0555);
	assert_int_equal(call_mknod(r->h, node(r, "locked"), "g", S_IFREG | 0644, NULL), -EACCES);
	assert_int_equal(call_open(r->h, FUSE_OPEN, node(r, "locked/secret"), O_RDWR, &out),
			 -EACCES);
	assert_int_equal(chmod_node(r, node(r, "locked"), S_IFDIR | 0755), 0);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, node(r, "locked"), "f"), 0);
	/* Without a look at its contents no copy can be made. */
	assert_int_equal(chmod_node(r, node(r, "locked/secret"), S_IFREG | 0600), -EACCES);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, node(r, "locked"), "secret"), 0);
	assert_int_equal(chmod_node(r, node(r, "locked"), S_IFDIR | 0555), 0);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "locked"), 0);
	assert_int_equal(node(r, "locked"), 0);
	assert_int_equal(fchmodat(r->lower_fd, "locked/secret", 0600, 0), 0);
	assert_int_equal(fchmodat(r->lower_fd, "locked", 0755, 0), 0);
	review_note_host(r);
	review_destroy(r);
}

static void test_permissions(void **state)
{
	pid_t child;
	int status;

	(void)state;
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 &&
		    (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
			_exit(2);
		as_user();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_layers_are_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reading_copies_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writing_copies_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_files_go_on_with_the_copy, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_attributes_copy_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unlink, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rmdir, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rename_of_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rename_of_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exchange_of_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hard_links_of_the_host, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files_without_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_can_be_forged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_statfs_is_the_upper_layers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_devices_stay, setup, teardown),
		cmocka_unit_test(test_base_comes_first),
		cmocka_unit_test(test_permissions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
