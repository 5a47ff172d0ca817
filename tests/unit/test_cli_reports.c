/* SPDX-License-Identifier: Apache-2.0 */
/* A share's server that is the guest's by now, and lies to the record: what it says is written as
 * its words, within bounds, and the rest of the record stays true. */
#include "tests/unit/record_fixture.h"

#include <sys/socket.h>

#include "vmm/cli/supervisor_events.h"
#include "vmm/wire/fs_report.h"

struct fixture {
	struct record_place place;
	struct supervisor *supervisor;
	struct report report;
	int server; /* the other end */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int pair[2];

	record_place_make(&f->place);
	f->supervisor = calloc(1, sizeof(*f->supervisor));
	assert_int_equal(fd_create_socket_pair(SOCK_SEQPACKET, pair), 0);
	for (unsigned int i = 0; i < LIMIT_SHARES; i++)
		f->supervisor->report_fds[i] = -1;
	f->supervisor->report_fds[0] = pair[0];
	f->supervisor->share_paths[0] = "/home/x/a%b";
	f->supervisor->report = &f->report;
	assert_int_equal(record_create(&f->supervisor->record, f->place.fd, "r"), 0);
	f->server = pair[1];
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fd_close(&f->server);
	record_place_remove(&f->place);
	free(f->supervisor);
	free(f);
	return 0;
}

static void say(struct fixture *f, const struct fs_report *report)
{
	uint8_t bytes[FS_REPORT_BYTES];
	size_t length = fs_report_encode(report, bytes);

	assert_int_equal(send(f->server, bytes, length, 0), (ssize_t)length);
}

/* The server's end, and the run's: the record as text. */
static char *finish(struct fixture *f)
{
	struct record_check check;
	size_t length;
	char *text;

	fd_close(&f->server);
	supervisor_end_reports(f->supervisor);
	assert_int_equal(f->supervisor->report_fds[0], -1);
	record_event(f->supervisor->record, RECORD_END, record_counts(f->supervisor->record));
	assert_int_equal(record_finish(f->supervisor->record, &f->place.key), 0);
	text = record_place_read(&f->place, "r", &length);
	assert_int_equal(record_verify(&check, text, length, f->place.key.public_key), 0);
	assert_int_equal(check.verdict, RECORD_WHOLE);
	return text;
}

static void expect_part(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in %s", part, text);
}

static void test_honest_reports(void **state)
{
	struct fixture *f = *state;
	struct fs_report change = {
		.type = FS_REPORT_CHANGE,
		.kind = FS_CHANGE_RENAMED,
		.flags = FS_REPORT_BEFORE | FS_REPORT_AFTER | FS_REPORT_HASH_AFTER,
		.mode_before = S_IFREG | 0644,
		.mode_after = S_IFREG | 0755,
		.size_before = 3,
		.path = "b\n\xff",
		.other = "a",
	};
	struct fs_report share = {.type = FS_REPORT_SHARE};
	char *text;

	share.counts[FS_COUNT_UNTOLD] = 5;
	share.counts[FS_COUNT_FULL] = 2;
	say(f, &change);
	say(f, &share);
	text = finish(f);
	expect_part(text, "\"change\":\"renamed\"");
	expect_part(text, "\"path\":\"b%0A%FF\"");
	expect_part(text, "\"from\":\"a\"");
	expect_part(text, "\"before_mode\":\"100644\"");
	expect_part(text, "\"before_sha256\":null");
	expect_part(text, "\"share\":\"/home/x/a%25b\"");
	expect_part(text, "\"change\":{\"seen\":6,\"written\":1}");
	expect_part(text, "\"limit\":\"files\"");
	assert_null(strstr(text, "ended before it had told"));
	free(text);
}

static void test_no_report_at_all_is_noticed(void **state)
{
	char *text = finish(*state);

	expect_part(text, "ended before it had told what was changed");
	free(text);
}

static void test_garbage_ends_it(void **state)
{
	struct fixture *f = *state;
	const struct fs_report change = {.type = FS_REPORT_CHANGE, .path = "after"};
	char *text;

	assert_int_equal(send(f->server, "garbage", 7, 0), 7);
	say(f, &change);
	supervisor_read_reports(f->supervisor, 0);
	assert_int_equal(f->supervisor->report_fds[0], -1);
	text = finish(f);
	expect_part(text, "sent what is no report");
	assert_null(strstr(text, "after"));
	free(text);
}

/* Nothing counts after the last word. */
static void test_last_word_is_the_last(void **state)
{
	struct fixture *f = *state;
	struct fs_report share = {.type = FS_REPORT_SHARE};
	char *text, *first;

	say(f, &share);
	say(f, &share);
	supervisor_read_reports(f->supervisor, 0);
	text = finish(f);
	first = strstr(text, "\"event\":\"share\"");
	assert_non_null(first);
	assert_null(strstr(first + 1, "\"event\":\"share\""));
	free(text);
}

/* Numbers that no file has, and words of full length. */
static void test_greatest_numbers(void **state)
{
	struct fixture *f = *state;
	struct fs_report share = {.type = FS_REPORT_SHARE};
	struct fs_report refusal = {.type = FS_REPORT_REFUSAL, .counts = {UINT64_MAX}};
	char *text;

	memset(share.counts, 0xff, sizeof(share.counts));
	memset(refusal.path, '\x01', FS_REPORT_TEXT_BYTES);
	memset(refusal.other, '\xff', FS_REPORT_TEXT_BYTES);
	say(f, &refusal);
	say(f, &share);
	text = finish(f);
	expect_part(text, "\"count\":9007199254740991");
	expect_part(text, "%01%01%01");
	free(text);
}

/* A flood: one turn takes a part, all is counted, a part is written. */
static void test_flood_is_bounded(void **state)
{
	struct fixture *f = *state;
	const struct fs_report finding = {.type = FS_REPORT_FINDING, .path = "x"};
	const unsigned int count = LIMIT_RECORD_FINDINGS + 1000;
	char wanted[64], *text;

	for (unsigned int i = 0; i < count; i++) {
		say(f, &finding);
		supervisor_read_reports(f->supervisor, 0);
	}
	text = finish(f);
	snprintf(wanted, sizeof(wanted), "\"finding\":{\"seen\":%u,\"written\":%u}", count,
		 LIMIT_RECORD_FINDINGS);
	expect_part(text, wanted);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_honest_reports, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_report_at_all_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage_ends_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_word_is_the_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_greatest_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood_is_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
