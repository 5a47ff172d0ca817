/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest says it found (guest/probe.h): its word, and no more than that. It is taken apart
 * here and believed nowhere: what was asked and has no answer was not told.
 */
#ifndef MVAGENT_CHECKLIST_FINDINGS_H
#define MVAGENT_CHECKLIST_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

enum findings_role { FINDINGS_AGENT, FINDINGS_ROOT, FINDINGS_ROLES };

struct finding {
	bool told;
	long result;
	char *data; /* decoded, @length bytes and a zero; in .decoded */
	size_t length;
};

struct findings {
	unsigned int count;            /* of items that were asked */
	struct finding *all;           /* [role * count + item] */
	bool complete[FINDINGS_ROLES]; /* its end came, with the number and the count */
	bool broken[FINDINGS_ROLES];   /* there was what is no answer, or a second one */
	char *text;                    /* as it came */
	size_t length;
	char *decoded; /* taken apart */
};

/* Takes @text apart (allocated, @length bytes and a zero; taken over): the answers to @count items
 * of the guest that was given @number. 0 or -ENOMEM; destroy in every case. */
int findings_read(struct findings *findings, unsigned int count, const char *number, char *text,
		  size_t length);
void findings_destroy(struct findings *findings);

/* The answer to one item. */
const struct finding *findings_of(const struct findings *findings, enum findings_role role,
				  unsigned int item);

/* Whether these bytes came back anywhere. */
bool findings_contain(const struct findings *findings, const char *bytes, size_t length);

#endif
