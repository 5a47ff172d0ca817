/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many random changes, and then: what the share was before, with the reported changes made to it,
 * must be what it is now. Nothing is missing from the report, and nothing in it did not happen.
 */
#include "tests/unit/fs_harness.h"

#include <sys/socket.h>

#include "vmm/base/fd.h"
#include "vmm/base/sha256.h"
#include "vmm/wire/fs_report.h"

#define FILES_MAX   400
#define REPORTS_MAX 400
#define ROUNDS      300
#define STEPS       120

struct file {
	char path[128];
	uint32_t mode;
	uint8_t hash[SHA256_BYTES]; /* of a regular file */
	bool known; /* in the tree that is put together: checked against the other */
};

struct tree {
	unsigned int count;
	struct file files[FILES_MAX];
};

static const char *snapshot_root;
static struct tree *snapshot_into;

static int snapshot_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	struct file *file;
	char text[512] = "";

	(void)flag;
	if (walk->level == 0)
		return 0;
	assert_true(snapshot_into->count < FILES_MAX);
	file = &snapshot_into->files[snapshot_into->count++];
	snprintf(file->path, sizeof(file->path), "%s", path + strlen(snapshot_root) + 1);
	file->mode = status->st_mode;
	if (S_ISREG(status->st_mode)) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t length = read(fd, text, sizeof(text));

		assert_true(fd >= 0 && length >= 0);
		sha256_of(text, (size_t)length, file->hash);
		close(fd);
	}
	return 0;
}

static void snapshot(const struct harness *h, struct tree *tree)
{
	tree->count = 0;
	snapshot_root = h->directory;
	snapshot_into = tree;
	assert_int_equal(nftw(h->directory, snapshot_one, 16, FTW_PHYS), 0);
}

static struct file *find_file(struct tree *tree, const char *path)
{
	for (unsigned int i = 0; i < tree->count; i++) {
		if (strcmp(tree->files[i].path, path) == 0)
			return &tree->files[i];
	}
	return NULL;
}

/* A directory of the share, by one of a few paths, or the root. */
static uint64_t random_directory(struct harness *h)
{
	uint64_t node = FUSE_ROOT_ID, next;

	for (int depth = rand() % 3; depth > 0; depth--) {
		char name[8];

		snprintf(name, sizeof(name), "d%d", rand() % 3);
		if (call_lookup(h, node, name, &next))
			break;
		node = next;
	}
	return node;
}

static void random_name(char name[8])
{
	snprintf(name, 8, "%c%d", rand() % 3 ? 'f' : 'd', rand() % 4);
}

static void random_write(struct harness *h, uint64_t directory, const char *name)
{
	char text[16];
	uint32_t written;
	uint64_t id, fh;

	snprintf(text, sizeof(text), "%d", rand() % 5);
	if (call_create(h, directory, name, O_RDWR | (rand() % 2 ? O_TRUNC : 0), 0644, &id, &fh))
		return;
	if (rand() % 4)
		assert_int_equal(call_write(h, fh, 0, text, (uint32_t)strlen(text), 0, 0, &written),
				 0);
	assert_int_equal(call_release(h, FUSE_RELEASE, id, fh), 0);
}

static void random_step(struct harness *h)
{
	uint64_t directory = random_directory(h), other = random_directory(h), id;
	struct fuse_setattr_in set = {.valid = FATTR_MODE, .mode = rand() % 2 ? 0600 : 0640};
	char name[8], second[8];

	random_name(name);
	random_name(second);
	switch (rand() % 9) {
	case 0:
		call_mkdir(h, directory, name, 0755, NULL);
		break;
	case 1:
		call_remove(h, FUSE_UNLINK, directory, name);
		break;
	case 2:
		call_remove(h, FUSE_RMDIR, directory, name);
		break;
	case 3:
	case 4:
		call_rename(h, directory, name, other, second, 0);
		break;
	case 5:
		call_rename(h, directory, name, other, second, RENAME_EXCHANGE);
		break;
	case 6:
		if (name[0] == 'f' && call_lookup(h, directory, name, &id) == 0)
			call_setattr(h, id, &set, NULL);
		break;
	default:
		name[0] = 'f';
		random_write(h, directory, name);
		break;
	}
}

