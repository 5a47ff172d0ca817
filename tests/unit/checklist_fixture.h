/* SPDX-License-Identifier: Apache-2.0 */
/* A review in which all is well, for tests that make one thing wrong. */
#ifndef MVAGENT_TESTS_UNIT_CHECKLIST_FIXTURE_H
#define MVAGENT_TESTS_UNIT_CHECKLIST_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/checklist/page.h"

#define NUMBER "00112233445566778899aabbccddeeff"
#define MARK   "0123456789abcdef0123456789abcdef"

#define ITEMS 64

/* A rule of the network, as the record has it; port null. */
#define RULE(by, deny, host) \
	"{\"by\":\"" by "\",\"deny\":" deny ",\"host\":\"" host "\",\"port\":null}"
#define ALLOWED(by, host) "[" RULE(by, "false", host) "]"

struct fixture {
	struct checklist_outside outside;
	struct findings findings;
	struct checklist_input input;
	cJSON *record;
	const char *answers[FINDINGS_ROLES][ITEMS]; /* "RESULT DATA" of each item */
	const char *number;                         /* that comes back */
	int told; /* count that the end of the root's answers says; -1: the right one */
};

static const char record_lines[] =
	"[{\"event\":\"start\",\"run\":\"20260101-000000-0000\",\"policy_sha256\":\"ab\",\"user\":{"
	"},"
	"\"host\":{\"kvm\":\"hardware\",\"name\":\"box\",\"kernel\":\"6.1\",\"processor\":\"P\"},"
	"\"directory\":\"/home/ada\",\"command_line\":[\"review\",\"--share\",\"it's\"],"
	"\"reasons\":[{\"option\":\"--share\",\"value\":\"/home/ada/repo\",\"why\":\"it edits\"},"
	"{\"option\":\"--allow\",\"value\":\"example.com\",\"why\":\"packages\"}],"
	"\"policy\":{\"shares\":[{\"host\":\"/home/ada/repo\",\"guest\":\"/home/ada/"
	"repo\",\"mode\":"
	"\"rw\"}],\"rules\":{\"show\":[],\"unprotect\":[]},\"root\":{\"kind\":\"host\",\"add\":[]},"
	"\"network\":{\"rules\":[],\"published\":[],\"any_server_name\":false},\"environment\":[],"
	"\"share_anyway\":false,\"git_identity\":false,\"ssh_agent\":[],\"allow_degraded\":false,"
	"\"terminal_passthrough\":false,"
	"\"default_rules\":{}}},"
	"{\"event\":\"walls\",\"processes\":["
	"{\"process\":\"mvagent-vmm\",\"missing\":[],\"uid\":65534,\"capabilities\":"
	"\"0000000000000000\"},"
	"{\"process\":\"mvagent-fs\",\"missing\":[],\"capabilities\":\"0000000000000000\"}]},"
	"{\"event\":\"refusal\",\"share\":\"/home/ada/"
	"repo\",\"path\":\".vscode\",\"rule\":\".vscode\"},"
	"{\"event\":\"network\",\"decision\":\"denied\",\"host\":\"no.invalid\"},"
	"{\"event\":\"end\",\"machine\":{\"exits\":1000,\"frames_dropped\":8}}]";

static inline void fixture_add(struct fixture *fixture, enum checklist_line line,
			       enum checklist_purpose purpose, const char *text, const char *agent,
			       const char *root)
{
	unsigned int i = fixture->outside.item_count++;

	fixture->outside.items[i] = (struct checklist_item){line, purpose, strdup(text), NULL};
	fixture->answers[FINDINGS_AGENT][i] = agent;
	fixture->answers[FINDINGS_ROOT][i] = root;
}

/* Another answer to an item, or NULL: none. */
static inline void fixture_answer(struct fixture *fixture, const char *text,
				  enum findings_role role, const char *answer)
{
	for (unsigned int i = 0; i < fixture->outside.item_count; i++) {
		if (strcmp(fixture->outside.items[i].text, text) == 0) {
			fixture->answers[role][i] = answer;
			return;
		}
	}
	fail_msg("there is no item %s", text);
}

