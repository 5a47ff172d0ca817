/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same random operations on a share under review and, by system calls, on a plain directory
 * with the same content: what they answer and what is there afterwards must agree. The environment
 * sets REVIEW_SEED and REVIEW_STEPS.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "tests/unit/fs_differential.h"

/* --- operations --- */

static void do_make(struct differential *test, const char *path)
{
	unsigned int kind = pick(test, 4), mode = pick(test, 2) ? 0755 : 0700;
	FD_CLEANUP int fd = -1;
	const char *name, *plain_name;
	uint64_t parent;
	int share = walk_parent(test, path, &parent, &name);
	int plain = plain_parent(test, path, &fd, &plain_name);

	snprintf(test->operation, sizeof(test->operation), "make %u %s", kind, path);
	if (!share) {
		if (kind == 0)
			share = call_mkdir(test->h, parent, name, mode, NULL);
		else if (kind == 1)
			share = call_mknod(test->h, parent, name, S_IFIFO | mode, NULL);
		else if (kind == 2)
			share = call_symlink(test->h, parent, name, "a/b", NULL);
		else
			share = call_mknod(test->h, parent, name, S_IFREG | mode, NULL);
	}
	if (!plain) {
		if (kind == 0)
			plain = ERRNO_OF(mkdirat(fd, plain_name, mode));
		else if (kind == 1)
			plain = ERRNO_OF(mknodat(fd, plain_name, S_IFIFO | mode, 0));
		else if (kind == 2)
			plain = ERRNO_OF(symlinkat("a/b", fd, plain_name));
		else
			plain = ERRNO_OF(mknodat(fd, plain_name, S_IFREG | mode, 0));
	}
	expect_errors(test, share, plain);
}

static void do_remove(struct differential *test, const char *path)
{
	bool directory = pick(test, 2);
	FD_CLEANUP int fd = -1;
	const char *name, *plain_name;
	uint64_t parent;
	int share = walk_parent(test, path, &parent, &name);
	int plain = plain_parent(test, path, &fd, &plain_name);

	snprintf(test->operation, sizeof(test->operation), "%s %s", directory ? "rmdir" : "unlink",
		 path);
	if (!share)
		share = call_remove(test->h, directory ? FUSE_RMDIR : FUSE_UNLINK, parent, name);
	if (!plain)
		plain = ERRNO_OF(unlinkat(fd, plain_name, directory ? AT_REMOVEDIR : 0));
	expect_errors(test, share, plain);
}

