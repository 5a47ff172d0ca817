/* SPDX-License-Identifier: Apache-2.0 */
/* A share under review beside a plain directory: how things are found in both, and compared. */
#ifndef MVAGENT_TESTS_FS_DIFFERENTIAL_H
#define MVAGENT_TESTS_FS_DIFFERENTIAL_H

#include "tests/unit/fs_review.h"

#define NAMES      5
#define OPEN_FILES 6
#define OLD        978307200 /* mtime of all that is there at first: 2001-01-01 */

struct open_file {
	uint64_t fh; /* 0: not open */
	uint64_t node;
	int fd;
};

struct differential {
	struct review *review;
	struct harness *h;
	char plain[64];
	int plain_fd;
	uint64_t seed;
	uint64_t random;
	unsigned long step;
	struct open_file files[OPEN_FILES];
	uint64_t known[4096]; /* nodes that were looked up and not forgotten */
	unsigned int known_count;
	bool alone;          /* nothing is compared */
	char operation[512]; /* the one at work, for messages */
};

static const char *const names[NAMES] = {"a", "b", "c", "d", "e"};

static inline unsigned int pick(struct differential *test, unsigned int count)
{
	/* xorshift64* */
	test->random ^= test->random >> 12;
	test->random ^= test->random << 25;
	test->random ^= test->random >> 27;
	return (unsigned int)((test->random * 0x2545f4914f6cdd1dULL) >> 33) % count;
}

#define DISAGREE(test, format, ...)                                              \
	do {                                                                     \
		if (!(test)->alone)                                              \
			fail_msg("seed %llu, step %lu, %s: " format,             \
				 (unsigned long long)(test)->seed, (test)->step, \
				 (test)->operation, __VA_ARGS__);                \
	} while (0)

/* LOOKUP, whose node is forgotten some time later. */
static inline int look_up(struct differential *test, uint64_t parent, const char *name,
			  uint64_t *node)
{
	int error = call_lookup(test->h, parent, name, node);

	if (!error && test->known_count < ARRAY_SIZE(test->known))
		test->known[test->known_count++] = *node;
	return error;
}

/* As Linux does when it needs memory: all that is not open. */
static inline void forget_all(struct differential *test)
{
	while (test->known_count) {
		uint64_t node = test->known[--test->known_count];
		bool open = false;

		for (unsigned int i = 0; i < OPEN_FILES; i++)
			open |= test->files[i].fh && test->files[i].node == node;
		if (!open)
			harness_forget(test->h, node, 1U << 30);
	}
}

/* A path of one to three names. */
static inline void pick_path(struct differential *test, char path[16])
{
	unsigned int depth = 1 + pick(test, 3);

	*path = '\0';
	for (unsigned int i = 0; i < depth; i++) {
		if (i)
			strcat(path, "/");
		strcat(path, names[pick(test, NAMES)]);
	}
}

/* Finds the directory of @path on the share and the last name. 0 or -errno. */
static inline int walk_parent(struct differential *test, const char *path, uint64_t *node,
			      const char **name)
{
	char component[16];
	const char *slash;

	*node = FUSE_ROOT_ID;
	*name = path;
	while ((slash = strchr(path, '/'))) {
		struct fuse_attr attr;
		int error;

		snprintf(component, sizeof(component), "%.*s", (int)(slash - path), path);
		error = look_up(test, *node, component, node);
		if (error)
			return error;
		error = call_getattr(test->h, *node, &attr);
		if (error)
			return error;
		if (!S_ISDIR(attr.mode))
			return S_ISLNK(attr.mode) ? -ELOOP : -ENOTDIR;
		path = slash + 1;
	}
	*name = path;
	return 0;
}

static inline int walk(struct differential *test, const char *path, uint64_t *node)
{
	const char *name;
	uint64_t parent;
	int error = walk_parent(test, path, &parent, &name);

	return error ? error : look_up(test, parent, name, node);
}

