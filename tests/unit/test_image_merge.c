/* SPDX-License-Identifier: Apache-2.0 */
/* Layers put over one another in memory: what is in the tree afterwards. */
#include "vmm/image/merge.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/limits.h"

static const struct merge_attributes plain = {.mode = 0644, .mtime = 7};

static struct merge *create(void)
{
	struct merge *merge;

	assert_int_equal(merge_create(&merge), 0);
	merge_begin_layer(merge);
	return merge;
}

static int put(struct merge *merge, const char *path)
{
	return merge_put_file(merge, path, &plain, 1, 0);
}

/* All paths, in the order of the tree, with a blank behind each; ends the merge. */
static void expect_paths(struct merge *merge, const char *wanted)
{
	char seen[4096] = "", path[PATH_MAX];
	struct tree tree;
	uint64_t *contents;

	assert_int_equal(merge_flatten(merge, &tree, &contents), 0);
	for (uint32_t i = 1; i < tree.node_count; i++) {
		assert_int_equal(tree_path(&tree, i, 0, path), 0);
		assert_true(strlen(seen) + strlen(path) + 2 < sizeof(seen));
		strcat(seen, path);
		strcat(seen, " ");
	}
	assert_string_equal(seen, wanted);
	tree_free(&tree);
	free(contents);
	merge_destroy(merge);
}

static void parents_are_made_and_names_sorted(void **state)
{
	struct merge *merge = create();

	(void)state;
	assert_int_equal(put(merge, "b/c/d"), 0);
	assert_int_equal(put(merge, "/a"), 0);
	assert_int_equal(put(merge, "./b//c/./aa"), 0);
	assert_int_equal(put(merge, "b/c/a"), 0);
	assert_int_equal(put(merge, "b!"), 0);
	expect_paths(merge, "a b b! b/c b/c/a b/c/aa b/c/d ");
}

static void paths_that_are_none(void **state)
{
	static const char *const paths[] = {"",     "/",    ".",   "./",    "..",
					    "a/..", "../a", "/..", "a/../b"};
	struct merge *merge = create();
	static char longest[257];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(put(merge, paths[i]), -EINVAL);
	memset(longest, 'n', 256);
	assert_int_equal(put(merge, longest), -ENAMETOOLONG);
	longest[255] = '\0';
	assert_int_equal(put(merge, longest), 0);
	assert_int_equal(merge_put_symlink(merge, "l", &plain, ""), -EINVAL);
	assert_int_equal(merge_remove(merge, longest), 0);
	merge_destroy(merge);
}

static void links_lead_inside(void **state)
{
	struct merge *merge = create();

	(void)state;
	assert_int_equal(merge_put_symlink(merge, "l", &plain, "/../../etc/"), 0);
	assert_int_equal(put(merge, "l/file"), 0);
	assert_int_equal(merge_put_symlink(merge, "d/up", &plain, "../.."), 0);
	assert_int_equal(put(merge, "d/up/top"), 0);
	assert_int_equal(merge_put_symlink(merge, "chain", &plain, "d/up/l"), 0);
	assert_int_equal(put(merge, "chain/second"), 0);
	assert_int_equal(merge_put_symlink(merge, "loop", &plain, "loop"), 0);
	assert_int_equal(put(merge, "loop/x"), -ELOOP);
	assert_int_equal(merge_put_symlink(merge, "file", &plain, "top"), 0);
	assert_int_equal(put(merge, "file/x"), -ENOTDIR);
	/* The last name is not followed. */
	assert_int_equal(put(merge, "chain"), 0);
	expect_paths(merge, "chain d etc file l loop top d/up etc/file etc/second ");
}

static void whiteouts_take_lower_layers_only(void **state)
{
	struct merge *merge = create();

	(void)state;
	assert_int_equal(put(merge, "a"), 0);
	assert_int_equal(put(merge, "d/low"), 0);
	assert_int_equal(put(merge, "d/sub/low"), 0);
	assert_int_equal(put(merge, "e/low"), 0);
	merge_begin_layer(merge);
	assert_int_equal(put(merge, "d/sub/high"), 0);
	assert_int_equal(put(merge, "a"), 0);
	assert_int_equal(merge_remove(merge, "a"), 0);
	assert_int_equal(merge_remove(merge, "d"), 0);
	assert_int_equal(merge_remove(merge, "none/at/all"), 0);
	assert_int_equal(merge_remove_around(merge, "e/mark"), 0);
	assert_int_equal(put(merge, "e/high"), 0);
	expect_paths(merge, "a d e d/sub e/high d/sub/high ");
}

static void an_opaque_root_keeps_its_own_layer(void **state)
{
	struct merge *merge = create();

	(void)state;
	assert_int_equal(put(merge, "a/b/c"), 0);
	merge_begin_layer(merge);
	assert_int_equal(put(merge, "a/x/y"), 0);
	assert_int_equal(merge_remove_around(merge, "mark"), 0);
	expect_paths(merge, "a a/x a/x/y ");
}

