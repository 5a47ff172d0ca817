/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions of a review, one line each, and how they are answered: from the record of a run
 * (docs/record.md), from what the guest says when it is asked to try things, and from what was seen
 * outside meanwhile. A guest lies as it likes. What can be seen from outside is looked at there,
 * and each line says whose word it is. What was asked and not told fails its line.
 */
#ifndef MVAGENT_CHECKLIST_CHECKLIST_H
#define MVAGENT_CHECKLIST_CHECKLIST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/checklist/findings.h"

enum checklist_line {
	LINE_ROOT,     /* what is its root, and what enforces that */
	LINE_ABOVE,    /* two directories up */
	LINE_ROUTES,   /* links, /proc, devices */
	LINE_KEYS,     /* where credentials live on disk */
	LINE_PROJECTS, /* other repositories */
	LINE_CHANGES,  /* what it may change that the host runs */
	LINE_OUTSIDE,  /* arbitrary hosts */
	LINE_LOG,      /* egress on record */
	LINE_INSIDE,   /* internal addresses */
	LINE_RAW,      /* frames, other protocols, other sockets */
	LINE_ENVIRONMENT,
	LINE_SOCKETS, /* agents and daemons of the user */
	LINE_CLOUD,
	LINE_SECRETS,
	LINE_AFTER, /* still valid when it has finished */
	LINE_WALLS,
	LINE_MACHINE,
	LINE_TERMINAL,
	LINE_OWNER,
	LINE_CLOCK,
	LINE_KIND, /* of clock */
	LINE_COUNT,
};

/* What a line is, whatever it is answered with. */
struct checklist_text {
	const char *id;
	const char *section;
	const char *question;
	const char *mechanism;    /* kernel feature; file, function */
	const char *not_enforced; /* what this mechanism leaves open */
};

extern const struct checklist_text checklist_texts[LINE_COUNT];

/* Where clouds tell a machine of its role: addresses and a name, NULL at the end. */
extern const char *const checklist_metadata[];

/* What one thing that is tried is for. */
enum checklist_purpose {
	TRY_REFUSED, /* nothing must come of it */
	TRY_FRAMES,  /* root sends so many frames, which must have been seen outside */
	TRY_LIST,    /* of the working directory: the host's own names */
	TRY_ENVIRON,
	TRY_BOOT, /* the number of the kernel's boot, which must not be the host's */
	TRY_IDENTITY,
	TRY_TERMINAL,
	TRY_ALLOWED,  /* a way that the user has opened */
	TRY_DENIED,   /* a name that is not allowed: refused, and on record as denied */
	TRY_PROTECTED /* refused, and on record */
};

struct checklist_item {
	enum checklist_line line;
	enum checklist_purpose purpose;
	char *text; /* KIND:TARGET, as the guest gets it; allocated */
	char *same; /* what an "open" gives back of the host's own file; NULL: anything counts */
};

#define CHECKLIST_ITEMS     256U
#define CHECKLIST_CANARIES  4U
#define CHECKLIST_MARK_SIZE 33 /* text of a canary's value: 32 hex digits */

/* What is looked at outside the guest, from before the run to after it. */
struct checklist_outside {
	unsigned int item_count;
	struct checklist_item items[CHECKLIST_ITEMS];
	unsigned int canary_count; /* files planted where the guest must not come */
	struct {
		char *path;
		int fd;             /* locked: it is not a killed process's */
		unsigned int above; /* so many directories above what is worked on; 0: elsewhere */
		char mark[CHECKLIST_MARK_SIZE];
	} canaries[CHECKLIST_CANARIES];
	cJSON *unplanted; /* array: directories above it that nothing could be asked about */
	unsigned int places_known, places_here; /* where credentials may lie; those that do */
	cJSON *exposed;         /* array: paths of credentials that a share has and no rule hides */
	cJSON *projects;        /* array: repositories beside the shares */
	cJSON *shared_projects; /* array: repositories in a share, beside the one that it is */
	cJSON *names;     /* array: what the host sees in the working directory; NULL: no share */
	cJSON *variables; /* array: names that the command is given */
	cJSON *placeholders; /* object: NAME: what it has in place of a secret */
	char *const
		*environment; /* the host's, NAME=VALUE; values are looked for in what came back */
	bool listening;       /* sockets of this host that the guest was to connect to */
	unsigned int connections; /* that came */
	char boot[64];            /* of the host's kernel */
	bool filtered;            /* what the guest sent for a terminal went through the filter */
	size_t filter_left;       /* of its control sequences */
	cJSON *expiries;          /* object: NAME: when the token in that variable ends (text) */
};

/* What the user says, or NULL: unset. */
struct checklist_register {
	const char *agent, *owner, *clock, *kind, *identity, *data_class, *allowed_actions;
};

struct checklist_input {
	const cJSON *record; /* array: the lines of the run's record */
	bool record_holds;   /* it verifies */
	const char *record_sentence;
	const struct findings *findings;         /* NULL: nothing was tried */
	const struct checklist_outside *outside; /* NULL with .findings */
	struct checklist_register given;
};

/* Answers every line: an array of objects (docs/review.md). NULL: no memory. */
cJSON *checklist_judge(const struct checklist_input *input);

/* Whether a line that was answered so is good: it holds, was not asked, or is open on purpose. */
bool checklist_passes(const cJSON *line);

#endif
