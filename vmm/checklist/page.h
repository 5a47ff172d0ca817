/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A review as one object of canonical JSON (vmm/record/canonical.h), which is signed, and what is
 * made of it for people. All of that follows from the object alone, byte for byte, so that whoever
 * has the printed page's file can make it anew and compare.
 */
#ifndef MVAGENT_CHECKLIST_PAGE_H
#define MVAGENT_CHECKLIST_PAGE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "vmm/checklist/checklist.h"
#include "vmm/record/key.h"

/* Puts it together: who, what, the answers, the register. @record_text: the record's bytes; @time:
 * UTC; @words: the command that makes it again, a NULL-terminated list; NULL: as the record has it.
 * NULL: no memory. */
cJSON *page_make(const struct checklist_input *input, const char *record_text, size_t record_length,
		 const char *time, const char *const *words);

/* Whether every line is good (checklist_passes). */
bool page_is_good(const cJSON *page);

/* Signs it, in place. 0, -ENOMEM or -EIO. */
int page_sign(cJSON *page, const struct record_key *key);

/* One line of JSON; allocated. NULL: no memory. */
char *page_json(const cJSON *page);

/* For a terminal or a file. */
void page_print(const cJSON *page, FILE *stream, bool colour);

/* One page of HTML, with the object itself in it; allocated. NULL: no memory. */
char *page_html(const cJSON *page);

/* The boundary under this policy, as SVG. */
void page_picture(const cJSON *page, FILE *stream);

/* A member that is a string; "" if there is none: a page may be anybody's. */
const char *page_text(const cJSON *object, const char *name);

/* Whether a line asks for what only the user can say, and nothing was said. */
bool page_is_unset(const cJSON *line);

/* Text with what HTML and XML would take for their own written otherwise; of more than @limit
 * characters the rest is left out. */
void page_escape(FILE *stream, const char *text, size_t limit);

/* The rows of a governance register; allocated. NULL: no memory. */
char *page_register_csv(const cJSON *page);
char *page_register_json(const cJSON *page);

enum page_verdict { PAGE_WHOLE, PAGE_OTHER_KEY, PAGE_ALTERED, PAGE_OTHER_VERSION };

struct page_check {
	enum page_verdict verdict;
	const char *sentence;
	uint8_t key[KEY_BYTES]; /* who signed, but for PAGE_ALTERED */
	cJSON *page;            /* what was signed, or NULL; delete it */
};

/* Whether a file, HTML or JSON, is what was signed: by @trusted. 0 or -ENOMEM. */
int page_verify(struct page_check *check, const char *text, size_t length,
		const uint8_t trusted[KEY_BYTES]);

#endif
