/* SPDX-License-Identifier: Apache-2.0 */
/* What a review looks for on the host before the guest is asked: here in trees made for it. */
#include "vmm/cli/checklist_host.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char place[] = "/tmp/mvagent-test-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", place, name);
	return path;
}

/* Directories, each below the one before; a name that ends in ".git=" is a file. */
static void make(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s", path_of(name));
	for (char *slash = path + strlen(place); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	if (path[strlen(path) - 1] != '=') {
		assert_int_equal(mkdir(path, 0755), 0);
		return;
	}
	path[strlen(path) - 1] = '\0';
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static int setup(void **state)
{
	static const char *const names[] = {
		"src/host/owner/one/.git",
		"src/host/owner/two/.git",
		"src/tree/.git=",
		"src/host/owner/one/vendor/lib/.git",
		"src/plain/sub",
		"src/.cache/x/.git",
		"repo/.git",
		"repo/module/.git=",
		"repo/clone/.git",
		"beside/.git=",
		"alone/only/x",
	};

	(void)state;
	assert_non_null(mkdtemp(place));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make(names[i]);
	assert_int_equal(symlink("host", path_of("src/link")), 0);
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", place);
	return system(command);
}

/* With one share, in which the command works. */
static struct checklist_host *look(const char *share, const char *root)
{
	struct checklist_host *host = calloc(1, sizeof(*host));
	struct run_options *options = calloc(1, sizeof(*options));

	assert_true(host && options);
	host->listener = -1;
	host->shares.count = 1;
	host->shares.directories[0] = (struct shared_directory){.path = strdup(path_of(share)),
								.host_path = strdup(path_of(share)),
								.directory_fd = -1,
								.upper_fd = -1,
								.base_fd = -1};
	snprintf(host->root, sizeof(host->root), "%s", path_of(root));
	snprintf(host->directory, sizeof(host->directory), "%s", path_of(root));
	checklist_items_make(host, options);
	free(options);
	return host;
}

static bool has(const cJSON *array, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, array)
	{
		if (strcmp(item->valuestring, path_of(name)) == 0)
			return true;
	}
	return false;
}

static bool is_tried(const struct checklist_host *host, const char *kind, const char *name)
{
	char text[PATH_MAX + 16];

	snprintf(text, sizeof(text), "%s:%s", kind, path_of(name));
	for (unsigned int i = 0; i < host->outside.item_count; i++) {
		if (strcmp(host->outside.items[i].text, text) == 0)
			return true;
	}
	return false;
}

static void test_a_share_of_projects(void **state)
{
	struct checklist_host *host = look("src", "src");
	const cJSON *found = host->outside.shared_projects;

	(void)state;
	/* Wherever they lie, and worktrees too; what is in one is its own. */
	assert_true(has(found, "src/host/owner/one"));
	assert_true(has(found, "src/host/owner/two"));
	assert_true(has(found, "src/tree"));
	assert_int_equal(cJSON_GetArraySize(found), 3);
	checklist_host_destroy(host);
	free(host);
	host = look("src", "src/host/owner/one");
	found = host->outside.shared_projects;
	assert_false(has(found, "src/host/owner/one"));
	assert_int_equal(cJSON_GetArraySize(found), 2);
	checklist_host_destroy(host);
	free(host);
}

static void test_a_share_that_is_a_project(void **state)
{
	struct checklist_host *host = look("repo", "repo");

	(void)state;
	/* One clone in it may be its own; its submodules are. */
	assert_int_equal(cJSON_GetArraySize(host->outside.shared_projects), 0);
	assert_true(is_tried(host, "open", "beside/.git"));
	assert_int_equal(cJSON_GetArraySize(host->outside.projects), 1);
	checklist_host_destroy(host);
	free(host);
}

static bool is_asked(const struct checklist_host *host, enum checklist_line line, const char *text)
{
	for (unsigned int i = 0; i < host->outside.item_count; i++) {
		if (host->outside.items[i].line == line &&
		    strcmp(host->outside.items[i].text, text) == 0)
			return true;
	}
	return false;
}

/* What was planted is asked for from where the command works, however deep that is. */
static void test_planted_above(void **state)
{
	static const char *const ways[][2] = {{"repo", "../../"}, {"repo/module", "../../../"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct checklist_host *host = calloc(1, sizeof(*host));
		struct run_options *options = calloc(1, sizeof(*options));
		char text[64];

		assert_true(host && options);
		host->listener = -1;
		host->outside.canaries[0].fd = -1;
		host->outside.canaries[0].path = strdup(path_of("planted"));
		host->outside.canaries[0].above = 2;
		host->outside.canary_count = 1;
		snprintf(host->root, sizeof(host->root), "%s", path_of("repo"));
		snprintf(host->directory, sizeof(host->directory), "%s", path_of(ways[i][0]));
		checklist_items_make(host, options);
		snprintf(text, sizeof(text), "read:%splanted", ways[i][1]);
		assert_true(is_asked(host, LINE_ABOVE, text));
		snprintf(text, sizeof(text), "read:/proc/self/cwd/%splanted", ways[i][1]);
		assert_true(is_asked(host, LINE_ROUTES, text));
		host->outside.canary_count = 0; /* there is no such file */
		free(host->outside.canaries[0].path);
		checklist_host_destroy(host);
		free(host);
		free(options);
	}
}

/* Where nothing could be planted, what is there is asked for, and must not be this host's. */
static void test_nothing_planted_above(void **state)
{
	struct checklist_host *host = look("src/plain", "src/plain");
	bool found = false;

	(void)state;
	for (unsigned int i = 0; i < host->outside.item_count; i++) {
		const struct checklist_item *item = &host->outside.items[i];

		found |= item->line == LINE_ABOVE && strncmp(item->text, "open:../../", 11) == 0 &&
			 item->same;
	}
	assert_true(found);
	assert_int_equal(cJSON_GetArraySize(host->outside.unplanted), 0);
	checklist_host_destroy(host);
	free(host);
	host = look("alone/only", "alone/only"); /* and where there is nothing, it is said */
	assert_int_equal(cJSON_GetArraySize(host->outside.unplanted), 1);
	assert_true(has(host->outside.unplanted, "alone"));
	checklist_host_destroy(host);
	free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_share_of_projects),
		cmocka_unit_test(test_a_share_that_is_a_project),
		cmocka_unit_test(test_planted_above),
		cmocka_unit_test(test_nothing_planted_above),
	};

	return cmocka_run_group_tests_name("checklist items", tests, setup, teardown);
}
