/* SPDX-License-Identifier: Apache-2.0 */
/* What the judges of the lines share. */
#ifndef MVAGENT_CHECKLIST_JUDGE_H
#define MVAGENT_CHECKLIST_JUDGE_H

#include "vmm/checklist/checklist.h"

#define JUDGE_TEXT_BYTES 1024U

/* A line under judgement. */
struct judge {
	const struct checklist_input *input;
	enum checklist_line line;
	bool asked;
	bool fault;     /* something is open that nobody opened, or could not be told */
	bool guest;     /* rests on the guest's word */
	bool seen;      /* rests on what was seen outside */
	cJSON *opened;  /* array: what the user opened, each with .by and .why or null */
	cJSON *printed; /* array of texts that the line is about, one by one; NULL: none */
	char faults[JUDGE_TEXT_BYTES];
	char evidence[JUDGE_TEXT_BYTES];
};

/* Adds a sentence to the evidence, or one that makes the line fail. */
void judge_say(struct judge *judge, const char *format, ...) __attribute__((format(printf, 2, 3)));
void judge_fail(struct judge *judge, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The user has opened this: with a reason if one was given for the option and value. */
void judge_open(struct judge *judge, const char *option, const char *value);
/* The same, of an option that does not itself name @what it has opened. */
void judge_open_what(struct judge *judge, const char *option, const char *value, const char *what);

/* What --from cannot answer. */
bool judge_has_probes(struct judge *judge);

/* All that was tried for this line to be refused: each must have been told, and refused. Counts. */
unsigned int judge_refused(struct judge *judge);

/* What that was, each thing once: "169.254.169.254, fd00:ec2::254 and 7 more". Returns @text. */
const char *judge_targets(const struct judge *judge, char text[JUDGE_TEXT_BYTES]);

/* The item of this line for a purpose, or -1. */
int judge_find(const struct judge *judge, enum checklist_purpose purpose, unsigned int from);

/* The answer to it, or NULL, with the line failed, when it was not told. */
const struct finding *judge_answer(struct judge *judge, enum findings_role role, int item);

/* Lines of the record. */
const cJSON *judge_event(const struct judge *judge, const char *event);
const cJSON *judge_policy(const struct judge *judge, const char *name);
/* A member as text, "" if it is none. */
const char *judge_text(const cJSON *object, const char *name);
/* An element of an array, likewise: a record may be anybody's. */
const char *judge_string(const cJSON *item);
/* Whether an array has a text. */
bool judge_has(const cJSON *array, const char *text);
/* The names of an array: "a, b, c and 7 more". Returns @text. */
const char *judge_list(const cJSON *array, char text[JUDGE_TEXT_BYTES]);
double judge_number(const cJSON *object, const char *name);

/* Opens what rules of the network allow, those for which @is_meant holds of the host;
 * judge_network.c. */
void judge_open_rules(struct judge *judge, bool (*is_meant)(const char *host));

typedef void judge_line(struct judge *judge);

judge_line judge_root, judge_above, judge_routes, judge_keys, judge_projects, judge_changes;
judge_line judge_outside, judge_log, judge_inside, judge_raw;
judge_line judge_environment, judge_sockets, judge_cloud, judge_secrets, judge_after;
judge_line judge_walls, judge_machine, judge_terminal, judge_owner, judge_clock, judge_kind;

#endif
