/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a run: what is written, and that whatever is done to it afterwards is found. */
#include "tests/unit/record_fixture.h"

#include <errno.h>

#include "vmm/base/bytes.h"
#include "vmm/base/sha256.h"
#include "vmm/record/canonical.h"

#define LINES 8U

struct fixture {
	struct record_place place;
	char *text;
	size_t length;
	const char *lines[LINES + 1]; /* the last is the end */
};

static int setup(void **state)
{
	static const enum record_kind kinds[LINES - 1] = {
		RECORD_START,   RECORD_WALLS,  RECORD_PHASE, RECORD_CHANGE,
		RECORD_FINDING, RECORD_CHANGE, RECORD_END,
	};
	struct fixture *f = calloc(1, sizeof(*f));
	struct record *record;
	char text[32];

	record_place_make(&f->place);
	assert_int_equal(record_create(&record, f->place.fd, "a"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(text, sizeof(text), "what happened %u", i);
		record_event(record, kinds[i], record_detail("text", text));
	}
	assert_int_equal(record_finish(record, &f->place.key), 0);
	f->text = record_place_read(&f->place, "a", &f->length);
	f->lines[0] = f->text;
	for (unsigned int i = 1; i <= LINES; i++)
		f->lines[i] = strchr(f->lines[i - 1], '\n') + 1;
	assert_ptr_equal(f->lines[LINES], f->text + f->length);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	record_place_remove(&f->place);
	free(f->text);
	free(f);
	return 0;
}

/* A guest that fills what is there for the network hides no signature by that. */
static void test_signatures_have_room(void **state)
{
	struct fixture *f = *state;
	struct record *record;
	cJSON *counts, *network;
	size_t length;
	char *text;

	assert_int_equal(record_create(&record, f->place.fd, "flood"), 0);
	record_event(record, RECORD_START, record_detail("text", "a"));
	for (unsigned int i = 0; i < LIMIT_RECORD_NETWORK + 10; i++)
		record_event(record, RECORD_NETWORK, record_detail("text", "a name"));
	for (unsigned int i = 0; i < LIMIT_RECORD_SIGNED + 10; i++)
		record_event(record, RECORD_SIGNED, record_detail("text", "a log-in"));
	counts = record_counts(record);
	network = cJSON_GetObjectItemCaseSensitive(counts, "network");
	assert_int_equal(cJSON_GetArraySize(counts), 2);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(network, "seen")),
			 LIMIT_RECORD_NETWORK + LIMIT_RECORD_SIGNED + 20);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(network, "written")),
			 LIMIT_RECORD_NETWORK + LIMIT_RECORD_SIGNED);
	cJSON_Delete(counts);
	record_event(record, RECORD_END, record_detail("text", "z"));
	assert_int_equal(record_finish(record, &f->place.key), 0);
	text = record_place_read(&f->place, "flood", &length);
	assert_non_null(strstr(text, "a log-in"));
	free(text);
}

static struct record_check verify(const struct fixture *f, const char *text, size_t length)
{
	struct record_check check;

	assert_int_equal(record_verify(&check, text, length, f->place.key.public_key), 0);
	return check;
}

static void expect_altered(const struct fixture *f, const char *text, size_t length, uint64_t line,
			   const char *word)
{
	struct record_check check = verify(f, text, length);

	if (check.verdict != RECORD_ALTERED || check.line != line || !strstr(check.sentence, word))
		fail_msg("not line %llu %s, but: %d, %s", (unsigned long long)line, word,
			 (int)check.verdict, check.sentence);
}

/* Puts lines (from 0) of the record together in another order; -1 ends the list. */
static size_t compose(const struct fixture *f, char *out, const int *order)
{
	size_t at = 0;

	for (; *order >= 0; order++) {
		size_t length = (size_t)(f->lines[*order + 1] - f->lines[*order]);

		memcpy(out + at, f->lines[*order], length);
		at += length;
	}
	return at;
}

static void test_whole(void **state)
{
	const struct fixture *f = *state;
	struct record_check check = verify(f, f->text, f->length);

	assert_int_equal(check.verdict, RECORD_WHOLE);
	assert_int_equal(check.lines, LINES);
	assert_memory_equal(check.key, f->place.key.public_key, KEY_BYTES);
}

/* Every byte of the file, set to every other printable one it could be mistaken for and to some
 * that are none. */
