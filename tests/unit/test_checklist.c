/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a review: each holds where all is well, and each can fail, in each of its ways. */
#include "tests/unit/checklist_fixture.h"

/* Lines that were seen to fail, by any of the tests. */
static bool failed[LINE_COUNT];

static void note_failure(const char *id)
{
	for (int i = 0; i < LINE_COUNT; i++)
		failed[i] |= strcmp(checklist_texts[i].id, id) == 0;
}

/* The line fails, for this reason. */
static void expect_fault(struct fixture *fixture, const char *id, const char *reason)
{
	cJSON *lines = fixture_judge(fixture);
	const cJSON *line = find(lines, id);

	if (checklist_passes(line) || !strstr(fixture_member(line, "evidence"), reason))
		fail_msg("%s: %s: %s", id, fixture_member(line, "answer"),
			 fixture_member(line, "evidence"));
	assert_string_equal(fixture_member(line, "answer"), "OPEN");
	note_failure(id);
	cJSON_Delete(lines);
	fixture_free(fixture);
}

static void test_all_is_well(void **state)
{
	struct fixture fixture;
	cJSON *lines;
	const cJSON *line;

	(void)state;
	fixture_make(&fixture);
	lines = fixture_judge(&fixture);
	assert_int_equal(cJSON_GetArraySize(lines), LINE_COUNT);
	cJSON_ArrayForEach(line, lines)
	{
		const char *id = fixture_member(line, "id");
		const char *wanted = strcmp(id, "changes") == 0   ? "OPEN"
				     : strcmp(id, "secrets") == 0 ? "NOT ASKED"
								  : "HOLDS";

		if (strcmp(fixture_member(line, "answer"), wanted) != 0)
			fail_msg("%s: %s", id, fixture_member(line, "evidence"));
		assert_true(checklist_passes(line));
	}
	cJSON_Delete(lines);
	fixture_free(&fixture);
}

/* Each thing that is to be refused fails its line when it succeeds, for either role, and when
 * nobody tells of it. */
static void test_what_succeeds(void **state)
{
	static const struct {
		const char *item, *id;
	} cases[] = {
		{"read:../canary", "above"},
		{"link:/canary", "routes"},
		{"open:/home/ada/.ssh", "keys"},
		{"list:/home/ada/other", "projects"},
		{"tcp:1.1.1.1/443", "outside"},
		{"name:no.invalid", "log"},
		{"tcp:10.0.0.1/80", "inside"},
		{"vsock:22", "raw"},
		{"unix:/run/docker.sock", "sockets"},
		{"tcp:169.254.169.254/80", "cloud"},
		{"mkdir:/home/ada/repo/.vscode", "changes"},
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int role = 0; role < FINDINGS_ROLES; role++) {
			fixture_make(&fixture);
			fixture_answer(&fixture, cases[i].item, (enum findings_role)role, "0 ");
			expect_fault(&fixture, cases[i].id, "succeeded with");
			fixture_make(&fixture);
			fixture_answer(&fixture, cases[i].item, (enum findings_role)role, NULL);
			expect_fault(&fixture, cases[i].id, "cannot be told");
			fixture_make(&fixture); /* -ENOSYS: not known in the guest */
			fixture_answer(&fixture, cases[i].item, (enum findings_role)role, "-38 ");
			expect_fault(&fixture, cases[i].id, "did not try");
		}
	}
}

/* A guest that does not account for all, that repeats an old account, or says a thing twice. */
static void test_accounts(void **state)
{
	static const char *const ids[] = {"above",       "routes",  "keys",   "projects",
					  "outside",     "log",     "inside", "raw",
					  "environment", "sockets", "cloud"};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		fixture_make(&fixture);
		fixture.number = "ffffffffffffffffffffffffffffffff";
		expect_fault(&fixture, ids[i], "did not account");
		fixture_make(&fixture);
		fixture.told = 3;
		expect_fault(&fixture, ids[i], "did not account");
	}
	fixture_make(&fixture);
	fixture_answer(&fixture, "read:../canary", FINDINGS_AGENT, "-2 \nagent 1 -2 ");
	expect_fault(&fixture, "above", "did not account");
	fixture_make(&fixture);
	fixture_answer(&fixture, "read:../canary", FINDINGS_AGENT, "-2 %zz");
	expect_fault(&fixture, "above", "did not account");
}

