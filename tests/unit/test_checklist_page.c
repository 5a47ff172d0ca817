/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a review: what it shows, that it is signed, and that no byte of it can be changed. */
#include "tests/unit/checklist_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "vmm/base/text.h"
#include "vmm/cli/checklist_host.h"
#include "vmm/cli/checklist_options.h"
#include "vmm/record/key.h"

static struct record_key key;

static int make_key(void **state)
{
	char place[] = "/tmp/mvagent-test-XXXXXX", path[64];
	int fd;

	(void)state;
	if (!mkdtemp(place))
		return -1;
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (record_key_open(&key, fd, "key", "key"))
		return -1;
	close(fd);
	snprintf(path, sizeof(path), "%s/key", place);
	unlink(path);
	snprintf(path, sizeof(path), "%s/key.pub", place);
	unlink(path);
	return rmdir(place);
}

static cJSON *make_page(struct fixture *fixture)
{
	cJSON *page;
	char *text;

	text = fixture_text(fixture);
	findings_destroy(&fixture->findings);
	assert_int_equal(findings_read(&fixture->findings, fixture->outside.item_count, NUMBER,
				       text, strlen(text)),
			 0);
	fixture->input.findings = &fixture->findings;
	fixture->input.record = fixture->record;
	page = page_make(&fixture->input, "record", 6, "2026-01-01T00:00:00Z", NULL);
	assert_non_null(page);
	assert_int_equal(page_sign(page, &key), 0);
	return page;
}

static enum page_verdict verdict(const char *text, const uint8_t trusted[KEY_BYTES])
{
	struct page_check check;

	assert_int_equal(page_verify(&check, text, strlen(text), trusted), 0);
	cJSON_Delete(check.page);
	return check.verdict;
}

static void test_signature(void **state)
{
	uint8_t other[KEY_BYTES] = {1};
	struct fixture fixture;
	cJSON *page;
	char *texts[2];

	(void)state;
	fixture_make(&fixture);
	page = make_page(&fixture);
	assert_true(page_is_good(page));
	texts[0] = page_json(page);
	texts[1] = page_html(page);
	for (int i = 0; i < 2; i++) {
		const size_t length = strlen(texts[i]), step = i ? 97 : 13;

		assert_int_equal(verdict(texts[i], key.public_key), PAGE_WHOLE);
		assert_int_equal(verdict(texts[i], other), PAGE_OTHER_KEY);
		for (size_t at = 0; at < length; at += step) {
			texts[i][at] ^= 1;
			if (verdict(texts[i], key.public_key) == PAGE_WHOLE)
				fail_msg("byte %zu of %s", at, i ? "HTML" : "JSON");
			texts[i][at] ^= 1;
		}
		texts[i][length - 1] = '\0'; /* cut */
		assert_int_equal(verdict(texts[i], key.public_key), PAGE_ALTERED);
		free(texts[i]);
	}
	assert_int_equal(verdict("", key.public_key), PAGE_ALTERED);
	assert_int_equal(verdict("<html>", key.public_key), PAGE_ALTERED);
	assert_int_equal(verdict("{}", key.public_key), PAGE_ALTERED);
	cJSON_Delete(page);
	fixture_free(&fixture);
}

static void write_sample(const cJSON *page, const char *name)
{
	const char *place = getenv("MVAGENT_PAGES");
	char path[512], *text = page_html(page);
	FILE *file;

	assert_non_null(text);
	if (place) {
		snprintf(path, sizeof(path), "%s/%s.html", place, name);
		file = fopen(path, "we");
		assert_non_null(file);
		assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
		assert_int_equal(fclose(file), 0);
	}
	free(text);
}

static cJSON *start_of(struct fixture *fixture)
{
	return cJSON_GetArrayItem(fixture->record, 0);
}

static cJSON *make_rule(const char *by)
{
	cJSON *rule = cJSON_Parse(RULE("", "false", "example.com"));

	cJSON_ReplaceItemInObject(rule, "by", cJSON_CreateString(by));
	return rule;
}

/* Every text as long as it can be: long paths, many rules, a reason for each, all lines at fault.
 */
