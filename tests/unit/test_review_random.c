/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mvagent diff` and `mvagent apply` on random trees: a host's, what a guest made of it (or what
 * somebody who took mvagent-fs over put there), and edits of the host since. Either the host's tree
 * is afterwards what both together are, or it is what it was; what is beside the share is
 * untouched. The environment sets REVIEW_SEED and REVIEW_ROUNDS.
 */
#include <time.h>

#include "tests/unit/review_command.h"

static const char *const names[] = {"a",    "b",    "c",      "d",    ".vscode",
				    ".env", ".git", "config", "hooks"};

/* The rare names are the last ones. */
#define ORDINARY_NAMES 4
#define DEPTH          3
#define HIDDEN_NAME    ".env" /* by the rules that stand where none are given */

static struct command_result result;

struct random_trees {
	struct review_fixture *fixture;
	uint64_t random;
	bool honest; /* as a guest makes it, and the host is not edited */
};

static unsigned int pick(struct random_trees *trees, unsigned int count)
{
	trees->random = trees->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(trees->random >> 33) % count;
}

/* --- what is there, as text --- */

struct listing {
	char text[1 << 20];
	size_t length;
};

/* One line for an object: path, mode, and what is in it. */
static void list_object(struct listing *listing, int directory, const char *name, const char *path)
{
	char content[256] = "";
	struct stat status;

	assert_int_equal(fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW), 0);
	if (S_ISLNK(status.st_mode)) {
		assert_true(readlinkat(directory, name, content, sizeof(content) - 1) > 0);
	} else if (S_ISREG(status.st_mode)) {
		int FD_CLEANUP fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		assert_true(fd >= 0 && read(fd, content, sizeof(content) - 1) >= 0);
	}
	listing->length += (size_t)snprintf(listing->text + listing->length,
					    sizeof(listing->text) - listing->length, "%s %o %s\n",
					    path, status.st_mode, content);
	assert_true(listing->length < sizeof(listing->text));
}

static int open_below(int directory, const char *name)
{
	return directory < 0
		       ? -1
		       : openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_there(int directory, const char *name, struct stat *status)
{
	return directory >= 0 && fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_opaque(int directory)
{
	char value[2];

	return fgetxattr(directory, REVIEW_XATTR_OPAQUE, value, sizeof(value)) == 1 &&
	       value[0] == 'y';
}

/*
 * What is to be of the two directories, either of which may be -1. Of an opaque one's host only
 * what is hidden counts: who replaced the directory could not know of it, and it stays.
 */
static void list_both(struct listing *listing, int host, int upper, bool opaque, const char *path)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat above, below;
		bool has_upper = is_there(upper, names[i], &above);
		bool has_host = (!opaque || strcmp(names[i], HIDDEN_NAME) == 0) &&
				is_there(host, names[i], &below);
		char next[128];

		snprintf(next, sizeof(next), "%s/%s", path, names[i]);
		if (has_upper && S_ISCHR(above.st_mode) && above.st_rdev == makedev(0, 0))
			continue;
		if (!has_upper && !has_host)
			continue;
		list_object(listing, has_upper ? upper : host, names[i], next);
		if (S_ISDIR(has_upper ? above.st_mode : below.st_mode)) {
			int FD_CLEANUP up = has_upper ? open_below(upper, names[i]) : -1;
			int FD_CLEANUP down = open_below(host, names[i]);

			list_both(listing, down, up, up >= 0 && (opaque || is_opaque(up)), next);
		}
	}
}

/* --- random trees --- */

/* Where links lead: out of the share by all ways there are, and about in it. */
static void make_link(struct random_trees *trees, int directory, const char *name)
{
	char outside[PATH_MAX + 16];
	const char *const targets[] = {"a", "b/c",  "..", "../../outside", "../../../../../../etc",
				       "",  outside};
	const char *target = targets[pick(trees, sizeof(targets) / sizeof(targets[0]))];

	snprintf(outside, sizeof(outside), "%s/outside", trees->fixture->scratch);
	(void)!symlinkat(*target ? target : ".", directory, name);
}

static void make_file(struct random_trees *trees, int directory, const char *name)
{
	static const mode_t modes[] = {0644, 0644, 0755, 0600, 0444};
	char text[32];

	snprintf(text, sizeof(text), "text %u", pick(trees, 5));
	fixture_write(directory, name, text, modes[pick(trees, 5)]);
}

static const char *pick_name(struct random_trees *trees)
{
	if (trees->honest || pick(trees, 6))
		return names[pick(trees, ORDINARY_NAMES)];
	return names[pick(trees, sizeof(names) / sizeof(names[0]))];
}

/* What only upper/ has: whiteouts, marks, and what no guest can have made. */
static void make_upper_object(struct random_trees *trees, int directory, const char *name)
{
	unsigned int kind = pick(trees, trees->honest ? 3 : 6);

	if (kind <= 1)
		assert_int_equal(mknodat(directory, name, S_IFCHR, makedev(0, 0)), 0);
	else if (kind == 2)
		assert_int_equal(mknodat(directory, name, S_IFIFO | 0644, 0), 0);
	else if (kind == 3)
		assert_int_equal(mknodat(directory, name, S_IFCHR | 0666, makedev(1, 3)), 0);
	else if (kind == 4)
		assert_int_equal(mknodat(directory, name, S_IFSOCK | 0755, 0), 0);
	else
		make_file(trees, directory, name);
}

static void make_tree(struct random_trees *trees, int directory, bool is_upper, unsigned int depth)
{
	unsigned int count = 1 + pick(trees, 5);

	for (unsigned int i = 0; i < count; i++) {
		const char *name = pick_name(trees);
		struct stat status;
		unsigned int kind = pick(trees, is_upper ? 10 : 7);

		if (is_there(directory, name, &status))
			continue;
		if (kind >= 7) {
			make_upper_object(trees, directory, name);
		} else if (kind >= 5) {
			make_link(trees, directory, name);
		} else if (kind >= 2 && depth < DEPTH) {
			int FD_CLEANUP below = -1;

			fixture_mkdir(directory, name, pick(trees, 4) ? 0755 : 0700);
			below = open_below(directory, name);
			assert_true(below >= 0);
			make_tree(trees, below, is_upper, depth + 1);
			if (is_upper && pick(trees, 3) == 0)
				assert_int_equal(fsetxattr(below, REVIEW_XATTR_OPAQUE, "y", 1, 0),
						 0);
			if (is_upper && !trees->honest && pick(trees, 6) == 0)
				assert_int_equal(fsetxattr(below, REVIEW_XATTR_OPAQUE, "yes", 3, 0),
						 0);
		} else {
			make_file(trees, directory, name);
		}
	}
}

/* A line for each object of the host, as if all had been hidden; somebody else leaves some out, or
 * writes other lines. */
static void note_all(struct random_trees *trees, int host, const char *path)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int FD_CLEANUP below = -1;
		struct stat status;
		char next[128];

		if (!is_there(host, names[i], &status))
			continue;
		snprintf(next, sizeof(next), "%s%s%s", path, *path ? "/" : "", names[i]);
		if (trees->honest || pick(trees, 20))
			fixture_note_base(trees->fixture, next);
		below = open_below(host, names[i]);
		if (below >= 0)
			note_all(trees, below, next);
	}
	if (!trees->honest && !*path && pick(trees, 8) == 0)
		assert_int_equal(fd_write_full(trees->fixture->base, "{\"path\":\"../a\"}\n", 16),
				 0);
}

/* The host goes on working: what the guest has changed is another file, a link, or gone. */
static void edit_host(struct random_trees *trees, int host)
{
	const char *name = names[pick(trees, ORDINARY_NAMES)];
	char command[256];

	snprintf(command, sizeof(command), "rm -rf 'host/%s'", name);
	fixture_shell(trees->fixture, command);
	if (pick(trees, 3) == 0)
		make_link(trees, host, name);
	else if (pick(trees, 2) == 0)
		make_file(trees, host, name);
}

/* --- the test --- */

static void list_host(struct listing *listing, const struct review_fixture *fixture)
{
	listing->length = 0;
	listing->text[0] = '\0';
	list_both(listing, fixture->host, -1, false, "");
}

static bool one_round(struct random_trees *trees, unsigned long round)
{
	static struct listing before, both, after;
	struct review_fixture *fixture = trees->fixture;

	fixture_begin_run(fixture);
	fixture_shell(fixture, "find host -mindepth 1 -delete");
	make_tree(trees, fixture->host, false, 0);
	note_all(trees, fixture->host, "");
	make_tree(trees, fixture->upper, true, 0);
	if (!trees->honest && pick(trees, 2))
		edit_host(trees, fixture->host);
	list_host(&before, fixture);
	both.length = 0;
	both.text[0] = '\0';
	list_both(&both, fixture->host, fixture->upper, false, "");
	fixture_end_run(fixture);

	command_run(&result, "diff", fixture->name, NULL);
	command_run(&result, "apply", fixture->name, NULL);
	list_host(&after, fixture);
	if (strcmp(after.text, result.status ? before.text : both.text) != 0)
		fail_msg("round %lu, status %d\n%s%s\nbefore:\n%s\nwanted:\n%s\nafter:\n%s", round,
			 result.status, result.output, result.errors, before.text, both.text,
			 after.text);
	if (trees->honest && result.status)
		fail_msg("round %lu: what a guest made is refused: %s%s", round, result.output,
			 result.errors);
	fixture_expect_content(AT_FDCWD, "outside/canary", "canary\n");
	fixture_shell(fixture, "test \"$(find outside -printf '%P %m.')\" = ' 755.canary 640.'");
	return result.status == 0;
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 10) : otherwise;
}

static void test_random_trees(void **state)
{
	unsigned long seed = setting("REVIEW_SEED", (unsigned long)time(NULL));
	unsigned long rounds = setting("REVIEW_ROUNDS", 120), applied = 0;
	struct random_trees trees = {.fixture = *state, .random = seed * 2 + 1};

	if (geteuid() != 0)
		skip(); /* to make what only a privilege can make */
	print_message("seed %lu, %lu rounds\n", seed, rounds);
	fixture_shell(trees.fixture,
		      "mkdir outside && echo canary >outside/canary && chmod 640 outside/canary");
	for (unsigned long round = 0; round < rounds; round++) {
		trees.honest = round % 2;
		applied += one_round(&trees, round);
	}
	print_message("%lu applied, %lu refused\n", applied, rounds - applied);
	assert_true(applied >= rounds / 2 && applied < rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random_trees, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