/* What a guest says does not count where it is seen otherwise from outside. */
static void test_guest_that_lies(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture); /* a planted file's contents, in any answer */
	fixture_answer(&fixture, "tcp:10.0.0.1/80", FINDINGS_ROOT, "-101 x" MARK);
	expect_fault(&fixture, "above", "/home/ada/canary came back");
	fixture_make(&fixture);
	fixture_answer(&fixture, "tcp:10.0.0.1/80", FINDINGS_ROOT, "-101 x" MARK);
	expect_fault(&fixture, "routes", "came back");
	fixture_make(&fixture);
	fixture.outside.connections = 1;
	expect_fault(&fixture, "inside", "connections came to this host");
	fixture_make(&fixture);
	fixture_replace(cJSON_GetObjectItem(fixture_event(&fixture, "end"), "machine"),
			"frames_dropped", "7");
	expect_fault(&fixture, "raw", "dropped only 7");
	fixture_make(&fixture);
	fixture_answer(&fixture, "list:.", FINDINGS_AGENT, "1 passwd%00");
	expect_fault(&fixture, "root", "this host has not there");
	/* What a terminal would take for ESC [ is told in another way. */
	fixture_make(&fixture);
	fixture_answer(&fixture, "list:.", FINDINGS_AGENT, "1 %c2%9b2J%00");
	expect_fault(&fixture, "root", "lists %C2%9B2J, which");
	fixture_make(&fixture);
	fixture_drop_event(&fixture, "refusal");
	expect_fault(&fixture, "changes", "0 of 1 refusals");
	/* Of another name that ends alike. */
	fixture_make(&fixture);
	fixture_replace(fixture_event(&fixture, "refusal"), "path", "\"e\"");
	expect_fault(&fixture, "changes", "0 of 1 refusals");
	fixture_make(&fixture); /* a refusal in one share is none in another */
	cJSON_AddItemToArray(cJSON_GetObjectItem(fixture_policy(&fixture), "shares"),
			     cJSON_Parse("{\"host\":\"/b\",\"guest\":\"/c\",\"mode\":\"rw\"}"));
	fixture_add(&fixture, LINE_CHANGES, TRY_PROTECTED, "mkdir:/c/.vscode", "-13 ", "-13 ");
	expect_fault(&fixture, "changes", "1 of 2 refusals");
	fixture_make(&fixture);
	fixture_drop_event(&fixture, "network");
	expect_fault(&fixture, "log", "not on record");
	fixture_make(&fixture);
	fixture_answer(&fixture, "tcp:10.0.0.1/80", FINDINGS_AGENT, "-101 swordfish");
	expect_fault(&fixture, "environment", "the value of your MY_TOKEN");
	fixture_make(&fixture);
	fixture.outside.exposed = cJSON_Parse("[\"/home/ada/repo/.aws\"]");
	expect_fault(&fixture, "keys", "/home/ada/repo/.aws");
	fixture_make(&fixture);
	fixture.outside.exposed = cJSON_Parse("[\"/home/ada/repo/.aws\"]");
	expect_fault(&fixture, "after", "stays valid: /home/ada/repo/.aws");
	fixture_make(&fixture);
	fixture.outside.shared_projects = cJSON_Parse("[\"/home/ada/repo/b\"]");
	expect_fault(&fixture, "projects", "/home/ada/repo/b");
}