static void test_each_changed_byte_is_found_in_its_line(void **state)
{
	const struct fixture *f = *state;
	static const char others[] = {'0', '1', 'a', 'f', '"', '{', ' ', '\0', '\x7f'};
	char *copy = malloc(f->length);
	unsigned int line = 1;

	for (size_t i = 0; i < f->length; i++) {
		for (unsigned int k = 0; k < sizeof(others); k++) {
			struct record_check check;

			if (f->text[i] == others[k])
				continue;
			memcpy(copy, f->text, f->length);
			copy[i] = others[k];
			check = verify(f, copy, f->length);
			/* Without its end the last line is none. */
			if (i == f->length - 1)
				assert_int_equal(check.verdict, RECORD_CUT);
			else if (check.verdict != RECORD_ALTERED || check.line != line)
				fail_msg("byte %zu of line %u: %d, %s", i, line, (int)check.verdict,
					 check.sentence);
		}
		line += f->text[i] == '\n';
	}
	free(copy);
}

static void test_each_removed_line_is_named(void **state)
{
	const struct fixture *f = *state;
	char *copy = malloc(f->length);

	for (int gone = 0; gone < (int)LINES; gone++) {
		int order[LINES + 1], count = 0;
		size_t length;

		for (int i = 0; i < (int)LINES; i++)
			if (i != gone)
				order[count++] = i;
		order[count] = -1;
		length = compose(f, copy, order);
		if (gone == LINES - 1)
			assert_int_equal(verify(f, copy, length).verdict, RECORD_CUT);
		else
			expect_altered(f, copy, length, (uint64_t)gone + 1, "removed");
	}
	free(copy);
}

static void test_removed_lines_are_named(void **state)
{
	const struct fixture *f = *state;
	const int order[] = {0, 1, 5, 6, 7, -1};
	char *copy = malloc(f->length);

	expect_altered(f, copy, compose(f, copy, order), 3, "removed, and more");
	free(copy);
}

static void test_each_two_lines_changed_over_are_named(void **state)
{
	const struct fixture *f = *state;
	char *copy = malloc(f->length);

	for (int a = 0; a < (int)LINES; a++) {
		for (int b = a + 1; b < (int)LINES; b++) {
			int order[LINES + 1];

			for (int i = 0; i < (int)LINES; i++)
				order[i] = i == a ? b : i == b ? a : i;
			order[LINES] = -1;
			expect_altered(f, copy, compose(f, copy, order), (uint64_t)a + 1,
				       "reordered");
		}
	}
	free(copy);
}

static void test_each_line_given_twice_is_named(void **state)
{
	const struct fixture *f = *state;
	char *copy = malloc(2 * f->length);

	for (int what = 0; what < (int)LINES; what++) {
		for (int where = 0; where <= (int)LINES; where++) {
			int order[LINES + 2], count = 0;

			for (int i = 0; i <= (int)LINES; i++) {
				if (i == where)
					order[count++] = what;
				if (i < (int)LINES)
					order[count++] = i;
			}
			order[count] = -1;
			/* Of two that are the same the second is the one too many. */
			expect_altered(f, copy, compose(f, copy, order),
				       (uint64_t)where + (where == what ? 2 : 1), "added");
		}
	}
	free(copy);
}

/* One that knows the numbers and hashes of its place, and one that is no line at all. */
static void test_each_forged_line_is_named(void **state)
{
	const struct fixture *f = *state;
	char *copy = malloc(2 * f->length);

	for (unsigned int at = 0; at <= LINES; at++) {
		size_t before = (size_t)(f->lines[at] - f->text), length;
		char previous[SHA256_HEX_SIZE] =
			"0000000000000000000000000000000000000000000000000000000000000000";
		uint8_t digest[SHA256_BYTES];

		if (at) {
			sha256_of(f->lines[at - 1], (size_t)(f->lines[at] - f->lines[at - 1]) - 1,
				  digest);
			sha256_format(digest, previous);
		}
		for (int kind = 0; kind < 2; kind++) {
			memcpy(copy, f->text, before);
			length = before +
				 (size_t)(kind ? sprintf(copy + before, "garbage\n")
					       : sprintf(copy + before,
							 "{\"event\":\"notice\",\"n\":%u,"
							 "\"previous\":\"%s\",\"time\":\"now\"}\n",
							 at + 1, previous));
			memcpy(copy + length, f->lines[at], f->length - before);
			length += f->length - before;
			expect_altered(f, copy, length, at + 1, "added");
		}
	}
	free(copy);
}