static void do_rename(struct differential *test, const char *path)
{
	static const unsigned int flags[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	unsigned int flag = flags[pick(test, ARRAY_SIZE(flags))];
	FD_CLEANUP int fd = -1;
	FD_CLEANUP int to_fd = -1;
	const char *name, *plain_name, *to_name, *plain_to_name = NULL;
	uint64_t parent, to_parent;
	char to[16];
	int share, plain;

	pick_path(test, to);
	snprintf(test->operation, sizeof(test->operation), "rename %u %s %s", flag, path, to);
	share = walk_parent(test, path, &parent, &name);
	if (!share)
		share = walk_parent(test, to, &to_parent, &to_name);
	plain = plain_parent(test, path, &fd, &plain_name);
	if (!plain)
		plain = plain_parent(test, to, &to_fd, &plain_to_name);
	if (!share)
		share = call_rename(test->h, parent, name, to_parent, to_name, flag);
	if (!plain)
		plain = ERRNO_OF(renameat2(fd, plain_name, to_fd, plain_to_name, flag));
	expect_errors(test, share, plain);
}

static void do_link(struct differential *test, const char *path)
{
	FD_CLEANUP int fd = -1;
	FD_CLEANUP int to_fd = -1;
	const char *to_name, *plain_name, *plain_to_name;
	uint64_t node = 0, to_parent;
	struct stat status;
	char to[16];
	int share, plain;

	pick_path(test, to);
	snprintf(test->operation, sizeof(test->operation), "link %s %s", path, to);
	share = walk(test, path, &node);
	plain = plain_parent(test, path, &fd, &plain_name);
	if (!plain)
		plain = ERRNO_OF(fstatat(fd, plain_name, &status, AT_SYMLINK_NOFOLLOW));
	expect_errors(test, share, plain);
	if (share || plain || S_ISDIR(status.st_mode))
		return;
	share = walk_parent(test, to, &to_parent, &to_name);
	plain = plain_parent(test, to, &to_fd, &plain_to_name);
	if (!share)
		share = call_link(test->h, node, to_parent, to_name);
	if (!plain)
		plain = ERRNO_OF(linkat(fd, plain_name, to_fd, plain_to_name, 0));
	expect_errors(test, share, plain);
}

static void open_keep(struct differential *test, uint64_t node, uint64_t fh, int fd)
{
	struct open_file *file = &test->files[pick(test, OPEN_FILES)];

	if (file->fh) {
		assert_int_equal(call_release(test->h, FUSE_RELEASE, file->node, file->fh), 0);
		close(file->fd);
	}
	*file = (struct open_file){.fh = fh, .node = node, .fd = fd};
}

static void do_open(struct differential *test, const char *path)
{
	static const int modes[] = {O_RDONLY, O_RDWR, O_WRONLY, O_RDWR | O_TRUNC};
	int mode = modes[pick(test, ARRAY_SIZE(modes))];
	int exclusive = pick(test, 3) == 0 ? O_EXCL : 0;
	bool create = pick(test, 2);
	FD_CLEANUP int fd = -1;
	const char *name, *plain_name;
	struct fuse_open_out out = {0};
	uint64_t parent, node = 0, fh = 0;
	struct stat status;
	int opened = -1;
	int share = walk_parent(test, path, &parent, &name);
	int plain = plain_parent(test, path, &fd, &plain_name);

	snprintf(test->operation, sizeof(test->operation), "open %o %s %s", mode | exclusive,
		 create ? "create" : "", path);
	if (!share && create) {
		share = call_create(test->h, parent, name, (uint32_t)(mode | exclusive | O_CREAT),
				    0640, &node, &fh);
	} else if (!share) {
		share = look_up(test, parent, name, &node);
		if (!share)
			share = call_open(test->h, FUSE_OPEN, node, (uint32_t)mode, &out);
		fh = out.fh;
	}
	if (!plain) {
		opened = openat(fd, plain_name,
				mode | (create ? exclusive | O_CREAT : 0) | O_NOFOLLOW |
					O_NONBLOCK | O_CLOEXEC,
				0640);
		plain = opened < 0 ? -errno : 0;
	}
	/* A fifo is never opened on the host. */
	if (share == -ENXIO) {
		if (opened >= 0)
			close(opened);
		return;
	}
	/* open(2) of a directory for reading is OPENDIR's. */
	if (!plain && share == -EISDIR && mode == O_RDONLY) {
		close(opened);
		return;
	}
	expect_errors(test, share, plain);
	/* In both: see work(). */
	if (!share && !plain && fstat(opened, &status) == 0 && S_ISREG(status.st_mode))
		open_keep(test, node, fh, opened);
	else if (!plain)
		close(opened);
}

/* Reads and writes a file that is open. */
static void do_transfer(struct differential *test)
{
	struct open_file *file = &test->files[pick(test, OPEN_FILES)];
	uint32_t offset = pick(test, 9000), size = 1 + pick(test, 5000);
	int mode = file->fh ? fcntl(file->fd, F_GETFL) & O_ACCMODE : 0;
	static char bytes[16384], plain[16384];
	uint32_t written;
	ssize_t length;

	if (!file->fh)
		return;
	snprintf(test->operation, sizeof(test->operation), "transfer at %u, %u bytes", offset,
		 size);
	if (mode != O_RDONLY && pick(test, 2)) {
		memset(bytes, (int)('A' + test->step % 26), size);
		assert_int_equal(call_write(test->h, file->fh, offset, bytes, size, 0, 0, &written),
				 0);
		assert_int_equal(written, size);
		assert_int_equal(pwrite(file->fd, bytes, size, offset), size);
	}
	if (mode == O_WRONLY)
		return;
	test->h->capacity = 16384;
	assert_int_equal(call_read(test->h, FUSE_READ, file->fh, 0, 16384), 0);
	length = pread(file->fd, plain, sizeof(plain), 0);
	if (length != (ssize_t)test->h->payload_size ||
	    memcmp(plain, test->h->payload, (size_t)length) != 0)
		DISAGREE(test, "an open file differs: %u and %zd bytes", test->h->payload_size,
			 length);
}

static int plain_set_attributes(int fd, const char *name, unsigned int kind, unsigned int value,
				mode_t type)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {OLD + value, value}};

	if (kind == 0)
		return type == S_IFLNK ? -EOPNOTSUPP
				       : ERRNO_OF(fchmodat(fd, name, 0600 | (value & 077), 0));
	if (kind == 1)
		return ERRNO_OF(utimensat(fd, name, times, AT_SYMLINK_NOFOLLOW));
	if (type != S_IFREG)
		return type == S_IFDIR ? -EISDIR : -EINVAL;
	FD_CLEANUP int opened = openat(fd, name, O_WRONLY | O_CLOEXEC);

	return ERRNO_OF(ftruncate(opened, value));
}