static void test_other_ways_to_fail(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.outside.canary_count = 0;
	expect_fault(&fixture, "above", "no file could be planted");
	fixture_make(&fixture);
	fixture.outside.unplanted = cJSON_Parse("[\"/home/ada\"]");
	expect_fault(&fixture, "above", "there is none, in /home/ada");
	fixture_make(&fixture);
	fixture.outside.listening = false;
	expect_fault(&fixture, "inside", "could not listen");
	fixture_make(&fixture);
	fixture_answer(&fixture, "frames:8", FINDINGS_AGENT, "8 ");
	expect_fault(&fixture, "raw", "the agent's user could send");
	fixture_make(&fixture); /* with --user root it is root */
	fixture_answer(&fixture, "frames:8", FINDINGS_AGENT, "8 ");
	fixture_answer(&fixture, "identity:", FINDINGS_AGENT, "0 0:0");
	expect_answer(&fixture, "raw", "HOLDS", false);
	fixture_free(&fixture);
	fixture_make(&fixture);
	fixture_answer(&fixture, "frames:8", FINDINGS_ROOT, "-1 ");
	expect_fault(&fixture, "raw", "could send no frame");
	fixture_make(&fixture);
	fixture_answer(&fixture, "environ:", FINDINGS_ROOT, "40 PATH=/%00AWS_KEY=x%00");
	expect_fault(&fixture, "environment", "has AWS_KEY");
	fixture_make(&fixture);
	fixture_answer(&fixture, "environ:", FINDINGS_AGENT, "0 ");
	expect_fault(&fixture, "environment", "no environment");
	fixture_make(&fixture); /* -EMSGSIZE */
	fixture_answer(&fixture, "environ:", FINDINGS_ROOT, "-90 PATH=/bin%00");
	expect_fault(&fixture, "environment", "larger than what the guest tells");
	fixture_make(&fixture);
	fixture_answer(&fixture, "list:.", FINDINGS_AGENT, "0 ");
	expect_fault(&fixture, "root", "could not be listed");
	fixture_make_secret(&fixture);
	cJSON_Delete(fixture.outside.placeholders);
	fixture.outside.placeholders = NULL;
	expect_fault(&fixture, "secrets", "is not its placeholder");
	fixture_make_secret(&fixture);
	fixture_answer(&fixture, "environ:", FINDINGS_ROOT,
		       "80 PATH=/bin%00HOME=/home/ada%00MY_TOKEN=other-one%00");
	expect_fault(&fixture, "secrets", "is not its placeholder");
	fixture_make_secret(&fixture);
	fixture_answer(&fixture, "environ:", FINDINGS_ROOT, "60 PATH=/bin%00HOME=/home/ada%00");
	expect_fault(&fixture, "secrets", "told of no MY_TOKEN");
	fixture_make(&fixture);
	fixture_answer(&fixture, "read:boot_id", FINDINGS_AGENT,
		       "37 aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee%0a");
	expect_fault(&fixture, "machine", "this host's own kernel");
	fixture_make(&fixture);
	fixture_answer(&fixture, "read:boot_id", FINDINGS_AGENT, "-2 ");
	expect_fault(&fixture, "machine", "cannot be told");
	fixture_make(&fixture);
	fixture_replace(cJSON_GetObjectItem(fixture_event(&fixture, "end"), "machine"), "exits",
			"0");
	expect_fault(&fixture, "machine", "no exit");
	fixture_make(&fixture);
	fixture_replace(cJSON_GetObjectItem(fixture_event(&fixture, "start"), "host"), "kvm",
			"\"software\"");
	expect_fault(&fixture, "machine", "KVM");
	fixture_make(&fixture);
	fixture.outside.filter_left = 5;
	expect_fault(&fixture, "terminal", "pass the filter");
	fixture_make(&fixture);
	fixture.outside.filtered = false;
	expect_fault(&fixture, "terminal", "no sequence came back");
}

static void test_walls(void **state)
{
	struct fixture fixture;
	cJSON *server;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fixture_make(&fixture);
		server = cJSON_GetArrayItem(
			cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"), 1);
		fixture_replace(server, "missing", "[\"landlock\"]");
		expect_fault(&fixture, i ? "root" : "walls", "landlock");
		fixture_make(&fixture);
		fixture_drop_event(&fixture, "walls");
		expect_fault(&fixture, i ? "root" : "walls", "never started");
	}
	fixture_make(&fixture);
	server = cJSON_GetArrayItem(
		cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"), 1);
	fixture_replace(server, "capabilities", "\"0000000000000400\"");
	expect_fault(&fixture, "walls", "has capabilities");
	for (int i = 0; i < 2; i++) { /* what the file server may keep, and nobody else */
		fixture_make(&fixture);
		server = cJSON_GetArrayItem(
			cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"), i);
		fixture_replace(server, "capabilities", "\"000000000000000a\"");
		if (i)
			expect_answer(&fixture, "walls", "HOLDS", false);
		else
			expect_fault(&fixture, "walls", "mvagent-vmm has capabilities");
	}
	fixture_free(&fixture);
	fixture_make(&fixture);
	server = cJSON_GetArrayItem(
		cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"), 1);
	cJSON_AddItemToObject(server, "not_told", cJSON_Parse("[\"mounts\"]"));
	expect_fault(&fixture, "walls", "cannot be told of mvagent-fs");
	fixture_make(&fixture);
	server = cJSON_GetArrayItem(
		cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"), 1);
	fixture_replace(server, "process", "\"mvagent-relay\"");
	expect_fault(&fixture, "outside", "yet a process with a network");
}

static void test_response(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.input.given.owner = NULL;
	expect_fault(&fixture, "owner", "unset");
	fixture_make(&fixture);
	fixture.input.given.clock = NULL;
	expect_fault(&fixture, "clock", "unset");
	fixture_make(&fixture);
	fixture.input.given.kind = NULL;
	expect_fault(&fixture, "kind", "unset");
	fixture_make(&fixture);
	fixture.input.given.clock = "3d";
	expect_fault(&fixture, "kind", "slower");
	fixture_make(&fixture);
	fixture.input.given.clock = "soon";
	expect_fault(&fixture, "kind", "cannot be told");
}

/* Without a record that holds no line does, but those that are the user's word. */
static void test_record_that_does_not_hold(void **state)
{
	struct fixture fixture;
	cJSON *lines;
	const cJSON *line;

	(void)state;
	fixture_make(&fixture);
	fixture.input.record_holds = false;
	lines = fixture_judge(&fixture);
	cJSON_ArrayForEach(line, lines)
	{
		const char *section = fixture_member(line, "section");

		if (strcmp(section, "Response") == 0 ||
		    strcmp(fixture_member(line, "answer"), "NOT ASKED") == 0)
			continue;
		assert_false(checklist_passes(line));
		assert_non_null(
			strstr(fixture_member(line, "evidence"), "the record does not hold"));
	}
	cJSON_Delete(lines);
	fixture_free(&fixture);
}

/* Anybody's record may be given to --from: what is no text or no list is none. */
static void test_odd_record(void **state)
{
	static const char *const odd[] = {"[1,null,{},[]]", "1", "null", "{\"a\":1}"};
	static const char *const names[] = {"shares", "environment", "network", "rules", "root"};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		fixture_make(&fixture);
		for (size_t name = 0; name < sizeof(names) / sizeof(names[0]); name++)
			fixture_replace(fixture_policy(&fixture), names[name], odd[i]);
		fixture_replace(fixture_event(&fixture, "start"), "reasons", odd[i]);
		fixture_replace(fixture_event(&fixture, "walls"), "processes", odd[i]);
		cJSON_AddItemToArray(fixture.record, cJSON_Parse(odd[i]));
		expect_fault(&fixture, "walls", "never started");
		fixture_make(&fixture);
		fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "network"), "rules",
				odd[i]);
		fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "network"),
				"published", odd[i]);
		fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "rules"), "show",
				odd[i]);
		cJSON_Delete(fixture_judge(&fixture));
		fixture_free(&fixture);
	}
}