/* Who changes a line and makes all hashes after it fit has no signature for that. */
static void test_rewritten_chain_has_no_signature(void **state)
{
	const struct fixture *f = *state;
	struct record_place other;
	struct record_check check;
	struct record *record;
	size_t length, kept;
	char *text, *last;

	record_place_make(&other);
	assert_int_equal(record_create(&record, other.fd, "a"), 0);
	record_event(record, RECORD_START, record_detail("text", "something else"));
	assert_int_equal(record_finish(record, &other.key), 0);
	text = record_place_read(&other, "a", &length);
	check = verify(f, text, length);
	assert_int_equal(check.verdict, RECORD_OTHER_KEY);
	assert_memory_equal(check.key, other.key.public_key, KEY_BYTES);

	/* With the name of the key that is trusted the signature is wrong. */
	last = strstr(text, "\"key\":\"") + 7;
	for (size_t i = 0; i < KEY_BYTES; i++) {
		char digits[3];

		snprintf(digits, sizeof(digits), "%02x", f->place.key.public_key[i]);
		memcpy(last + 2 * i, digits, 2);
	}
	expect_altered(f, text, length, 2, "signature");

	/* Without the line that was signed nothing vouches for the rest. */
	kept = (size_t)(strchr(text, '\n') + 1 - text);
	assert_int_equal(verify(f, text, kept).verdict, RECORD_CUT);
	free(text);
	record_place_remove(&other);
}

static void test_each_truncation_is_a_cut(void **state)
{
	const struct fixture *f = *state;
	unsigned int whole = 0;

	for (size_t length = 0; length < f->length; length++) {
		struct record_check check;

		whole += length && f->text[length - 1] == '\n';
		check = verify(f, f->text, length);
		if (check.verdict != RECORD_CUT || check.lines != whole)
			fail_msg("cut to %zu bytes: %d, %s", length, (int)check.verdict,
				 check.sentence);
	}
}

/* A process that was killed leaves what it had written. */
static void test_abandoned_record_is_cut(void **state)
{
	const struct fixture *f = *state;
	struct record *record;
	size_t length;
	char *text;

	assert_int_equal(record_create(&record, f->place.fd, "b"), 0);
	record_event(record, RECORD_START, record_detail("text", "begun"));
	record_abandon(record);
	text = record_place_read(&f->place, "b", &length);
	assert_int_equal(verify(f, text, length).verdict, RECORD_CUT);
	assert_int_equal(verify(f, text, length).lines, 1);
	free(text);
}

static void test_name_is_taken_once(void **state)
{
	const struct fixture *f = *state;
	struct record *record;

	assert_int_equal(record_create(&record, f->place.fd, "a"), -EEXIST);
	assert_int_equal(symlinkat("elsewhere", f->place.fd, "link"), 0);
	assert_int_equal(record_create(&record, f->place.fd, "link"), -EEXIST);
	assert_int_equal(faccessat(f->place.fd, "elsewhere", F_OK, 0), -1);
}

/* A million events: all are counted, a part is written, and the end says so. */
static void test_million_events_are_bounded(void **state)
{
	const struct fixture *f = *state;
	struct record_check check;
	struct record *record;
	cJSON *counts, *change;
	size_t length;
	char *text;

	assert_int_equal(record_create(&record, f->place.fd, "many"), 0);
	for (unsigned int i = 0; i < 1000000; i++)
		record_event(record, RECORD_CHANGE,
			     i % 10 ? NULL : record_detail("path", "some/path"));
	counts = record_counts(record);
	change = cJSON_GetObjectItem(counts, "change");
	assert_int_equal((int)cJSON_GetObjectItem(change, "seen")->valuedouble, 1000000);
	assert_int_equal((int)cJSON_GetObjectItem(change, "written")->valuedouble,
			 LIMIT_RECORD_CHANGES);
	record_event(record, RECORD_END, counts);
	assert_int_equal(record_finish(record, &f->place.key), 0);
	text = record_place_read(&f->place, "many", &length);
	assert_true(length < LIMIT_RECORD_BYTES);
	check = verify(f, text, length);
	assert_int_equal(check.verdict, RECORD_WHOLE);
	assert_int_equal(check.lines, LIMIT_RECORD_CHANGES + 2);
	free(text);
}