static inline void fixture_make(struct fixture *fixture)
{
	static char *const environment[] = {(char *)"MY_TOKEN=swordfish", (char *)"LANG=de", NULL};
	static const char environ_text[] = "60 PATH=/bin%00HOME=/home/ada%00";
	struct checklist_outside *outside = &fixture->outside;

	*fixture = (struct fixture){.number = NUMBER, .told = -1};
	fixture->record = cJSON_Parse(record_lines);
	assert_non_null(fixture->record);
	outside->canary_count = 1;
	outside->canaries[0].path = (char *)"/home/ada/canary";
	snprintf(outside->canaries[0].mark, sizeof(outside->canaries[0].mark), MARK);
	outside->names = cJSON_Parse("[\"main.c\",\".env\"]");
	outside->variables = cJSON_Parse("[\"PATH\",\"HOME\"]");
	outside->environment = environment;
	outside->listening = outside->filtered = true;
	snprintf(outside->boot, sizeof(outside->boot), "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee");
	fixture_add(fixture, LINE_ROOT, TRY_LIST, "list:.", "1 main.c%00", "1 main.c%00");
	fixture_add(fixture, LINE_ABOVE, TRY_REFUSED, "read:../canary", "-2 ", "-2 ");
	fixture_add(fixture, LINE_ROUTES, TRY_REFUSED, "link:/canary", "-18 ", "-2 ");
	fixture_add(fixture, LINE_KEYS, TRY_REFUSED, "open:/home/ada/.ssh", "-2 ", "-2 ");
	fixture_add(fixture, LINE_PROJECTS, TRY_REFUSED, "list:/home/ada/other", "-2 ", "-2 ");
	fixture_add(fixture, LINE_CHANGES, TRY_PROTECTED, "mkdir:/home/ada/repo/.vscode", "-13 ",
		    "-13 ");
	fixture_add(fixture, LINE_OUTSIDE, TRY_REFUSED, "tcp:1.1.1.1/443", "-101 ", "-101 ");
	fixture_add(fixture, LINE_LOG, TRY_DENIED, "name:no.invalid", "-2 ", "-2 ");
	fixture_add(fixture, LINE_INSIDE, TRY_REFUSED, "tcp:10.0.0.1/80", "-101 ", "-101 ");
	fixture_add(fixture, LINE_RAW, TRY_IDENTITY, "identity:", "0 1000:1000", "0 0:0");
	fixture_add(fixture, LINE_RAW, TRY_FRAMES, "frames:8", "-1 ", "8 ");
	fixture_add(fixture, LINE_RAW, TRY_REFUSED, "vsock:22", "-104 ", "-104 ");
	fixture_add(fixture, LINE_ENVIRONMENT, TRY_ENVIRON, "environ:", environ_text, environ_text);
	fixture_add(fixture, LINE_SOCKETS, TRY_REFUSED, "unix:/run/docker.sock", "-2 ", "-2 ");
	fixture_add(fixture, LINE_CLOUD, TRY_REFUSED, "tcp:169.254.169.254/80", "-101 ", "-101 ");
	fixture_add(fixture, LINE_MACHINE, TRY_BOOT, "read:boot_id",
		    "37 11111111-2222-3333-4444-555555555555%0a", "-2 ");
	fixture_add(fixture, LINE_TERMINAL, TRY_TERMINAL, "terminal:x", "0 %1b]52;c;x%07", "0 x");
	fixture->input = (struct checklist_input){
		.record_holds = true,
		.record_sentence = "5 lines",
		.outside = outside,
		.given = {.owner = "Security", .clock = "24h", .kind = "2d"},
	};
}

/* What the guest would say. */
static inline char *fixture_text(const struct fixture *fixture)
{
	static const char *const roles[] = {"agent", "root"};
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	fprintf(stream, "probe %s\n", fixture->number);
	for (int role = 0; role < FINDINGS_ROLES; role++) {
		int count = (int)fixture->outside.item_count;

		for (int i = 0; i < count; i++) {
			if (fixture->answers[role][i])
				fprintf(stream, "%s %d %s\n", roles[role], i,
					fixture->answers[role][i]);
		}
		if (role == FINDINGS_ROOT && fixture->told >= 0)
			count = fixture->told;
		fprintf(stream, "end %s %s %d\n", fixture->number, roles[role], count);
	}
	fclose(stream);
	return text;
}