/* A file of the same name that is another one, in a root image, is not the host's. */
static void test_another_file(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.outside.items[3].same = strdup("1.000000000:64");
	fixture_answer(&fixture, "open:/home/ada/.ssh", FINDINGS_ROOT, "0 2.000000000:64");
	expect_answer(&fixture, "keys", "HOLDS", false);
	fixture_answer(&fixture, "open:/home/ada/.ssh", FINDINGS_ROOT, "0 1.000000000:64");
	expect_fault(&fixture, "keys", "succeeded with");
}

/* The last test: there is no line on the page that none of them has made fail. */
static void test_each_line_was_seen_to_fail(void **state)
{
	(void)state;
	for (int i = 0; i < LINE_COUNT; i++) {
		if (!failed[i])
			fail_msg("%s: nothing makes it fail", checklist_texts[i].id);
	}
}

/* Each variable is there to be read; what the user gave is named, and its value is not told. */
static void test_environment_is_printed(void **state)
{
	static const char *const expected[] = {"PATH=/bin", "HOME=***", "API_TOKEN=***"};
	struct fixture fixture;
	cJSON *lines, *printed = NULL;
	const cJSON *line;

	(void)state;
	fixture_make(&fixture);
	fixture_replace(fixture_policy(&fixture), "environment", "[\"HOME\"]");
	fixture_answer(&fixture, "environ:", FINDINGS_AGENT,
		       "80 PATH=/bin%00HOME=/home/ada%00API_TOKEN=swordfish%00");
	lines = fixture_judge(&fixture);
	cJSON_ArrayForEach(line, lines)
	{
		if (strcmp(cJSON_GetObjectItem(line, "id")->valuestring, "environment") == 0)
			printed = cJSON_GetObjectItem(line, "printed");
	}
	assert_int_equal(cJSON_GetArraySize(printed), 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(cJSON_GetArrayItem(printed, i)->valuestring, expected[i]);
	cJSON_Delete(lines);
	fixture_free(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_well),
		cmocka_unit_test(test_what_succeeds),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_guest_that_lies),
		cmocka_unit_test(test_other_ways_to_fail),
		cmocka_unit_test(test_walls),
		cmocka_unit_test(test_response),
		cmocka_unit_test(test_record_that_does_not_hold),
		cmocka_unit_test(test_odd_record),
		cmocka_unit_test(test_another_file),
		cmocka_unit_test(test_each_line_was_seen_to_fail),
		cmocka_unit_test(test_environment_is_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