/* Lines of the greatest length fill the file no further than its bound, but for the end. */
static void test_bytes_are_bounded(void **state)
{
	const struct fixture *f = *state;
	char *long_text = malloc(900001);
	struct record *record;
	struct stat status;
	size_t length;
	char *text;

	memset(long_text, 'x', 900000);
	long_text[900000] = '\0';
	assert_int_equal(record_create(&record, f->place.fd, "long"), 0);
	for (unsigned int i = 0; i < 100; i++)
		record_event(record, RECORD_FINDING, record_detail("text", long_text));
	record_event(record, RECORD_END, record_counts(record));
	assert_int_equal(record_finish(record, &f->place.key), 0);
	assert_int_equal(fstatat(f->place.fd, "long", &status, 0), 0);
	assert_true(status.st_size <= LIMIT_RECORD_BYTES + 2 * LIMIT_RECORD_LINE_BYTES);
	text = record_place_read(&f->place, "long", &length);
	assert_int_equal(verify(f, text, length).verdict, RECORD_WHOLE);
	free(text);
	free(long_text);
}

static void test_canonical(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"{ \"b\" : 1, \"a\":[true,null, false ] }", "{\"a\":[true,null,false],\"b\":1}"},
		{"{\"\\u0041\":\"\\u00e9\\/\\n\\u0001\\\"\"}",
		 "{\"A\":\"\xc3\xa9/\\n\\u0001\\\"\"}"},
		{"[1e3,-0,9007199254740991,-5]", "[1000,0,9007199254740991,-5]"},
		{"1.5", NULL},
		{"9007199254740992", NULL},
		{"{\"a\":1,\"a\":1}", NULL},
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		cJSON *value = cJSON_Parse(cases[i].in);
		char *text = canonical_print(value);

		if (cases[i].out)
			assert_string_equal(text, cases[i].out);
		else
			assert_null(text);
		free(text);
		cJSON_Delete(value);
	}
}

static void test_text_of_any_bytes(void **state)
{
	static const struct {
		const char *in;
		size_t limit;
		const char *out;
	} cases[] = {
		{"plain/\xc3\xa4", 100, "plain/\xc3\xa4"},
		{"100%", 100, "100%25"},
		{"a\nb\x1b[31m\xff\x7f", 100, "a%0Ab%1B[31m%FF%7F"},
		{"abcdef", 3, "abc%..."},
		{"%41", 100, "%2541"},
		/* What a terminal takes for ESC [, and what turns a name around. */
		{"a\xc2\x9b"
		 "31m",
		 100, "a%C2%9B31m"},
		{"a\xe2\x80\xae"
		 "txt.sh\xe2\x81\xa9\xd8\x9c\xe2\x80\xa8",
		 100, "a%E2%80%AEtxt.sh%E2%81%A9%D8%9C%E2%80%A8"},
		{"\xe2\x80\xa6\xe2\x81\xaa\xd8\x9d", 100, "\xe2\x80\xa6\xe2\x81\xaa\xd8\x9d"},
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		cJSON *string = canonical_text(cases[i].in, cases[i].limit);

		assert_string_equal(string->valuestring, cases[i].out);
		canonical_unescape(string->valuestring);
		if (cases[i].limit == 100)
			assert_string_equal(string->valuestring, cases[i].in);
		cJSON_Delete(string);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_each_changed_byte_is_found_in_its_line),
		cmocka_unit_test(test_each_removed_line_is_named),
		cmocka_unit_test(test_removed_lines_are_named),
		cmocka_unit_test(test_each_two_lines_changed_over_are_named),
		cmocka_unit_test(test_each_line_given_twice_is_named),
		cmocka_unit_test(test_each_forged_line_is_named),
		cmocka_unit_test(test_rewritten_chain_has_no_signature),
		cmocka_unit_test(test_each_truncation_is_a_cut),
		cmocka_unit_test(test_abandoned_record_is_cut),
		cmocka_unit_test(test_name_is_taken_once),
		cmocka_unit_test(test_million_events_are_bounded),
		cmocka_unit_test(test_signatures_have_room),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_text_of_any_bytes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
