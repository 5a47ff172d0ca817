/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a review of what the user has opened, with a reason and without, and of a run that
 * nothing was tried in; and that what they say is true. */
#include "tests/unit/checklist_fixture.h"

/* The user takes what the host has: each line that rests on a wall that is missing says so, and is
 * open, with a reason or without. */
static void test_degraded(void **state)
{
	static const char reasons[] =
		"[{\"option\":\"--allow-degraded\",\"value\":\"\",\"why\":\"an old kernel\"}]";
	static const char *const ids[] = {"root", "walls"};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(ids) / sizeof(ids[0]); i++) {
		const char *id = ids[i / 2];
		const bool explained = i % 2;

		fixture_make(&fixture);
		fixture_replace(fixture_policy(&fixture), "allow_degraded", "true");
		fixture_replace(
			cJSON_GetArrayItem(
				cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"),
				1),
			"missing", "[\"landlock\",\"mounts\"]");
		expect_evidence(&fixture, "above", "no mount namespace of its own", true);
		if (explained)
			fixture_replace(fixture_event(&fixture, "start"), "reasons", reasons);
		expect_answer(&fixture, id, "OPEN", explained);
		expect_evidence(&fixture, id, i < 2 ? "around mvagent-fs" : "around fs: landlock",
				true);
		expect_evidence(&fixture, id, "landlock", true);
		expect_evidence(&fixture, id, "mounts, Landlock (told", false);
		fixture_free(&fixture);
	}
	for (int both = 0; both < 2; both++) { /* what keeps it from the host's network then */
		fixture_make(&fixture);
		fixture_replace(fixture_policy(&fixture), "allow_degraded", "true");
		fixture_replace(
			cJSON_GetArrayItem(
				cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"),
				0),
			"missing", both ? "[\"namespaces\",\"system_calls\"]" : "[\"namespaces\"]");
		expect_answer(&fixture, "outside", both ? "OPEN" : "HOLDS", false);
		expect_evidence(&fixture, "outside", "had a network", false);
		expect_evidence(&fixture, "outside",
				both ? "nothing keeps mvagent-vmm from" : "system calls alone",
				true);
		fixture_free(&fixture);
	}
}

/* What the user opens is open on purpose with a reason, and only so. */
static void test_what_is_opened(void **state)
{
	static const struct {
		const char *object, *name, *json, *id;
	} cases[] = {
		{"rules", "show", "[\".env\"]", "keys"},
		{"rules", "show", "[\".env\"]", "after"},
		{"rules", "unprotect", "[\".vscode\"]", "changes"},
		{"root", "add", "[\"/home/ada/.nvm\"]", "root"},
		{"network", "rules", ALLOWED("--allow example.org", "example.org"), "outside"},
		{"network", "rules", ALLOWED("--allow-from npm", "example.org"), "outside"},
		{"network", "rules", ALLOWED("--allow 10.0.0.7", "10.0.0.7"), "inside"},
		{"network", "rules", ALLOWED("--allow fd00::7", "fd00::7"), "inside"},
		{"network", "rules", ALLOWED("--allow 169.254.169.254", "169.254.169.254"),
		 "cloud"},
		{"network", "rules",
		 ALLOWED("--allow metadata.google.internal", "metadata.google.internal"), "cloud"},
		{"network", "any_server_name", "true", "outside"},
		{"network", "published",
		 "[{\"address\":\"127.0.0.1\",\"port\":8080,\"guest_port\":80}]", "inside"},
		{NULL, "environment", "[\"HOME\"]", "environment"},
		{NULL, "environment", "[\"HOME\"]", "after"},
		{NULL, "git_identity", "true", "environment"},
		{NULL, "ssh_agent", "[\"ada@git.test\"]", "sockets"},
		{NULL, "share_anyway", "true", "keys"},
		{NULL, "terminal_passthrough", "true", "terminal"},
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *object;

		fixture_make(&fixture);
		object = fixture_policy(&fixture);
		if (cases[i].object)
			object = cJSON_GetObjectItem(object, cases[i].object);
		fixture_replace(object, cases[i].name, cases[i].json);
		expect_answer(&fixture, cases[i].id, "OPEN", false);
		fixture_free(&fixture);
	}
	fixture_make(&fixture);
	fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "network"), "rules",
			"[" RULE("--allow example.com", "false", "example.com") "," RULE(
				"--deny x.example.com", "true",
				"x.example.com") "," RULE("--allow-from list, line 2", "true",
							  "y.example.com") "]");
	expect_answer(&fixture, "outside", "OPEN", true);
	fixture_free(&fixture);
	for (size_t i = 0; i < 2; i++) { /* a host whose name begins with a digit is no address */
		static const char *const rules[] = {
			ALLOWED("--allow 1password.com:8443", "1password.com"),
			ALLOWED("--allow 2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6")};

		fixture_make(&fixture);
		fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "network"), "rules",
				rules[i]);
		expect_answer(&fixture, "inside", i ? "OPEN" : "HOLDS", false);
		fixture_free(&fixture);
	}
	fixture_make(&fixture);
	fixture_replace(fixture_event(&fixture, "start"), "reasons", "[]");
	expect_answer(&fixture, "changes", "OPEN", false);
	fixture_free(&fixture);
	fixture_make(&fixture); /* a reason for one is none for another */
	fixture_replace(
		cJSON_GetArrayItem(cJSON_GetObjectItem(fixture_policy(&fixture), "shares"), 0),
		"host", "\"/home/ada/repo2\"");
	expect_answer(&fixture, "changes", "OPEN", false);
	fixture_free(&fixture);
}