static void what_has_a_name_is_replaced(void **state)
{
	struct merge *merge = create();

	(void)state;
	assert_int_equal(put(merge, "a/b/c"), 0);
	assert_int_equal(put(merge, "a"), 0);
	assert_int_equal(merge_put_directory(merge, "a", &plain), 0);
	assert_int_equal(put(merge, "a/new"), 0);
	assert_int_equal(merge_put_directory(merge, "a/", &plain), 0);
	assert_int_equal(merge_put_symlink(merge, "l", &plain, "a"), 0);
	assert_int_equal(merge_put_directory(merge, "l", &plain), 0);
	expect_paths(merge, "a l a/new ");
}

static void hard_links_are_one_file(void **state)
{
	struct merge *merge = create();
	struct tree tree;
	uint64_t *contents, size, place;

	(void)state;
	assert_int_equal(merge_put_file(merge, "one", &plain, 10, 4096), 0);
	assert_int_equal(merge_put_link(merge, "d/two", "./one"), 0);
	assert_int_equal(merge_put_link(merge, "one", "d/two"), 0);
	assert_int_equal(merge_put_link(merge, "two", "two"), -ENOENT);
	assert_int_equal(merge_put_link(merge, "two", "d"), -EISDIR);
	assert_int_equal(merge_put_link(merge, "two", "../one"), -EINVAL);
	assert_int_equal(merge_put_file(merge, "one", &plain, 20, 8192), 0);
	assert_int_equal(merge_put_link(merge, "three", "d/two"), 0);
	assert_int_equal(merge_find_file(merge, "d/two", &size, &place), 0);
	assert_true(size == 10 && place == 4096);
	assert_int_equal(merge_find_file(merge, "d", &size, &place), -EISDIR);
	assert_int_equal(merge_find_file(merge, "d/none", &size, &place), -ENOENT);
	assert_int_equal(merge_flatten(merge, &tree, &contents), 0);
	assert_int_equal(tree.node_count, 5); /* the root, d, one, three, d/two */
	assert_int_equal(tree.nodes[3].same_as, 3);
	assert_int_equal(tree.nodes[4].same_as, 3);
	assert_true(contents[2] == 8192 && contents[3] == 4096);
	tree_free(&tree);
	free(contents);
	merge_destroy(merge);
}

static void working_directories_are_made(void **state)
{
	struct merge *merge = create();

	(void)state;
	assert_int_equal(put(merge, "file"), 0);
	assert_int_equal(merge_put_symlink(merge, "l", &plain, "/real"), 0);
	assert_int_equal(merge_make_directories(merge, "/a/b"), 0);
	assert_int_equal(merge_make_directories(merge, "/a"), 0);
	assert_int_equal(merge_make_directories(merge, "/l/x"), 0);
	assert_int_equal(merge_make_directories(merge, "/file"), 0);
	assert_int_equal(merge_make_directories(merge, "/file/x"), -ENOTDIR);
	expect_paths(merge, "a file l real a/b real/x ");
}

static void names_and_depth_have_bounds(void **state)
{
	struct merge *merge = create();
	char path[2 * LIMIT_IMAGE_DEPTH + 8];
	int error = 0;

	(void)state;
	/* Deeper than a path can say: by a link. */
	memset(path, 0, sizeof(path));
	for (unsigned int i = 0; i < LIMIT_IMAGE_DEPTH / 2; i++)
		strcat(path, "d/");
	assert_int_equal(merge_put_directory(merge, path, &plain), 0);
	assert_int_equal(merge_put_symlink(merge, "l", &plain, path), 0);
	for (unsigned int i = 0; i < 4 && !error; i++) {
		char below[sizeof(path) + 8];

		snprintf(below, sizeof(below), "l/%s", path);
		error = merge_put_directory(merge, below, &plain);
		memcpy(path + strlen(path), "d/d/d/d/d/d/d/d/", 17);
	}
	assert_int_equal(error, -ENAMETOOLONG);
	error = 0;
	for (unsigned int i = 0; i <= LIMIT_IMAGE_ENTRIES && !error; i++) {
		snprintf(path, sizeof(path), "many/%u", i);
		error = put(merge, path);
	}
	assert_int_equal(error, -E2BIG);
	merge_destroy(merge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parents_are_made_and_names_sorted),
		cmocka_unit_test(paths_that_are_none),
		cmocka_unit_test(links_lead_inside),
		cmocka_unit_test(whiteouts_take_lower_layers_only),
		cmocka_unit_test(an_opaque_root_keeps_its_own_layer),
		cmocka_unit_test(what_has_a_name_is_replaced),
		cmocka_unit_test(hard_links_are_one_file),
		cmocka_unit_test(working_directories_are_made),
		cmocka_unit_test(names_and_depth_have_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