static void make_long(struct fixture *fixture)
{
	cJSON *policy = cJSON_GetObjectItem(start_of(fixture), "policy");
	cJSON *shares = cJSON_GetObjectItem(policy, "shares");
	cJSON *rules = cJSON_GetObjectItem(cJSON_GetObjectItem(policy, "network"), "rules");
	cJSON *variables = cJSON_GetObjectItem(policy, "environment");
	cJSON *words = cJSON_GetObjectItem(start_of(fixture), "command_line");
	cJSON *hashes = cJSON_CreateObject();
	static char text[600];

	memset(text, 'w', sizeof(text) - 1);
	memcpy(text, "/home/", 6);
	text[sizeof(text) - 1] = '\0';
	/* All doors that there can be. */
	cJSON_AddItemToArray(cJSON_GetObjectItem(policy, "ssh_agent"),
			     cJSON_CreateString("git@git.example.com"));
	fixture_replace(cJSON_GetObjectItem(policy, "network"), "published",
			"[{\"address\":\"127.0.0.1\",\"port\":8080,\"guest_port\":80}]");
	fixture_replace(policy, "terminal_passthrough", "true");
	cJSON_AddStringToObject(hashes, "event", "hashes");
	for (int i = 0; i < 12; i++) {
		cJSON *share = cJSON_CreateObject();
		char name[32];

		cJSON_AddStringToObject(share, "host", text);
		cJSON_AddStringToObject(share, "guest", text);
		cJSON_AddStringToObject(share, "mode", "rw");
		cJSON_AddItemToArray(shares, share);
		memcpy(text, "--allow ", 8);
		cJSON_AddItemToArray(rules, make_rule(text));
		memcpy(text, "/home/ww", 8);
		cJSON_AddItemToArray(variables, cJSON_CreateString(text));
		cJSON_AddItemToArray(words, cJSON_CreateString(text));
		snprintf(name, sizeof(name), "mvagent-program-%d", i);
		cJSON_AddStringToObject(hashes, name, MARK MARK);
	}
	cJSON_AddItemToArray(fixture->record, hashes);
	for (unsigned int i = 0; i < fixture->outside.item_count; i++)
		fixture->answers[FINDINGS_ROOT][i] = NULL;
	fixture->input.record_sentence =
		"line 3 was changed, or a line before it and all hashes after that, or so it seems "
		"to whoever looks at them: its signature is not of these lines";
	fixture->input.record_holds = false;
	fixture->input.given =
		(struct checklist_register){text, text, text, text, text, text, text};
}

/* For tests/cli/test_review_page.py, which prints them. */
static void test_samples(void **state)
{
	struct fixture fixture;
	cJSON *page;

	(void)state;
	fixture_make(&fixture);
	page = make_page(&fixture);
	write_sample(page, "default");
	cJSON_Delete(page);
	fixture_free(&fixture);
	fixture_make(&fixture);
	cJSON_AddItemToArray(
		cJSON_GetObjectItem(
			cJSON_GetObjectItem(cJSON_GetObjectItem(start_of(&fixture), "policy"),
					    "network"),
			"rules"),
		cJSON_Parse(RULE("--allow example.com", "false", "example.com")));
	fixture_answer(&fixture, "vsock:22", FINDINGS_ROOT, "0 ");
	page = make_page(&fixture);
	write_sample(page, "opened");
	cJSON_Delete(page);
	fixture_free(&fixture);
	fixture_make(&fixture);
	make_long(&fixture);
	page = make_page(&fixture);
	write_sample(page, "long");
	cJSON_Delete(page);
	fixture_free(&fixture);
}

/* Another version's page cannot be made anew, and is not taken for whole. */
static void test_other_version(void **state)
{
	struct fixture fixture;
	cJSON *page;
	char *text;

	(void)state;
	fixture_make(&fixture);
	page = make_page(&fixture);
	cJSON_ReplaceItemInObject(page, "mvagent", cJSON_CreateString("9.9"));
	assert_int_equal(page_sign(page, &key), 0);
	text = page_html(page);
	assert_int_equal(verdict(text, key.public_key), PAGE_OTHER_VERSION);
	free(text);
	cJSON_Delete(page);
	fixture_free(&fixture);
}

/* What is cut is cut between characters. */
static void test_characters(void **state)
{
	static const char *const umlauts[] = {"ä", "xä"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture fixture;
		cJSON *page, *policy, *rules;
		char text[256], *html;

		fixture_make(&fixture);
		policy = cJSON_GetObjectItem(start_of(&fixture), "policy");
		rules = cJSON_GetObjectItem(cJSON_GetObjectItem(policy, "network"), "rules");
		snprintf(text, sizeof(text), "/%säääääääääääääääääääääääääääääää", umlauts[i]);
		cJSON_ReplaceItemInObject(
			cJSON_GetArrayItem(cJSON_GetObjectItem(policy, "shares"), 0), "host",
			cJSON_CreateString(text));
		for (int rule = 0; rule < 2; rule++)
			cJSON_AddItemToArray(rules, make_rule(text));
		page = make_page(&fixture);
		html = page_html(page);
		for (size_t at = 0, length = strlen(html), step; at < length; at += step) {
			step = text_character_length(html + at, length - at);
			if (!step)
				fail_msg("%zu: %.40s", at, html + at);
		}
		free(html);
		cJSON_Delete(page);
		fixture_free(&fixture);
	}
}

