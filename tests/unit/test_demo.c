/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent demo` makes of what its agent prints: that each attempt can be told as one that
 * got through. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "vmm/base/fd.h"
#include "vmm/cli/demo_attempts.h"
#include "vmm/cli/demo_screen.h"

struct fixture {
	struct demo_place place;
	struct demo_watch watch;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->place = DEMO_PLACE_NONE;
	assert_int_equal(demo_place_create(&fixture->place), 0);
	fixture->watch.place = &fixture->place;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", fixture->place.path);
	demo_place_destroy(&fixture->place);
	assert_int_equal(access(path, F_OK), -1); /* nothing is left */
	assert_null(getenv(DEMO_VARIABLE));
	free(fixture);
	return 0;
}

static enum demo_answer judge(const struct fixture *fixture, const char *id, int status)
{
	const struct demo_attempt *attempt = demo_attempt_find(id, strlen(id));
	char seen[128] = "";
	enum demo_answer answer;

	assert_non_null(attempt);
	answer = demo_attempt_judge(attempt, &fixture->watch, status, seen, sizeof(seen));
	assert_true(*seen);
	return answer;
}

static void take(struct fixture *fixture, const char *text)
{
	demo_watch_take(&fixture->watch, text, strlen(text));
}

static void test_nothing_came(void **state)
{
	struct fixture *fixture = *state;

	take(fixture, "cat: /home/.ssh/id_ed25519: No such file or directory\n");
	assert_int_equal(judge(fixture, "keys", 1), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "hidden", 1), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "traversal", 1), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "hooks", 1), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "http", 1), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "dns", 2), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "environment", 0), DEMO_STOPPED);
	assert_int_equal(judge(fixture, "frames", 0), DEMO_LATER);
	/* It cannot be told that what never came was stopped. */
	assert_int_equal(judge(fixture, "clipboard", 0), DEMO_NOT_TRIED);
}

static void test_secrets_that_came(void **state)
{
	static const struct {
		enum demo_secret secret;
		const char *id;
	} all[] = {{DEMO_SECRET_KEY, "keys"},
		   {DEMO_SECRET_KEY, "traversal"},
		   {DEMO_SECRET_HIDDEN, "hidden"},
		   {DEMO_SECRET_VARIABLE, "environment"}};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const char *mark = fixture->place.marks[all[i].secret];

		fixture->watch = (struct demo_watch){.place = &fixture->place};
		take(fixture, "before ");
		demo_watch_take(&fixture->watch, mark, 5); /* in two pieces */
		assert_int_equal(judge(fixture, all[i].id, 0), DEMO_STOPPED);
		take(fixture, mark + 5);
		assert_int_equal(judge(fixture, all[i].id, 0), DEMO_THROUGH);
		assert_int_equal(fixture->watch.secrets_seen, 1U << all[i].secret);
	}
}

static void test_all_secrets_at_once(void **state)
{
	struct fixture *fixture = *state;
	char text[DEMO_SECRET_COUNT * DEMO_MARK_SIZE + 1] = "";

	for (unsigned int i = 0; i < DEMO_SECRET_COUNT; i++)
		strcat(text, fixture->place.marks[i]);
	take(fixture, text);
	assert_int_equal(fixture->watch.secrets_seen, (1U << DEMO_SECRET_COUNT) - 1);
}

static void test_a_hook_that_is_there(void **state)
{
	struct fixture *fixture = *state;
	const int place = fixture->place.directory_fd;
	FD_CLEANUP int fd = -1;

	(void)!mkdirat(place, "project/.git", 0755);
	(void)!mkdirat(place, "project/.git/hooks", 0755);
	fd = openat(place, "project/.git/hooks/post-checkout", O_CREAT | O_WRONLY | O_CLOEXEC,
		    0644);
	assert_true(fd >= 0);
	assert_int_equal(judge(fixture, "hooks", 0), DEMO_THROUGH);
}

static void test_a_server_that_was_reached(void **state)
{
	struct fixture *fixture = *state;
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	FD_CLEANUP int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
		getsockname(fixture->place.listener_fd, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, length), 0);
	assert_int_equal(judge(fixture, "http", 0), DEMO_THROUGH);
	assert_int_equal(judge(fixture, "dns", 0), DEMO_THROUGH);
}

static void test_the_clipboard(void **state)
{
	struct fixture *fixture = *state;

	take(fixture, "\033]5");
	take(fixture, "2;c;c3RvbGVu\007copied\n");
	assert_true(fixture->watch.clipboard_sent);
	assert_int_equal(judge(fixture, "clipboard", 0), DEMO_STOPPED);
	fixture->watch.clipboard_left = true;
	assert_int_equal(judge(fixture, "clipboard", 0), DEMO_THROUGH);
}

static void test_frames(void **state)
{
	char seen[128];

	(void)state;
	assert_int_equal(demo_attempt_judge_frames(0, seen, sizeof(seen)), DEMO_NOT_TRIED);
	assert_int_equal(demo_attempt_judge_frames(1, seen, sizeof(seen)), DEMO_STOPPED);
	assert_string_equal(seen, "1 frame reached the card, and ended there");
}

/* Both columns keep to their widths, whatever the words are. */
static void test_two_columns(void **state)
{
	const struct demo_screen screen = {.file = tmpfile(), .columns = 80};
	struct demo_step step = {.line_count = 2, .more = true};
	char line[256];
	unsigned int lines = 0;

	(void)state;
	memset(step.command, 'c', sizeof(step.command) - 1);
	memset(step.lines[0], 'x', DEMO_SCREEN_CHARS);
	strcpy(step.lines[1], "some words that are to be wrapped at a blank and not within a word");
	demo_screen_attempt(&screen, &step, &demo_attempts[0], DEMO_THROUGH, "the agent has it");
	demo_screen_work(&screen, &step);
	rewind(screen.file);
	while (fgets(line, sizeof(line), screen.file)) {
		assert_true(strcspn(line, "\n") <= 80);
		assert_memory_equal(line + 38, " | ", 3);
		lines++;
	}
	assert_true(lines > 20);
	fclose(screen.file);
}

static void test_line_after_line(void **state)
{
	const struct demo_screen screen = {.file = tmpfile()};
	struct demo_step step = {.command = "cat key", .line_count = 1, .lines = {"no"}};
	char text[512] = "";

	(void)state;
	demo_screen_attempt(&screen, &step, &demo_attempts[0], DEMO_STOPPED, "nothing came");
	rewind(screen.file);
	assert_true(fread(text, 1, sizeof(text) - 1, screen.file) > 0);
	assert_string_equal(text, "Read your private key\n  $ cat key\n    no\n"
				  "  STOPPED: nothing came\n"
				  "    by: Only the shared directory exists in there "
				  "(vmm/fs/path.c)\n");
	fclose(screen.file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_came),
		TEST(test_secrets_that_came),
		TEST(test_all_secrets_at_once),
		TEST(test_a_hook_that_is_there),
		TEST(test_a_server_that_was_reached),
		TEST(test_the_clipboard),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_two_columns),
		cmocka_unit_test(test_line_after_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
