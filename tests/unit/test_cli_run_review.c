/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent run` puts into the state directory for a share under review, and takes away again.
 */
#include "tests/unit/cli_capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vmm/cli/run_review.h"
#include "vmm/review/review_run.h"

struct scene {
	char scratch[64];
	char *command[3];
	struct run_options options;
	struct run_shares shares;
	struct run_review review;
	struct capture capture;
};

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	(void)status;
	(void)flag;
	(void)walk;
	return remove(path);
}

static const char *in_scratch(const struct scene *scene, const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", scene->scratch, name);
	return path;
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	strcpy(scene->scratch, "/var/tmp/cli-review-XXXXXX");
	assert_non_null(mkdtemp(scene->scratch));
	assert_int_equal(mkdir(in_scratch(scene, "one"), 0750), 0);
	assert_int_equal(mkdir(in_scratch(scene, "two"), 0755), 0);
	assert_int_equal(setenv("XDG_STATE_HOME", in_scratch(scene, "state"), 1), 0);
	scene->command[0] = (char *)"make";
	scene->command[1] = (char *)"a b";
	scene->options.command = scene->command;
	run_review_init(&scene->review);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	run_review_destroy(&scene->review);
	run_shares_destroy(&scene->shares);
	assert_int_equal(nftw(scene->scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(scene);
	return 0;
}

static void add_share(struct scene *scene, const char *name, bool review)
{
	scene->options.shares[scene->options.share_count++] =
		(struct run_share){.directory = strdup(in_scratch(scene, name)), .review = review};
}

static int begin(struct scene *scene)
{
	int error;

	capture_begin(&scene->capture);
	error = run_shares_open(&scene->shares, &scene->options);
	if (!error)
		error = run_review_begin(&scene->review, &scene->options, &scene->shares);
	capture_end(&scene->capture);
	for (unsigned int i = 0; i < scene->options.share_count; i++)
		free((char *)scene->options.shares[i].directory);
	return error;
}

static void end(struct scene *scene, int status)
{
	capture_begin(&scene->capture);
	run_review_end(&scene->review, status);
	capture_end(&scene->capture);
}

/* How many directories of runs there are. */
static int count_runs(const struct scene *scene)
{
	DIR *directory = opendir(in_scratch(scene, "state/mvagent/runs"));
	int count = 0;

	if (!directory)
		return 0;
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2;
}

static void test_no_review(void **state)
{
	struct scene *scene = *state;

	add_share(scene, "one", false);
	assert_int_equal(begin(scene), 0);
	assert_int_equal(scene->review.run_fd, -1);
	assert_int_equal(scene->shares.directories[0].upper_fd, -1);
	end(scene, 0);
	assert_string_equal(scene->capture.text, "");
	assert_int_equal(access(in_scratch(scene, "state"), F_OK), -1);
}

static void test_nothing_changed(void **state)
{
	struct scene *scene = *state;

	add_share(scene, "one", true);
	assert_int_equal(begin(scene), 0);
	assert_string_equal(scene->capture.text, "");
	assert_int_equal(count_runs(scene), 1);
	end(scene, 0);
	assert_string_equal(scene->capture.text, "");
	assert_int_equal(count_runs(scene), 0);
}

static void test_changes_wait(void **state)
{
	struct scene *scene = *state;
	const struct shared_directory *two = &scene->shares.directories[1];
	struct review_run run;
	struct stat status;
	char sentence[128];
	FD_CLEANUP int fd = -1;
	char name[REVIEW_RUN_NAME_BYTES];

	scene->options.rules[0] = (struct run_rule){"--hide", "*.key"};
	scene->options.rules[1] = (struct run_rule){"--unprotect", ".vscode"};
	scene->options.rules[2] = (struct run_rule){"--protect", "ci"};
	scene->options.rule_count = 3;
	add_share(scene, "one", false);
	add_share(scene, "two", true);
	assert_int_equal(begin(scene), 0);
	assert_int_equal(scene->shares.directories[0].upper_fd, -1);
	assert_int_equal(fstat(two->upper_fd, &status), 0);
	assert_int_equal(status.st_mode, S_IFDIR | 0755);
	assert_int_equal(fcntl(two->base_fd, F_GETFL) & (O_ACCMODE | O_APPEND),
			 O_WRONLY | O_APPEND);
	/* As mvagent-fs leaves it. */
	fd = openat(two->upper_fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(mkdirat(two->upper_fd, "d", 0755), 0);
	strcpy(name, scene->review.name);
	assert_int_equal(review_run_open(&run, scene->review.store_fd, name, false), 0);
	assert_int_equal(run.state, REVIEW_RUNNING);
	assert_int_equal(run.record.ended, 0);
	review_run_close(&run);

	end(scene, 3);
	snprintf(sentence, sizeof(sentence), "2 changes wait for review: 'mvagent diff %s'", name);
	capture_expect_sentence(&scene->capture, sentence);
	run_review_destroy(&scene->review);
	assert_int_equal(count_runs(scene), 1);
	fd_close(&fd);
	fd = review_store_open(false);
	assert_int_equal(review_run_open(&run, fd, name, true), 0);
	assert_int_equal(run.state, REVIEW_OPEN);
	assert_int_equal(run.record.exit_status, 3);
	assert_true(run.record.started > 0 && run.record.ended >= run.record.started);
	assert_int_equal(run.record.command.count, 2);
	assert_string_equal(run.record.command.texts[1], "a b");
	assert_int_equal(run.record.hide.count, 1);
	assert_string_equal(run.record.hide.texts[0], "*.key");
	assert_int_equal(run.record.show.count, 0);
	assert_string_equal(run.record.protect.texts[0], "ci");
	assert_int_equal(run.record.share_count, 1);
	assert_string_equal(run.record.shares[0].host_path, in_scratch(scene, "two"));
	assert_int_equal(stat(in_scratch(scene, "two"), &status), 0);
	assert_int_equal(run.record.shares[0].inode, status.st_ino);
	review_run_close(&run);
}

/* The state directory and the share must not lie in one another. */
static void test_overlap(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(setenv("XDG_STATE_HOME", in_scratch(scene, "one/state"), 1), 0);
	scene->options.share_anyway = true;
	add_share(scene, "one", true);
	assert_int_equal(begin(scene), -EINVAL);
	capture_expect_sentence(&scene->capture, "XDG_STATE_HOME");
	assert_int_equal(scene->review.run_fd, -1);
}

static void test_share_in_the_state_directory(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(mkdir(in_scratch(scene, "state"), 0700), 0);
	assert_int_equal(mkdir(in_scratch(scene, "state/mvagent"), 0700), 0);
	assert_int_equal(mkdir(in_scratch(scene, "state/mvagent/runs"), 0700), 0);
	assert_int_equal(mkdir(in_scratch(scene, "state/mvagent/runs/share"), 0700), 0);
	add_share(scene, "state/mvagent/runs/share", true);
	assert_int_equal(begin(scene), -EINVAL);
	capture_expect_sentence(&scene->capture, "XDG_STATE_HOME");
	assert_int_equal(count_runs(scene), 1);
}

static void test_no_state_directory(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(setenv("XDG_STATE_HOME", "/proc/self/fdinfo", 1), 0);
	add_share(scene, "one", true);
	assert_true(begin(scene) < 0);
	capture_expect_sentence(&scene->capture, "cannot make the directory for runs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_review, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_share_in_the_state_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_state_directory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
