/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent of `mvagent demo` tries, and how it is told from outside whether it succeeded. */
#ifndef MVAGENT_CLI_DEMO_ATTEMPTS_H
#define MVAGENT_CLI_DEMO_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "vmm/base/stream_search.h"
#include "vmm/cli/demo_place.h"
#include "vmm/cli/escape_filter.h"

struct demo_attempt {
	const char *id; /* as share/demo/agent.sh calls it */
	const char *title;
	const char *mechanism; /* what stops it: kernel feature; file, function */
};

enum demo_answer {
	DEMO_NOT_TRIED, /* no word of it came, or the program for it is missing */
	DEMO_STOPPED,
	DEMO_LATER,   /* what tells is known when the run has ended: frames that were dropped */
	DEMO_THROUGH, /* the agent has what it was after */
};

/* What has been seen of the agent so far. */
struct demo_watch {
	const struct demo_place *place;
	struct stream_search search, sent, left;
	struct escape_filter filter;
	unsigned int secrets_seen; /* bit for each enum demo_secret */
	bool clipboard_sent;       /* such a sequence came from the guest */
	bool clipboard_left;       /* and passed the filter */
};

extern const struct demo_attempt demo_attempts[];
extern const unsigned int demo_attempt_count;

/* The attempt called so, or NULL. */
const struct demo_attempt *demo_attempt_find(const char *id, size_t length);

/* Takes in the next piece of what the guest printed. */
void demo_watch_take(struct demo_watch *watch, const char *bytes, size_t length);

/* What came of an attempt whose command ended with @status. Writes what was seen to @seen. */
enum demo_answer demo_attempt_judge(const struct demo_attempt *attempt,
				    const struct demo_watch *watch, int status, char *seen,
				    size_t size);

/* What came of the one that is put off: @frames is how many the card has dropped. */
enum demo_answer demo_attempt_judge_frames(unsigned long long frames, char *seen, size_t size);

#endif
