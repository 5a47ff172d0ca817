/* SPDX-License-Identifier: Apache-2.0 */
/* A share under review: the harness's directory is the lower layer; the upper one is in /var/tmp,
 * because attributes need a file system that has them. */
#ifndef MVAGENT_TESTS_FS_REVIEW_H
#define MVAGENT_TESTS_FS_REVIEW_H

#include "tests/unit/fs_harness.h"

#include <stdbool.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "vmm/base/fd.h"
#include "vmm/review/apply.h"
#include "vmm/review/base_list.h"

struct review {
	struct harness *h;
	char state[64]; /* upper/ and base are in it */
	int upper_fd;
	int lower_fd;
	char *before; /* the lower layer, as it was when it was served */
};

struct snapshot {
	char *text;
	size_t size;
	FILE *file;
};

static struct snapshot *snapshot_at_work; /* nftw(3) has no context */

static inline void snapshot_content(const char *path)
{
	FD_CLEANUP int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	uint64_t hash = 0xcbf29ce484222325ULL;
	unsigned char bytes[4096];
	ssize_t length;

	/* Its times and size must do. */
	if (fd < 0 && errno == EACCES)
		return;
	assert_true(fd >= 0);
	while ((length = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < length; i++)
			hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	}
	assert_int_equal(length, 0);
	fprintf(snapshot_at_work->file, " %016llx", (unsigned long long)hash);
}

static inline int snapshot_entry(const char *path, const struct stat *status, int flag,
				 struct FTW *walk)
{
	char attributes[512], target[4096];
	ssize_t length;

	(void)flag;
	(void)walk;
	fprintf(snapshot_at_work->file, "%s %o %lu %ld %llu %lld.%09ld %lld.%09ld", path,
		status->st_mode, status->st_ino, (long)status->st_nlink,
		(unsigned long long)status->st_size, (long long)status->st_mtim.tv_sec,
		status->st_mtim.tv_nsec, (long long)status->st_ctim.tv_sec,
		status->st_ctim.tv_nsec);
	if (S_ISREG(status->st_mode))
		snapshot_content(path);
	if (S_ISLNK(status->st_mode)) {
		length = readlink(path, target, sizeof(target));
		fprintf(snapshot_at_work->file, " %.*s", (int)length, target);
	}
	length = llistxattr(path, attributes, sizeof(attributes));
	for (ssize_t i = 0; i < length; i++)
		fputc(attributes[i] ? attributes[i] : ',', snapshot_at_work->file);
	fputc('\n', snapshot_at_work->file);
	return 0;
}

