/* SPDX-License-Identifier: Apache-2.0 */
/* The format that mvagent-fs writes and the review commands read. */
#include "tests/unit/review_fixture.h"

#include "vmm/base/bytes.h"

static void test_any_path_survives(void **state)
{
	char path[256], escaped[sizeof(path) * 3 + 1];

	(void)state;
	for (unsigned int i = 1; i < 256; i++)
		path[i - 1] = (char)i;
	path[255] = '\0';
	assert_true(review_escape(path, escaped, sizeof(escaped)) > 255);
	for (const char *c = escaped; *c; c++)
		assert_true(*c >= 0x20 && *c < 0x7f && *c != '"' && *c != '\\');
	assert_int_equal(review_unescape(escaped), 0);
	assert_string_equal(escaped, path);
}

static void test_escape_needs_room(void **state)
{
	char escaped[6];

	(void)state;
	assert_int_equal(review_escape("a\n", escaped, 5), 4);
	assert_string_equal(escaped, "a%0a");
	assert_int_equal(review_escape("aaaaa\n", escaped, sizeof(escaped)), -ENAMETOOLONG);
	assert_int_equal(review_escape("", escaped, 1), 0);
	assert_int_equal(review_escape("", escaped, 0), -ENAMETOOLONG);
}

static void test_unescape_takes_only_what_was_escaped(void **state)
{
	static const char *const bad[] = {"%",   "%4",   "%4g",      "%00",
					  "%4A", "a\nb", "\xc3\xa4", "\x7f"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char text[8];

		strcpy(text, bad[i]);
		assert_int_equal(review_unescape(text), -EINVAL);
	}
}

static void expect_round_trip(const struct review_base *base)
{
	char line[512], wanted_path[] = "a b/\"c\\\n%\xff";
	struct review_base found;
	const char *path;
	ssize_t length = review_base_format(wanted_path, base, line, sizeof(line));

	assert_true(length > 0);
	assert_int_equal(line[length - 1], '\n');
	assert_null(memchr(line, '\n', (size_t)length - 1));
	line[length - 1] = '\0';
	assert_int_equal(review_base_parse(line, &path, &found), 0);
	assert_string_equal(path, wanted_path);
	assert_int_equal(found.mode, base->mode);
	assert_true(found.inode == base->inode && found.size == base->size);
	assert_true(found.mtime_ns == base->mtime_ns && found.ctime_ns == base->ctime_ns);
}

static void test_base_round_trip(void **state)
{
	static const mode_t types[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK};
	struct review_base base;
	char line[512];

	(void)state;
	/* Numbers that a double cannot hold. */
	memset(&base, 0, sizeof(base));
	base.inode = UINT64_MAX;
	base.size = (1ULL << 62) + 1;
	base.mtime_ns = 1764442800123456789;
	base.ctime_ns = -1;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		base.mode = types[i] | 07751;
		expect_round_trip(&base);
	}
	base.mode = S_IFCHR | 0600;
	assert_int_equal(review_base_format("x", &base, line, sizeof(line)), -EINVAL);
	base.mode = S_IFREG;
	for (size_t size = 0; size < 90; size++)
		assert_int_equal(review_base_format("x", &base, line, size), -ENAMETOOLONG);
}

static void test_base_of_other_writers(void **state)
{
	char line[] = " { \"type\" : \"file\", \"path\": \"x%0a\", \"inode\": 7, \"size\": 1, "
		      "\"mode\": 420, \"ctime_ns\": 5, \"mtime_ns\": -4 } ";
	struct review_base base;
	const char *path;

	(void)state;
	assert_int_equal(review_base_parse(line, &path, &base), 0);
	assert_string_equal(path, "x\n");
	assert_int_equal(base.mode, S_IFREG | 0644);
	assert_int_equal(base.inode, 7);
	assert_int_equal(base.mtime_ns, -4);
	assert_int_equal(base.ctime_ns, 5);
}

#define GOOD_REST "\"mode\":1,\"size\":1,\"mtime_ns\":1,\"ctime_ns\":1,\"inode\":1}"

static void test_base_refuses_other_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"null",
		"{\"path\":\"x\",\"type\":\"file\"," GOOD_REST "}",
		"{\"path\":\"x\",\"type\":\"device\"," GOOD_REST,
		"{\"path\":\"x%0\",\"type\":\"file\"," GOOD_REST,
		"{\"path\":\"x\\\"\",\"type\":\"file\"," GOOD_REST,
		"{\"path\":\"x\",\"path\":\"y\",\"type\":\"file\"," GOOD_REST,
		"{\"path\":\"x\",\"other\":1,\"type\":\"file\"," GOOD_REST,
		"{\"path\":\"x\"," GOOD_REST,
		"{\"path\":\"x\",\"type\":\"file\",\"mode\":1,\"size\":-1,\"mtime_ns\":1,"
		"\"ctime_ns\":1,\"inode\":1}",
		"{\"path\":\"x\",\"type\":\"file\",\"mode\":4096,\"size\":1,\"mtime_ns\":1,"
		"\"ctime_ns\":1,\"inode\":1}",
		"{\"path\":\"x\",\"type\":\"file\",\"mode\":1,\"size\":99999999999999999999,"
		"\"mtime_ns\":1,\"ctime_ns\":1,\"inode\":1}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char line[256];
		struct review_base base;
		const char *path;

		strcpy(line, bad[i]);
		if (review_base_parse(line, &path, &base) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	}
}