/* Anybody can sign a page with a key of their own, whatever is in it. */
static void test_odd_page(void **state)
{
	static const char *const members[] = {"policy", "hashes",   "host",   "lines",
					      "result", "register", "command"};
	static const char *const values[] = {"[\"x\"]", "[[\"x\"]]", "{\"x\":[1]}", "\"x\"", "1"};
	struct fixture fixture;
	uint8_t other[KEY_BYTES] = {1};
	cJSON *page;
	char *text;

	(void)state;
	fixture_make(&fixture);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			page = make_page(&fixture);
			cJSON_ReplaceItemInObject(page, members[i], cJSON_Parse(values[j]));
			assert_int_equal(page_sign(page, &key), 0);
			text = page_html(page);
			assert_non_null(text);
			assert_int_equal(verdict(text, other), PAGE_OTHER_KEY);
			free(text);
			cJSON_Delete(page);
		}
	}
	fixture_free(&fixture);
}

/* Self-contained, without a script, and nothing in it is taken for HTML. */
static void test_html(void **state)
{
	struct fixture fixture;
	cJSON *page;
	char *text;

	(void)state;
	fixture_make(&fixture);
	fixture.input.given.owner = "<script>x</script>";
	page = make_page(&fixture);
	text = page_html(page);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "http:"));
	assert_null(strstr(text, "https:"));
	assert_null(strstr(text, "url("));
	assert_null(strstr(text, "src="));
	assert_non_null(strstr(text, "&lt;script&gt;x&lt;/script&gt;"));
	assert_non_null(strstr(text, "opened: --share /home/ada/repo</b> it edits"));
	assert_non_null(strstr(text, ">output: filtered for the terminal<"));
	assert_non_null(strstr(text, ">other repositories<"));
	assert_non_null(strstr(text, "cd /home/ada &amp;&amp; mvagent review --share 'it'\\''s'"));
	assert_non_null(strstr(text, "<span class=\"u\">unset</span>"));
	for (int i = 0; i < LINE_COUNT; i++)
		assert_non_null(strstr(text, checklist_texts[i].question));
	free(text);
	cJSON_Delete(page);
	fixture_free(&fixture);
}

/* What only the user can say, and has not, is red: on paper, and on a terminal that has colours. */
static void test_unset_is_red(void **state)
{
	static const char *const lines[] = {"Who owns the patch of an escape?", "On what clock?",
					    "Is that the auth-bug clock?"};
	struct fixture fixture;
	cJSON *page;

	(void)state;
	fixture_make(&fixture);
	fixture.input.given = (struct checklist_register){0};
	page = make_page(&fixture);
	assert_false(page_is_good(page));
	for (int colour = -1; colour < 2; colour++) {
		const char *red = colour < 0 ? "<span class=\"u\">unset</span>" : "\033[31munset";
		char *text = colour < 0 ? page_html(page) : NULL;
		size_t length = 0;
		FILE *stream = text ? NULL : open_memstream(&text, &length);

		if (stream) {
			page_print(page, stream, colour);
			fclose(stream);
		}
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			const char *line = strstr(text, lines[i]), *found;

			assert_non_null(line);
			found = strstr(line, red);
			assert_int_equal(found && found < line + 300, colour != 0);
		}
		assert_non_null(strstr(text, colour < 0 ? "Data class:</b> <span class=\"u\">"
					     : colour   ? "Data class             \033[31munset"
							: "Data class             unset"));
		free(text);
	}
	cJSON_Delete(page);
	fixture_free(&fixture);
}

/* The picture is of this policy, and of what the lines found. */
static void test_picture(void **state)
{
	static const char *const doors[] = {
		">1 published port<", ">log-ins: --ssh-agent git@git.example.com<",
		">output: not filtered<", ">11 more shares<", ">other repositories: OPEN<"};
	struct fixture fixture;
	cJSON *page;
	char *text;

	(void)state;
	fixture_make(&fixture);
	make_long(&fixture);
	page = make_page(&fixture);
	text = page_html(page);
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		if (!strstr(text, doors[i]))
			fail_msg("there is no %s", doors[i]);
	}
	free(text);
	cJSON_Delete(page);
	fixture_free(&fixture);
}