/* Judges, and returns the line; delete the array. */
static inline cJSON *fixture_judge(struct fixture *fixture)
{
	char *text = fixture_text(fixture);

	findings_destroy(&fixture->findings);
	assert_int_equal(findings_read(&fixture->findings, fixture->outside.item_count, NUMBER,
				       text, strlen(text)),
			 0);
	fixture->input.findings = &fixture->findings;
	fixture->input.record = fixture->record;
	return checklist_judge(&fixture->input);
}

static inline void fixture_free(struct fixture *fixture)
{
	for (unsigned int i = 0; i < fixture->outside.item_count; i++) {
		free(fixture->outside.items[i].text);
		free(fixture->outside.items[i].same);
	}
	findings_destroy(&fixture->findings);
	cJSON_Delete(fixture->record);
	cJSON_Delete(fixture->outside.names);
	cJSON_Delete(fixture->outside.variables);
	cJSON_Delete(fixture->outside.placeholders);
	cJSON_Delete(fixture->outside.unplanted);
	cJSON_Delete(fixture->outside.exposed);
	cJSON_Delete(fixture->outside.shared_projects);
	cJSON_Delete(fixture->outside.expiries);
}

/* A text of an object. */
static inline const char *fixture_member(const cJSON *line, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(line, name));
}

/* The first line of the record about such an event; NULL: there is none. */
static inline cJSON *fixture_event(struct fixture *fixture, const char *name)
{
	cJSON *line;

	cJSON_ArrayForEach(line, fixture->record)
	{
		if (strcmp(fixture_member(line, "event"), name) == 0)
			return line;
	}
	return NULL;
}

static inline void fixture_drop_event(struct fixture *fixture, const char *name)
{
	cJSON_Delete(cJSON_DetachItemViaPointer(fixture->record, fixture_event(fixture, name)));
}

static inline cJSON *fixture_policy(struct fixture *fixture)
{
	return cJSON_GetObjectItem(fixture_event(fixture, "start"), "policy");
}

static inline void fixture_replace(cJSON *object, const char *name, const char *json)
{
	assert_true(cJSON_ReplaceItemInObject(object, name, cJSON_Parse(json)));
}

/* The line called so. */
static inline const cJSON *find(const cJSON *lines, const char *id)
{
	const cJSON *line;

	cJSON_ArrayForEach(line, lines)
	{
		if (strcmp(fixture_member(line, "id"), id) == 0)
			return line;
	}
	fail_msg("there is no line %s", id);
	return NULL;
}

static inline void expect_answer(struct fixture *fixture, const char *id, const char *answer,
				 bool purpose)
{
	cJSON *lines = fixture_judge(fixture);
	const cJSON *line = find(lines, id);

	if (strcmp(fixture_member(line, "answer"), answer) != 0)
		fail_msg("%s: %s: %s", id, fixture_member(line, "answer"),
			 fixture_member(line, "evidence"));
	assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(line, "on_purpose")), purpose);
	cJSON_Delete(lines);
}

static inline void expect_evidence(struct fixture *fixture, const char *id, const char *text,
				   bool there)
{
	cJSON *lines = fixture_judge(fixture);

	if (!strstr(fixture_member(find(lines, id), "evidence"), text) == there)
		fail_msg("%s: %s", id, fixture_member(find(lines, id), "evidence"));
	cJSON_Delete(lines);
}

/* With MY_TOKEN as a secret, its placeholder in the guest. */
static inline void fixture_make_secret(struct fixture *fixture)
{
	static const char text[] = "85 PATH=/bin%00HOME=/home/ada%00MY_TOKEN=placehold%00";

	fixture_make(fixture);
	cJSON_AddItemToObject(fixture_policy(fixture), "secrets",
			      cJSON_Parse("[{\"name\":\"MY_TOKEN\",\"hosts\":[\"api:443\"]}]"));
	cJSON_Delete(fixture->outside.variables);
	fixture->outside.variables = cJSON_Parse("[\"PATH\",\"HOME\",\"MY_TOKEN\"]");
	fixture->outside.placeholders = cJSON_Parse("{\"MY_TOKEN\":\"placehold\"}");
	fixture_answer(fixture, "environ:", FINDINGS_AGENT, text);
	fixture_answer(fixture, "environ:", FINDINGS_ROOT, text);
}

#endif