/* The same for the plain directory: links are not followed there either. */
static inline int plain_parent(struct differential *test, const char *path, int *fd,
			       const char **name)
{
	char component[16];
	const char *slash;
	struct stat status;

	*name = path;
	*fd = fcntl(test->plain_fd, F_DUPFD_CLOEXEC, 0);
	while ((slash = strchr(path, '/'))) {
		int next;

		snprintf(component, sizeof(component), "%.*s", (int)(slash - path), path);
		next = openat(*fd, component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(*fd);
		*fd = next;
		assert_int_equal(fstat(*fd, &status), 0);
		if (!S_ISDIR(status.st_mode))
			return S_ISLNK(status.st_mode) ? -ELOOP : -ENOTDIR;
		path = slash + 1;
	}
	*name = path;
	return 0;
}

static inline void expect_errors(struct differential *test, int share, int plain)
{
	if (share != plain)
		DISAGREE(test, "review %s, plain %s", strerror(-share), strerror(-plain));
}

#define ERRNO_OF(call) ((call) ? -errno : 0)

/* --- comparison --- */

static inline void compare_status(struct differential *test, const char *path,
				  const struct fuse_attr *attr, const struct stat *status)
{
	bool old = status->st_mtim.tv_sec < OLD + 10000;

	if (attr->mode != status->st_mode)
		DISAGREE(test, "%s: mode %o and %o", path, attr->mode, status->st_mode);
	if (!S_ISDIR(status->st_mode) &&
	    (attr->nlink != status->st_nlink || attr->size != (uint64_t)status->st_size))
		DISAGREE(test, "%s: %u and %lu links, %llu and %lld bytes", path, attr->nlink,
			 status->st_nlink, (unsigned long long)attr->size,
			 (long long)status->st_size);
	/* What happened in the test happened to both, if not in the same nanosecond. */
	if (old ? attr->mtime != (uint64_t)status->st_mtim.tv_sec ||
			    attr->mtimensec != (uint32_t)status->st_mtim.tv_nsec
		: attr->mtime < OLD + 10000)
		DISAGREE(test, "%s: changed at %llu.%09u and %ld.%09ld", path,
			 (unsigned long long)attr->mtime, attr->mtimensec, status->st_mtim.tv_sec,
			 status->st_mtim.tv_nsec);
}

static inline void compare_content(struct differential *test, const char *path, uint64_t node,
				   int fd, const struct stat *status)
{
	static char plain[16384];
	struct fuse_open_out out;
	ssize_t length;

	if (S_ISLNK(status->st_mode)) {
		assert_int_equal(harness_call(test->h, FUSE_READLINK, node, NONE, NONE, NONE), 0);
		assert_int_equal(test->h->payload_size, 3);
	}
	if (!S_ISREG(status->st_mode))
		return;
	test->h->capacity = 16384;
	assert_int_equal(call_open(test->h, FUSE_OPEN, node, O_RDONLY, &out), 0);
	assert_int_equal(call_read(test->h, FUSE_READ, out.fh, 0, 16384), 0);
	length = pread(fd, plain, sizeof(plain), 0);
	if (length != (ssize_t)test->h->payload_size ||
	    memcmp(plain, test->h->payload, (size_t)length) != 0)
		DISAGREE(test, "the content of %s differs", path);
	assert_int_equal(call_release(test->h, FUSE_RELEASE, node, out.fh), 0);
}

/* Whether the names listed on the share are those of the plain directory. Bit i: names[i]. */
static inline unsigned int list_share(struct differential *test, const char *path, uint64_t node,
				      bool plus)
{
	struct fuse_open_out out;
	unsigned int found = 0;
	uint64_t offset = 0;

	test->h->capacity = 400;
	assert_int_equal(call_open(test->h, FUSE_OPENDIR, node, O_RDONLY, &out), 0);
	for (;;) {
		size_t at = 0, head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;

		assert_int_equal(call_read(test->h, plus ? FUSE_READDIRPLUS : FUSE_READDIR, out.fh,
					   offset, 400),
				 0);
		if (!test->h->payload_size)
			break;
		while (at < test->h->payload_size) {
			struct fuse_direntplus entry = {0};
			const char *name = (char *)test->h->payload + at + head;

			memcpy(plus ? (void *)&entry : &entry.dirent, test->h->payload + at, head);
			offset = entry.dirent.off;
			at += FUSE_DIRENT_ALIGN(head + entry.dirent.namelen);
			if (name[0] == '.')
				continue;
			if (entry.dirent.namelen != 1 || name[0] < 'a' || name[0] >= 'a' + NAMES)
				DISAGREE(test, "%s has %.*s", path, (int)entry.dirent.namelen,
					 name);
			if (found >> (name[0] - 'a') & 1)
				DISAGREE(test, "%s has %c twice", path, name[0]);
			found |= 1U << (name[0] - 'a');
			if (plus && entry.entry_out.attr.ino != entry.dirent.ino)
				DISAGREE(test, "%s/%c: another number", path, name[0]);
		}
	}
	assert_int_equal(call_release(test->h, FUSE_RELEASEDIR, node, out.fh), 0);
	return found;
}

static inline void compare_directory(struct differential *test, const char *path, uint64_t node,
				     int fd)
{
	unsigned int present = 0;
	char below[64];

	for (unsigned int i = 0; i < NAMES; i++) {
		FD_CLEANUP int entry_fd = openat(fd, names[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
		FD_CLEANUP int opened = -1;
		int error = entry_fd < 0 ? -errno : 0;
		struct fuse_attr attr;
		struct stat status;
		uint64_t entry;

		snprintf(below, sizeof(below), "%s/%s", path, names[i]);
		if (look_up(test, node, names[i], &entry) != error)
			DISAGREE(test, "%s is there in one only", below);
		if (error)
			continue;
		present |= 1U << i;
		assert_int_equal(fstat(entry_fd, &status), 0);
		assert_int_equal(call_getattr(test->h, entry, &attr), 0);
		compare_status(test, below, &attr, &status);
		if (S_ISREG(status.st_mode))
			opened = openat(fd, names[i], O_RDONLY | O_CLOEXEC);
		compare_content(test, below, entry, opened, &status);
		if (S_ISDIR(status.st_mode))
			compare_directory(test, below, entry, entry_fd);
	}
	for (unsigned int plus = 0; plus < 2; plus++) {
		unsigned int listed = list_share(test, path, node, plus);

		if (listed != present)
			DISAGREE(test, "%s lists %x, not %x", path, listed, present);
	}
}

#endif