static void test_register(void **state)
{
	struct fixture fixture;
	cJSON *page, *rows;
	char *text;

	(void)state;
	fixture_make(&fixture);
	fixture.input.given.owner = "=cmd|\"x\"";
	page = make_page(&fixture);
	text = page_register_csv(page);
	assert_non_null(strstr(text, "\"Owner of an escape\",\"'=cmd|\"\"x\"\"\",yes,"));
	assert_non_null(strstr(text, "\"Data class\",\"\",no,"));
	assert_non_null(strstr(text, "\"Network boundary\",\"HOLDS\",yes,"));
	assert_non_null(strstr(text, "\"Filesystem boundary\",\"OPEN on purpose\",yes,"));
	free(text);
	text = page_register_json(page);
	rows = cJSON_Parse(text);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(rows, "register")), 11);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(
		cJSON_GetArrayItem(cJSON_GetObjectItem(rows, "register"), 0), "value")));
	cJSON_Delete(rows);
	free(text);
	cJSON_Delete(page);
	fixture_free(&fixture);
}

/* One line that is open makes the whole not good. */
static void test_result(void **state)
{
	struct fixture fixture;
	cJSON *page;

	(void)state;
	fixture_make(&fixture);
	fixture_answer(&fixture, "vsock:22", FINDINGS_ROOT, "0 ");
	page = make_page(&fixture);
	assert_false(page_is_good(page));
	cJSON_Delete(page);
	fixture_free(&fixture);
}

static void test_file_of_the_user(void **state)
{
	struct checklist_register given = {.owner = "given"};
	char good[] = "# who\nowner = not this\n clock=24h\r\n\nauth-clock = 2d\ndata-class =\n";
	char bad[] = "owner = x\nowners = y\n", none[] = "just words\n";

	(void)state;
	assert_int_equal(checklist_take_file(&given, good, "f"), 0);
	assert_string_equal(given.owner, "given");
	assert_string_equal(given.clock, "24h");
	assert_string_equal(given.kind, "2d");
	assert_null(given.data_class);
	assert_int_equal(checklist_take_file(&given, bad, "f"), -EINVAL);
	assert_int_equal(checklist_take_file(&given, none, "f"), -EINVAL);
}

static void test_expiries(void **state)
{
	/* {"exp":1893456000}, {"exp":"soon"} */
	static char jwt[] = "A=eyJhbGciOiJub25lIn0.eyJleHAiOjE4OTM0NTYwMDB9.x";
	static char soon[] = "B=x.eyJleHAiOiJzb29uIn0.x", plain[] = "C=ghp_01234",
		    odd[] = "D=a.!!.c";
	struct run_variable list[] = {{jwt, NULL}, {soon, NULL}, {plain, "f"}, {odd, NULL}};
	cJSON *expiries = checklist_expiries(&(struct run_variables){.count = 4, .list = list});

	(void)state;
	assert_int_equal(cJSON_GetArraySize(expiries), 1);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(expiries, "A")),
			    "valid until 2030-01-01T00:00:00Z");
	cJSON_Delete(expiries);
}

/* The share of the whole system, too: what is in it must not be taken for out of reach. */
static void test_places_in_shares(void **state)
{
	static struct checklist_host host;
	char guest[64];
	unsigned int share = 9;

	(void)state;
	host.shares.count = 1;
	host.shares.directories[0].path = (char *)"/host";
	host.shares.directories[0].host_path = (char *)"/";
	assert_string_equal(checklist_in_share(&host, "/home/ada", &share), "home/ada");
	assert_int_equal(share, 0);
	assert_string_equal(checklist_in_share(&host, "/", &share), "");
	checklist_guest_path(&host, "/home/ada", guest, sizeof(guest));
	assert_string_equal(guest, "/host/home/ada");
	host.shares.directories[0].host_path = (char *)"/home/ada";
	assert_null(checklist_in_share(&host, "/home/ada2", &share));
	assert_string_equal(checklist_in_share(&host, "/home/ada", &share), "");
	checklist_guest_path(&host, "/home/ada/x", guest, sizeof(guest));
	assert_string_equal(guest, "/host/x");
	checklist_guest_path(&host, "/etc", guest, sizeof(guest));
	assert_string_equal(guest, "/etc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signature),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_odd_page),
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_html),
		cmocka_unit_test(test_places_in_shares),
		cmocka_unit_test(test_unset_is_red),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_register),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_expiries),
		cmocka_unit_test(test_file_of_the_user),
	};

	return cmocka_run_group_tests(tests, make_key, NULL);
}