/* A secret that may be used is a way that was opened; that its value stays outside is not given up
 * by any reason. */
static void test_secret(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make_secret(&fixture);
	expect_answer(&fixture, "secrets", "OPEN", false);
	fixture_free(&fixture);
	fixture_make_secret(&fixture);
	fixture_replace(
		fixture_event(&fixture, "start"), "reasons",
		"[{\"option\":\"--secret\",\"value\":\"MY_TOKEN\",\"why\":\"it asks the model\"}]");
	expect_answer(&fixture, "secrets", "OPEN", true);
	fixture_free(&fixture);
	fixture_make_secret(&fixture);
	fixture_replace(
		fixture_event(&fixture, "start"), "reasons",
		"[{\"option\":\"--secret\",\"value\":\"MY_TOKEN\",\"why\":\"it asks the model\"}]");
	fixture_answer(&fixture, "tcp:10.0.0.1/80", FINDINGS_AGENT, "-101 swordfish");
	expect_answer(&fixture, "secrets", "OPEN", false);
	fixture_free(&fixture);
}

/* A reason is no excuse for what the boundary itself lets through. */
static void test_reason_is_no_excuse(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "network"), "rules",
			ALLOWED("--allow example.com", "example.com"));
	fixture_answer(&fixture, "tcp:1.1.1.1/443", FINDINGS_ROOT, "0 ");
	expect_answer(&fixture, "outside", "OPEN", false);
	expect_evidence(&fixture, "outside", "succeeded with", true);
	fixture_free(&fixture);
}

/* From a record alone: what only a probe can tell is not asked, and nothing else. */
static void test_from_a_record(void **state)
{
	static const char *const asked[] = {"root",  "changes", "outside", "log",   "after",
					    "walls", "machine", "owner",   "clock", "kind"};
	struct fixture fixture;
	cJSON *lines;
	const cJSON *line;

	(void)state;
	fixture_make(&fixture);
	fixture.input.record = fixture.record;
	fixture.input.outside = NULL;
	lines = checklist_judge(&fixture.input);
	cJSON_ArrayForEach(line, lines)
	{
		bool wanted = false;

		for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
			wanted |= strcmp(asked[i], fixture_member(line, "id")) == 0;
		assert_int_equal(strcmp(fixture_member(line, "answer"), "NOT ASKED") != 0, wanted);
		assert_true(checklist_passes(line));
	}
	cJSON_Delete(lines);
	cJSON_Delete(fixture.record); /* an empty one answers nothing */
	fixture.record = cJSON_CreateArray();
	fixture.input.record = fixture.record;
	lines = checklist_judge(&fixture.input);
	assert_false(checklist_passes(find(lines, "root")));
	assert_false(checklist_passes(find(lines, "outside")));
	assert_false(checklist_passes(find(lines, "log")));
	assert_false(checklist_passes(find(lines, "after")));
	assert_false(checklist_passes(find(lines, "walls")));
	assert_false(checklist_passes(find(lines, "machine")));
	cJSON_Delete(lines);
	fixture_free(&fixture);
}

/* What a line says is true also where it holds. */
static void test_evidence_is_true(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	expect_evidence(&fixture, "outside", "no process of the run had a network", true);
	expect_evidence(&fixture, "after", "nothing outlives the machine", true);
	expect_evidence(&fixture, "above", "failed, nothing of them came back: in /home/ada", true);
	expect_evidence(&fixture, "root", "lists 1 of the 2 names", true);
	expect_evidence(&fixture, "walls", "as the kernel says); users: vmm 65534", true);
	expect_evidence(&fixture, "walls", "vmm, fs: namespaces, mounts, Landlock", true);
	expect_evidence(&fixture, "cloud", "2 tries failed: 169.254.169.254", true);
	expect_evidence(&fixture, "cloud", "google", false);
	expect_evidence(&fixture, "sockets", "2 connections failed: /run/docker.sock", true);
	expect_evidence(&fixture, "inside", ": 10.0.0.1", true);
	expect_evidence(&fixture, "inside", "192.168", false);
	expect_evidence(&fixture, "outside", "failed: 1.1.1.1", true);
	fixture_replace(cJSON_GetObjectItem(fixture_policy(&fixture), "network"), "published",
			"[{\"address\":\"127.0.0.1\",\"port\":8080,\"guest_port\":80}]");
	cJSON_AddItemToArray(cJSON_GetObjectItem(fixture_event(&fixture, "walls"), "processes"),
			     cJSON_Parse("{\"process\":\"mvagent-relay\",\"missing\":[],"
					 "\"capabilities\":\"0000000000000000\"}"));
	cJSON_AddItemToObject(fixture_policy(&fixture), "secrets",
			      cJSON_Parse("[{\"name\":\"MY_TOKEN\"}]"));
	expect_evidence(&fixture, "outside", "no process of the run had a network", false);
	expect_evidence(&fixture, "outside", "mvagent-relay has a network", true);
	expect_evidence(&fixture, "after", "nothing outlives the machine", false);
	fixture_free(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evidence_is_true),    cmocka_unit_test(test_degraded),
		cmocka_unit_test(test_what_is_opened),      cmocka_unit_test(test_secret),
		cmocka_unit_test(test_reason_is_no_excuse), cmocka_unit_test(test_from_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