static void do_setattr(struct differential *test, const char *path)
{
	unsigned int kind = pick(test, 3), value = pick(test, 9000);
	struct fuse_setattr_in in = {0};
	FD_CLEANUP int fd = -1;
	const char *plain_name;
	struct stat status;
	uint64_t node = 0;
	int share = walk(test, path, &node);
	int plain = plain_parent(test, path, &fd, &plain_name);

	snprintf(test->operation, sizeof(test->operation), "setattr %u %u %s", kind, value, path);
	if (!plain)
		plain = ERRNO_OF(fstatat(fd, plain_name, &status, AT_SYMLINK_NOFOLLOW));
	expect_errors(test, share, plain);
	if (share || plain)
		return;
	in.valid = kind == 0 ? FATTR_MODE : kind == 1 ? FATTR_MTIME : FATTR_SIZE;
	in.mode = S_IFREG | 0600 | (value & 077);
	in.mtime = OLD + value;
	in.mtimensec = value;
	in.size = value;
	share = call_setattr(test->h, node, &in, NULL);
	plain = plain_set_attributes(fd, plain_name, kind, value, status.st_mode & S_IFMT);
	expect_errors(test, share, plain);
}

static void do_xattr(struct differential *test, const char *path)
{
	struct fuse_getxattr_in get = {.size = 64};
	struct {
		uint32_t size, flags;
	} set = {.size = 3};
	char file[256], value[64];
	uint64_t node = 0;
	FD_CLEANUP int fd = -1;
	const char *plain_name;
	int share = walk(test, path, &node);
	int plain = plain_parent(test, path, &fd, &plain_name);
	struct stat status;
	ssize_t length;

	snprintf(test->operation, sizeof(test->operation), "xattr %s", path);
	if (plain || fstatat(fd, plain_name, &status, AT_SYMLINK_NOFOLLOW) ||
	    !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
		return;
	snprintf(file, sizeof(file), "/proc/self/fd/%d/%s", fd, plain_name);
	if (pick(test, 2)) {
		share = harness_call(test->h, FUSE_SETXATTR, node, PIECE(set), NAME("user.x"),
				     BYTES("one", 3));
		plain = ERRNO_OF(setxattr(file, "user.x", "one", 3, 0));
	} else {
		share = harness_call(test->h, FUSE_REMOVEXATTR, node, NAME("user.x"), NONE, NONE);
		plain = ERRNO_OF(removexattr(file, "user.x"));
	}
	expect_errors(test, share, plain);
	share = harness_call(test->h, FUSE_GETXATTR, node, PIECE(get), NAME("user.x"), NONE);
	length = getxattr(file, "user.x", value, sizeof(value));
	expect_errors(test, share, length < 0 ? -errno : 0);
}

/* --- the whole --- */

/* The same tree in both places, three levels deep. */
static void fill(struct differential *test, int one, int other, unsigned int depth)
{
	static char content[9000];
	const struct timespec times[2] = {{OLD, 0}, {OLD, 7}};
	int places[2] = {one, other};

	for (unsigned int i = 0; i < NAMES; i++) {
		unsigned int kind = pick(test, 6);
		size_t size = pick(test, sizeof(content));

		memset(content, (int)('a' + pick(test, 26)), size);
		for (unsigned int k = 0; k < 2; k++) {
			if (kind <= 1 && depth)
				assert_int_equal(mkdirat(places[k], names[i], 0750), 0);
			else if (kind == 2)
				assert_int_equal(symlinkat("a/b", places[k], names[i]), 0);
			else if (kind == 3)
				continue;
			else {
				FD_CLEANUP int fd = openat(places[k], names[i],
							   O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

				assert_int_equal(fd_write_full(fd, content, size), 0);
				if (kind == 4)
					fsetxattr(fd, "user.x", "old", 3, 0);
			}
		}
		if (kind <= 1 && depth) {
			FD_CLEANUP int a = openat(one, names[i], O_RDONLY | O_CLOEXEC);
			FD_CLEANUP int b = openat(other, names[i], O_RDONLY | O_CLOEXEC);

			fill(test, a, b, depth - 1);
		}
		for (unsigned int k = 0; k < 2 && kind != 3; k++)
			assert_int_equal(utimensat(places[k], names[i], times, AT_SYMLINK_NOFOLLOW),
					 0);
	}
	for (unsigned int k = 0; k < 2; k++)
		assert_int_equal(futimens(places[k], times), 0);
}

static void do_step(struct differential *test)
{
	char path[16];

	pick_path(test, path);
	switch (pick(test, 12)) {
	case 0:
	case 1:
		do_make(test, path);
		break;
	case 2:
	case 3:
		do_remove(test, path);
		break;
	case 4:
	case 5:
		do_rename(test, path);
		break;
	case 6:
		do_link(test, path);
		break;
	case 7:
	case 8:
		do_open(test, path);
		break;
	case 9:
		do_transfer(test);
		break;
	case 10:
		do_setattr(test, path);
		break;
	default:
		do_xattr(test, path);
		break;
	}
}

static void forget_plain(struct differential *test)
{
	close(test->plain_fd);
	assert_int_equal(nftw(test->plain, harness_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Two directories of the host have the same in them. */
static void expect_same_trees(struct differential *test, int one, int other)
{
	for (unsigned int i = 0; i < NAMES; i++) {
		FD_CLEANUP int a = openat(one, names[i], O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
		FD_CLEANUP int b = openat(other, names[i], O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
		static char contents[2][16384];
		struct stat status[2];

		assert_int_equal(fstatat(one, names[i], &status[0], AT_SYMLINK_NOFOLLOW),
				 fstatat(other, names[i], &status[1], AT_SYMLINK_NOFOLLOW));
		if (a < 0)
			continue;
		if (status[0].st_mode != status[1].st_mode)
			DISAGREE(test, "mode %o and %o", status[0].st_mode, status[1].st_mode);
		if (S_ISDIR(status[0].st_mode))
			expect_same_trees(test, a, b);
		if (!S_ISREG(status[0].st_mode))
			continue;
		assert_int_equal(read(a, contents[0], sizeof(contents[0])),
				 read(b, contents[1], sizeof(contents[1])));
		assert_memory_equal(contents[0], contents[1], (size_t)status[0].st_size);
	}
}

static void run_differential(const char *share_base, uint64_t seed, unsigned long steps,
			     unsigned int fd_limit)
{
	struct differential test = {.seed = seed, .random = seed * 2 + 1};

	print_message("seed %llu, %lu steps\n", (unsigned long long)seed, steps);
	test.review = review_create_place(share_base);
	test.h = test.review->h;
	strcpy(test.plain, "/dev/shm/mvagent-plain-XXXXXX");
	assert_non_null(mkdtemp(test.plain));
	test.plain_fd = open(test.plain, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fill(&test, test.review->lower_fd, test.plain_fd, 2);
	review_serve(test.review, (struct fs_config){.fd_limit = fd_limit});
	for (test.step = 0; test.step < steps; test.step++) {
		do_step(&test);
		if (test.step % 50 == 49)
			compare_directory(&test, "", FUSE_ROOT_ID, test.plain_fd);
		if (test.step % 50 == 49 && pick(&test, 2))
			forget_all(&test);
		if (test.step % 500 == 499)
			review_expect_untouched(test.review);
		if (test.step % 500 == 499)
			review_expect_all_bases(test.review);
	}
	/* The root's two. */
	assert_int_equal(harness_init_session(test.h), 0);
	assert_int_equal(fs_server_usage(test.h->server).descriptors, 2);
	/* What a new server makes of the upper layer is what the guest saw. */
	review_serve_again(test.review);
	compare_directory(&test, "", FUSE_ROOT_ID, test.plain_fd);
	for (unsigned int i = 0; i < OPEN_FILES; i++)
		if (test.files[i].fh)
			close(test.files[i].fd);
	review_expect_no_conflict(test.review, true);
	expect_same_trees(&test, test.review->lower_fd, test.plain_fd);
	review_note_host(test.review);
	forget_plain(&test);
	review_destroy(test.review);
}

static unsigned long long setting(const char *name, unsigned long long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

static void test_agrees(void **state)
{
	unsigned long steps = setting("REVIEW_STEPS", 1000);
	uint64_t seed = setting("REVIEW_SEED", (unsigned long long)time(NULL));

	(void)state;
	/* The whiteouts of one run are in the way of few names: many short runs see more. */
	for (unsigned int i = 0; i < 10; i++) {
		run_differential(i % 2 ? "/var/tmp" : "/dev/shm", seed + 2 * i, steps, 0);
		run_differential(i % 2 ? "/var/tmp" : "/dev/shm", seed + 2 * i + 1, steps,
				 LIMIT_FS_FD_MINIMUM);
	}
}

/* Works until it is killed. */
static void work(struct differential *test)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Of an operation that was cut short the plain directory has more, or less. */
	test->alone = true;
	review_serve(test->review, (struct fs_config){0});
	for (;; test->step++)
		do_step(test);
}

/* Each change to the upper layer is safe on its own: when the server is killed between two, nothing
 * of the host's is hidden without a line of base, and the next server goes on. */
static void test_killed_servers(void **state)
{
	unsigned long rounds = setting("REVIEW_KILLS", 100);
	uint64_t seed = setting("REVIEW_SEED", (unsigned long long)time(NULL));
	struct differential test = {.seed = seed, .random = seed * 2 + 1};

	(void)state;
	print_message("seed %llu, %lu kills\n", (unsigned long long)seed, rounds);
	for (unsigned long round = 0; round < rounds - rounds % 10; round++) {
		pid_t child;
		int status;

		if (round % 10 == 0) {
			test.review = review_create_place("/dev/shm");
			strcpy(test.plain, "/dev/shm/mvagent-plain-XXXXXX");
			assert_non_null(mkdtemp(test.plain));
			test.plain_fd = open(test.plain, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			fill(&test, test.review->lower_fd, test.plain_fd, 2);
			test.h = test.review->h;
		}
		test.random = test.random * 3 + round;
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			work(&test);
		usleep(3000 + pick(&test, 40000));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		free(test.review->before);
		review_serve(test.review, (struct fs_config){0});
		review_expect_all_bases(test.review);
		review_expect_no_conflict(test.review, false);
		review_expect_untouched(test.review);
		if (round % 10 == 9) {
			forget_plain(&test);
			review_destroy(test.review);
			continue;
		}
		fs_server_destroy(test.h->server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees),
		cmocka_unit_test(test_killed_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
