/* SPDX-License-Identifier: Apache-2.0 */
/* The share of a fixture as the review code takes it, with rules that the tests choose. */
#ifndef TESTS_UNIT_REVIEW_SHARE_H
#define TESTS_UNIT_REVIEW_SHARE_H

#include "tests/unit/review_fixture.h"

/* Hides what is called "secret", protects what is called "guarded", and all below. */
static inline const char *share_rule(const char *path, const char *name)
{
	size_t length = strlen(name);

	for (const char *found = path; (found = strstr(found, name)); found++) {
		if ((found == path || found[-1] == '/') &&
		    (found[length] == '\0' || found[length] == '/'))
			return name;
	}
	return NULL;
}

static inline const char *share_hidden_by(const void *context, const char *path)
{
	(void)context;
	return share_rule(path, "secret");
}

static inline enum review_problem share_protects(void *context, const struct review_share *share,
						 const struct review_change *change,
						 const char **rule)
{
	(void)context;
	(void)share;
	*rule = share_rule(change->path, "guarded");
	return *rule ? REVIEW_PROTECTED : REVIEW_GOOD;
}

static const struct review_policy share_policy = {
	.hidden_by = share_hidden_by,
	.protects = share_protects,
};

static inline void share_open(struct review_share *share, const struct review_fixture *fixture)
{
	char path[PATH_MAX + 128];
	int FD_CLEANUP base = -1;

	snprintf(path, sizeof(path), "%s/state/mvagent/runs/%s/share0/base", fixture->scratch,
		 fixture->name);
	base = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(base >= 0);
	*share = (struct review_share){
		.host_path = (char *)"host",
		.host_fd = fixture->host,
		.upper_fd = fixture->upper,
		.policy = &share_policy,
	};
	assert_int_equal(base_list_read(&share->base, base), 0);
}

static inline void share_close(struct review_share *share)
{
	base_list_destroy(share->base);
}

/* All changes, or those at one path. */
static inline void share_find(const struct review_share *share, const char *path,
			      struct review_changes *changes)
{
	const struct review_paths paths = {.count = path ? 1 : 0, .paths = &path};

	assert_int_equal(review_changes_find(changes, share, &paths), 0);
}

/* What is expected of one change. */
struct expected_change {
	const char *path;
	enum review_kind kind;
	enum review_problem problem;
};

/* The changes at @path (NULL: all) are these, in this order; the last one has no path. */
static inline void share_expect(const struct review_fixture *fixture, const char *path,
				const struct expected_change *expected)
{
	struct review_changes changes;
	struct review_share share;

	share_open(&share, fixture);
	share_find(&share, path, &changes);
	for (size_t i = 0; i < changes.count || expected->path; i++, expected++) {
		const struct review_change *change = &changes.list[i];

		if (i >= changes.count)
			fail_msg("%s is missing", expected->path);
		if (!expected->path)
			fail_msg("%s (%d) is too much", change->path, change->kind);
		assert_string_equal(change->path, expected->path);
		if (change->kind != expected->kind || change->problem != expected->problem)
			fail_msg("%s: kind %d, problem %d", change->path, change->kind,
				 change->problem);
	}
	review_changes_destroy(&changes);
	share_close(&share);
}

#define EXPECT_CHANGES(fixture, path, ...) \
	share_expect(fixture, path, (const struct expected_change[]){__VA_ARGS__, {0}})
#define EXPECT_NO_CHANGES(fixture) share_expect(fixture, NULL, &(const struct expected_change){0})

#endif