static void test_run_names(void **state)
{
	static const char *const bad[] = {"",
					  "..",
					  "20261129-194633-5FA0",
					  "20261129-194633-5fa",
					  "20261129-194633-5fa01",
					  "20261129/194633-5fa0",
					  "2026112a-194633-5fa0"};

	(void)state;
	assert_true(review_is_run_name("20261129-194633-5fa0"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(review_is_run_name(bad[i]));
}

static void test_whiteout_is_device_zero(void **state)
{
	(void)state;
	assert_true(review_is_whiteout(S_IFCHR | 0644, makedev(0, 0)));
	assert_false(review_is_whiteout(S_IFCHR, makedev(1, 3)));
	assert_false(review_is_whiteout(S_IFBLK, makedev(0, 0)));
	assert_false(review_is_whiteout(S_IFREG, makedev(0, 0)));
}

/* Reads @text as a base. */
static int read_base(struct base_list **list, const char *text)
{
	FILE *file = tmpfile();
	int result;

	assert_non_null(file);
	fputs(text, file);
	rewind(file);
	result = base_list_read(list, fileno(file));
	fclose(file);
	return result;
}

#define LINE(path, mode)                                          \
	"{\"path\":\"" path "\",\"type\":\"file\",\"mode\":" mode \
	",\"size\":1,\"mtime_ns\":1,\"ctime_ns\":1,\"inode\":1}"

static void test_list_takes_the_later_line(void **state)
{
	struct base_list *list;

	(void)state;
	/* The last line was cut off by a crash: its change was never made. */
	assert_int_equal(read_base(&list, LINE("a", "1") "\n" LINE("b", "2") "\n" LINE(
						  "a", "3") "\n" LINE("c", "4")),
			 0);
	assert_int_equal(base_list_find(list, "a")->mode, S_IFREG | 3);
	assert_int_equal(base_list_find(list, "b")->mode, S_IFREG | 2);
	assert_null(base_list_find(list, "c"));
	assert_null(base_list_find(list, ""));
	base_list_destroy(list);
}

static void test_list_refuses_what_it_does_not_know(void **state)
{
	struct base_list *list;

	(void)state;
	assert_int_equal(read_base(&list, LINE("a", "1") "\nnonsense\n"), -EPROTO);
	base_list_destroy(list);
	assert_int_equal(read_base(&list, ""), 0);
	assert_null(base_list_find(list, "a"));
	base_list_destroy(list);
}

static void test_record_round_trip(void **state)
{
	struct review_fixture *fixture = *state;
	char *words[] = {(char *)"printf", (char *)"%s\n\xff\"", (char *)""};
	char *patterns[] = {(char *)"*.pem"};
	struct review_record record = {
		.command = {3, words},
		.started = 1796067993,
		.ended = 1796068000,
		.exit_status = 255,
		.hide = {1, patterns},
		.share_count = 1,
		.shares[0] = {(char *)"/home/\n", (dev_t)~0ULL, UINT64_MAX, (char *)"share0/upper",
			      (char *)"share0/base"},
	};
	struct review_record found;

	assert_int_equal(review_record_write(&record, fixture->run), 0);
	assert_int_equal(review_record_read(&found, fixture->run), 0);
	assert_int_equal(found.command.count, 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_string_equal(found.command.texts[i], words[i]);
	assert_null(found.command.texts[3]);
	assert_int_equal(found.started, record.started);
	assert_int_equal(found.ended, record.ended);
	assert_int_equal(found.exit_status, 255);
	assert_string_equal(found.hide.texts[0], "*.pem");
	assert_int_equal(found.show.count, 0);
	assert_int_equal(found.share_count, 1);
	assert_string_equal(found.shares[0].host_path, "/home/\n");
	assert_true(found.shares[0].inode == UINT64_MAX);
	assert_true(found.shares[0].device == record.shares[0].device);
	review_record_destroy(&found);
	fixture_expect_absent(fixture->run, REVIEW_RUN_FILE ".new");
}

static void test_record_refuses_other_content(void **state)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"shares\":[]}", "{\"command\":[1]}"};
	struct review_fixture *fixture = *state;
	struct review_record found;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fixture_write(fixture->run, REVIEW_RUN_FILE, bad[i], 0600);
		assert_int_equal(review_record_read(&found, fixture->run), -EPROTO);
		review_record_destroy(&found);
	}
	assert_int_equal(unlinkat(fixture->run, REVIEW_RUN_FILE, 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", fixture->run, REVIEW_RUN_FILE), 0);
	assert_int_not_equal(review_record_read(&found, fixture->run), 0);
	review_record_destroy(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_path_survives),
		cmocka_unit_test(test_escape_needs_room),
		cmocka_unit_test(test_unescape_takes_only_what_was_escaped),
		cmocka_unit_test(test_base_round_trip),
		cmocka_unit_test(test_base_of_other_writers),
		cmocka_unit_test(test_base_refuses_other_lines),
		cmocka_unit_test(test_run_names),
		cmocka_unit_test(test_whiteout_is_device_zero),
		cmocka_unit_test(test_list_takes_the_later_line),
		cmocka_unit_test(test_list_refuses_what_it_does_not_know),
		cmocka_unit_test_setup_teardown(test_record_round_trip, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_record_refuses_other_content, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