static void make_tree(struct harness *h)
{
	char name[32], path[512];

	for (int d = 0; d < 3; d++) {
		snprintf(name, sizeof(name), "d%d", d);
		harness_path(h, name, path);
		assert_int_equal(mkdir(path, 0755), 0);
		for (int f = 0; f < 3; f++) {
			snprintf(name, sizeof(name), "d%d/f%d", d, f);
			harness_host_write(h, name, name);
		}
		snprintf(name, sizeof(name), "d%d/d%d", d, d);
		harness_path(h, name, path);
		assert_int_equal(mkdir(path, 0755), 0);
		snprintf(name, sizeof(name), "d%d/d%d/f1", d, d);
		harness_host_write(h, name, name);
	}
	harness_host_write(h, "f1", "one");
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Where a file of before is now, as the reports say. False: it is gone. */
static bool place_after(const struct fs_report *reports, unsigned int count, const char *path,
			char moved[128])
{
	const struct fs_report *best = NULL;

	for (unsigned int i = 0; i < count; i++) {
		const struct fs_report *report = &reports[i];

		if (report->kind == FS_CHANGE_DELETED && strcmp(report->path, path) == 0)
			return false;
		/* It stayed where it is while a directory above it moved: an entry of its own. */
		if (*report->other
			    ? strcmp(report->other, path) == 0 || is_below(path, report->other)
			    : report->kind != FS_CHANGE_CREATED &&
				      strcmp(report->path, path) == 0) {
			const char *from = *report->other ? report->other : report->path;

			if (!best || strlen(from) > strlen(*best->other ? best->other : best->path))
				best = report;
		}
	}
	if (best && *best->other)
		snprintf(moved, 128, "%.60s%.60s", best->path, path + strlen(best->other));
	else
		snprintf(moved, 128, "%s", path);
	return true;
}

static void put(struct tree *tree, const char *path, const struct file *old)
{
	struct file *file = find_file(tree, path);

	if (file)
		fail_msg("two files are said to be at %s", path);
	file = &tree->files[tree->count++];
	*file = (struct file){.known = true};
	if (old)
		*file = *old;
	snprintf(file->path, sizeof(file->path), "%s", path);
}

static void rebuild(const struct tree *before, const struct fs_report *reports, unsigned int count,
		    struct tree *built)
{
	char moved[128];

	built->count = 0;
	for (unsigned int i = 0; i < before->count; i++) {
		if (place_after(reports, count, before->files[i].path, moved))
			put(built, moved, &before->files[i]);
	}
	for (unsigned int i = 0; i < count; i++) {
		struct file *file;

		if (reports[i].kind == FS_CHANGE_DELETED)
			continue;
		if (reports[i].kind == FS_CHANGE_CREATED)
			put(built, reports[i].path, NULL);
		file = find_file(built, reports[i].path);
		if (!file)
			fail_msg("%s is said to be what it cannot be", reports[i].path);
		file->mode = reports[i].mode_after;
		if (S_ISREG(file->mode)) {
			assert_true(reports[i].flags & FS_REPORT_HASH_AFTER);
			memcpy(file->hash, reports[i].hash_after, SHA256_BYTES);
		}
	}
}

static void expect_same(struct tree *built, struct tree *after, unsigned int seed)
{
	for (unsigned int i = 0; i < after->count; i++) {
		struct file *file = find_file(built, after->files[i].path);

		if (!file)
			fail_msg("seed %u: %s is there and not told of", seed,
				 after->files[i].path);
		if (file->mode != after->files[i].mode ||
		    (S_ISREG(file->mode) &&
		     memcmp(file->hash, after->files[i].hash, SHA256_BYTES) != 0))
			fail_msg("seed %u: %s is not what is told: mode %o, and not %o", seed,
				 file->path, after->files[i].mode, file->mode);
	}
	for (unsigned int i = 0; i < built->count; i++) {
		if (!find_file(after, built->files[i].path))
			fail_msg("seed %u: %s is told of and not there", seed,
				 built->files[i].path);
	}
}

/* What is told of before is true as well. */
static void expect_befores(struct tree *before, const struct fs_report *reports, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		const struct fs_report *report = &reports[i];
		const struct file *file =
			find_file(before, *report->other ? report->other : report->path);

		if (report->kind == FS_CHANGE_CREATED)
			continue;
		assert_non_null(file);
		assert_int_equal(report->mode_before, file->mode);
		if (S_ISREG(file->mode)) {
			assert_true(report->flags & FS_REPORT_HASH_BEFORE);
			assert_memory_equal(report->hash_before, file->hash, SHA256_BYTES);
		}
	}
}

static unsigned int take_reports(int fd, struct fs_report *reports)
{
	uint8_t bytes[FS_REPORT_BYTES];
	unsigned int count = 0;
	ssize_t length;

	while ((length = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		assert_int_equal(fs_report_decode(&reports[count], bytes, (size_t)length), 0);
		if (reports[count].type == FS_REPORT_SHARE)
			assert_int_equal(reports[count].counts[FS_COUNT_UNTOLD], 0);
		count += reports[count].type == FS_REPORT_CHANGE;
		assert_true(count < REPORTS_MAX);
	}
	return count;
}

static void test_reports_lead_from_before_to_after(void **state)
{
	static struct fs_report reports[REPORTS_MAX];
	static struct tree before, after, built;

	(void)state;
	for (unsigned int seed = 1; seed <= ROUNDS; seed++) {
		struct harness *h = harness_create_place("/dev/shm");
		struct fs_config config = {0};
		unsigned int count;
		int pair[2], room = 4 << 20;

		assert_int_equal(fd_create_socket_pair(SOCK_SEQPACKET, pair), 0);
		setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
		config.journal_fd = pair[1];
		make_tree(h);
		snapshot(h, &before);
		harness_serve(h, &config);
		srand(seed);
		for (unsigned int i = 0; i < STEPS; i++)
			random_step(h);
		fs_server_tell_changes(h->server);
		snapshot(h, &after);
		count = take_reports(pair[0], reports);
		rebuild(&before, reports, count, &built);
		expect_same(&built, &after, seed);
		expect_befores(&before, reports, count);
		close(pair[0]);
		harness_destroy(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports_lead_from_before_to_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