static inline int snapshot_compare_lines(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Every object below a directory with all that a change would alter, in order. */
static inline char *snapshot_take(const char *directory)
{
	struct snapshot snapshot = {0};
	char *lines[20000], *sorted, *end;
	size_t count = 0;

	snapshot.file = open_memstream(&snapshot.text, &snapshot.size);
	assert_non_null(snapshot.file);
	snapshot_at_work = &snapshot;
	assert_int_equal(nftw(directory, snapshot_entry, 32, FTW_PHYS), 0);
	fclose(snapshot.file);
	sorted = calloc(1, snapshot.size + 1);
	assert_non_null(sorted);
	for (char *line = strtok_r(snapshot.text, "\n", &end); line;
	     line = strtok_r(NULL, "\n", &end)) {
		assert_true(count < ARRAY_SIZE(lines));
		lines[count++] = line;
	}
	qsort(lines, count, sizeof(lines[0]), snapshot_compare_lines);
	end = sorted;
	for (size_t i = 0; i < count; i++)
		end += sprintf(end, "%s\n", lines[i]);
	free(snapshot.text);
	return sorted;
}

/* A place whose lower layer the test fills before review_serve. @share_base: where it is. */
static inline struct review *review_create_place(const char *share_base)
{
	struct review *review = calloc(1, sizeof(*review));
	char path[128];

	assert_non_null(review);
	umask(022);
	review->h = harness_create_place(share_base);
	strcpy(review->state, "/var/tmp/mvagent-fs-upper-XXXXXX");
	assert_non_null(mkdtemp(review->state));
	snprintf(path, sizeof(path), "%s/upper", review->state);
	assert_int_equal(mkdir(path, 0755), 0);
	review->upper_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	review->lower_fd = open(review->h->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(review->upper_fd >= 0 && review->lower_fd >= 0);
	return review;
}

static inline void review_serve(struct review *review, struct fs_config config)
{
	char path[128];
	FD_CLEANUP int base = -1;
	struct fs_review layers = {.upper_fd = review->upper_fd};

	snprintf(path, sizeof(path), "%s/base", review->state);
	base = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(base >= 0);
	layers.base_fd = base;
	config.review = &layers;
	review->before = snapshot_take(review->h->directory);
	harness_serve(review->h, &config);
}

/* Once more, as after a crash of the server: what the guest did is in the upper layer. */
static inline void review_serve_again(struct review *review)
{
	fs_server_destroy(review->h->server);
	free(review->before);
	review_serve(review, (struct fs_config){0});
}

/* The lower layer is what it was. */
static inline void review_expect_untouched(struct review *review)
{
	char *after = snapshot_take(review->h->directory);

	assert_string_equal(after, review->before);
	free(after);
}

/* The host changed something itself. */
static inline void review_note_host(struct review *review)
{
	free(review->before);
	review->before = snapshot_take(review->h->directory);
}

static inline void review_destroy(struct review *review)
{
	review_expect_untouched(review);
	harness_destroy(review->h);
	close(review->upper_fd);
	close(review->lower_fd);
	assert_int_equal(nftw(review->state, harness_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(review->before);
	free(review);
}

/* What base says of a path; false: nothing. */
static inline bool review_base(const struct review *review, const char *path,
			       struct review_base *base)
{
	const struct review_base *found;
	struct base_list *list;
	char name[128];
	FD_CLEANUP int fd = -1;

	snprintf(name, sizeof(name), "%s/base", review->state);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(base_list_read(&list, fd), 0);
	found = base_list_find(list, path);
	if (found)
		*base = *found;
	base_list_destroy(list);
	return found != NULL;
}

/* base has the line for the host's object as it is. */
static inline void review_expect_base(const struct review *review, const char *path)
{
	struct review_base base;
	struct stat status;

	if (!review_base(review, path, &base))
		fail_msg("no line of base for %s", path);
	assert_int_equal(fstatat(review->lower_fd, path, &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(base.inode, status.st_ino);
	assert_int_equal(base.mode, status.st_mode);
	if (!S_ISDIR(status.st_mode))
		assert_int_equal(base.size, status.st_size);
	assert_int_equal(base.ctime_ns,
			 status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec);
}

static inline bool review_is_whiteout_at(const struct review *review, const char *path)
{
	struct stat status;

	return fstatat(review->upper_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

static inline bool review_is_opaque_at(const struct review *review, const char *path)
{
	char value[4], name[600];

	snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", review->upper_fd, path);
	return getxattr(name, REVIEW_XATTR_OPAQUE, value, sizeof(value)) == 1;
}

/* Whether the guest does not see what the host has at a path: the upper layer has something of that
 * name, or a directory above it that is none or opaque. */
static inline bool review_is_covered(const struct review *review, const char *path)
{
	bool opaque = false;
	char above[512];
	struct stat status;

	for (size_t length = 0; path[length]; length += path[length] == '/') {
		length += strcspn(path + length, "/");
		snprintf(above, sizeof(above), "%.*s", (int)length, path);
		if (fstatat(review->upper_fd, above, &status, AT_SYMLINK_NOFOLLOW))
			return opaque;
		if (!S_ISDIR(status.st_mode) || !path[length])
			return true;
		opaque |= review_is_opaque_at(review, above);
	}
	return false;
}

static inline const char *review_hidden_by(const void *context, const char *path)
{
	(void)context;
	(void)path;
	return NULL;
}

static inline enum review_problem review_protects(void *context, const struct review_share *share,
						  const struct review_change *change,
						  const char **rule)
{
	(void)context;
	(void)share;
	(void)change;
	(void)rule;
	return REVIEW_GOOD;
}

static inline void review_told(void *context, const struct review_change *change)
{
	(void)context;
	assert_true(change->done);
}

/* As `mvagent apply` sees the changes (@apply: and makes them): since the host has changed nothing,
 * none of them can be a conflict. */
static inline void review_expect_no_conflict(const struct review *review, bool apply)
{
	const struct review_policy policy = {NULL, review_hidden_by, review_protects};
	struct review_share share = {
		.host_path = (char *)"host",
		.host_fd = review->lower_fd,
		.upper_fd = review->upper_fd,
		.policy = &policy,
	};
	const struct review_paths everything = {0};
	const struct review_change *failed = NULL;
	struct review_changes changes;
	char path[128];
	FD_CLEANUP int base = -1;

	snprintf(path, sizeof(path), "%s/base", review->state);
	base = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(base_list_read(&share.base, base), 0);
	assert_int_equal(review_changes_find(&changes, &share, &everything), 0);
	for (size_t i = 0; i < changes.count; i++)
		if (changes.list[i].problem != REVIEW_GOOD)
			fail_msg("%s %s", changes.list[i].path,
				 review_problem_text(changes.list[i].problem));
	if (apply && review_apply(&share, &changes, review_told, NULL, &failed))
		fail_msg("cannot apply %s", failed ? failed->path : "all");
	review_changes_destroy(&changes);
	base_list_destroy(share.base);
}

static const struct review *review_at_work; /* nftw(3) has no context */

static inline int review_check_one(const char *path, const struct stat *status, int flag,
				   struct FTW *walk)
{
	const char *relative = path + strlen(review_at_work->h->directory);

	(void)status;
	(void)flag;
	if (walk->level && review_is_covered(review_at_work, relative + 1))
		review_expect_base(review_at_work, relative + 1);
	return 0;
}

/* Whatever of the host's the guest does not see any more has its line of base. */
static inline void review_expect_all_bases(const struct review *review)
{
	review_at_work = review;
	assert_int_equal(nftw(review->h->directory, review_check_one, 32, FTW_PHYS), 0);
}

static inline bool review_upper_has(const struct review *review, const char *path)
{
	struct stat status;

	return fstatat(review->upper_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

#endif
