/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names of a share the guest may not see (hidden) and which it may see but not change
 * (protected). Decided by names alone, from the share's root down, so that a rule holds for what is
 * there and for what is not.
 *
 * A pattern is like one of .gitignore: without a slash it is a name at any depth; with one it is a
 * path from the share's root, or at any depth when it begins with "**" and a slash. "*", "?" and
 * "[...]" stay within one name. Upper and lower case are the same, because they may be on the host.
 * What matches a pattern takes everything below it along.
 *
 * Patterns are matched one name at a time: a directory carries the state that its path has led to
 * (which patterns have been matched how far), and a name in it leads to the next.
 */
#ifndef MVAGENT_FS_POLICY_H
#define MVAGENT_FS_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"

enum policy_list {
	POLICY_HIDE,
	POLICY_SHOW, /* not hidden, though a pattern of POLICY_HIDE matches */
	POLICY_PROTECT,
	POLICY_UNPROTECT, /* not protected, though one of POLICY_PROTECT matches */
	POLICY_LIST_COUNT,
};

#define POLICY_STATE_WORDS (LIMIT_POLICY_POSITIONS / 64)

/* Rules are numbered: those of patterns, those of single paths, one for names that a directory
 * which ignores case may take for others (case_fold.h), and one for hooks (guard_repository.c). */
#define POLICY_RULE_CASE    (LIMIT_POLICY_RULES + LIMIT_POLICY_PATHS)
#define POLICY_RULE_HOOK    (POLICY_RULE_CASE + 1)
#define POLICY_RULE_NUMBERS (POLICY_RULE_CASE + 64)

/* Where a directory's path has led to. All zero: nowhere below the root where a rule could begin to
 * differ from any other place. */
struct policy_state {
	uint64_t matched[POLICY_STATE_WORDS]; /* a bit for each beginning of a pattern */
	uint32_t path_node;                   /* policy_path.h; 0: no single path goes on below */
	bool root;                            /* the share's root: patterns of paths begin here */
	bool protected_below;                 /* a rule takes in everything below */
	bool unprotected_below;               /* the user says so */
	bool packages_below;                  /* what package managers fill: built-in rules end */
	bool shown_below;
	uint16_t rule; /* of protected_below: its number */
};

/* What the rules say of one name in one directory. */
struct policy_verdict {
	bool hidden;
	bool protected;
	bool protected_if_old; /* protected if it is no directory and was not made in this run */
	uint16_t rule;         /* which one hides or protects */
	struct policy_state state; /* of a directory of this name */
	/* state.matched of one that was made in this run: built-in rules guard the repositories
	 * that were there, and let the guest make its own. */
	uint64_t matched_if_new[POLICY_STATE_WORDS];
};

struct policy;

/* A policy without any rule. NULL: no memory. */
struct policy *policy_create(void);
void policy_destroy(struct policy *policy);

/* Adds a pattern. 0, -EINVAL (empty, has "." or "..", a name too long), -E2BIG (too many), -ENOMEM.
 */
int policy_add(struct policy *policy, enum policy_list list, const char *pattern);

/* Adds a pattern that @option was given; 0, or as policy_add with the sentence printed. */
int policy_add_option(struct policy *policy, enum policy_list list, const char *option,
		      const char *pattern);

/* Whether a pattern could be added. 0 or -errno with the sentence printed. */
int policy_check(enum policy_list list, const char *option, const char *pattern);

/* Adds the rules that hold unless the user takes them away: policy_defaults.c. */
int policy_add_defaults(struct policy *policy);

/* Adds a single path from the root, to which the symbolic link @link (a path) led: it is hidden, or
 * protected, as @verdict says of the link's name; and what the rules say below that name holds
 * below the path. 0, -E2BIG or -ENOMEM. */
int policy_add_path(struct policy *policy, const char *path, const char *link,
		    const struct policy_verdict *verdict);

/* Pattern @index of those that policy_add_defaults puts into a list, or NULL after the last. */
const char *policy_default(enum policy_list list, unsigned int index);

/* The text of a rule, as it was given. */
const char *policy_rule(const struct policy *policy, uint16_t rule);

/* The state of the share's root. */
struct policy_state policy_root_state(void);

/* The policy's own copy of a state, the same for equal states: most directories have one of a few.
 * NULL: no memory, or too many (LIMIT_POLICY_STATES). */
const struct policy_state *policy_keep_state(struct policy *policy,
					     const struct policy_state *state);

/* Makes the rules for "*.git" hold in a directory of @state, whatever its name is. */
void policy_enter_repository(const struct policy *policy, struct policy_state *state);

/* Whether a pattern has been matched in part, so that the directory's own name matters: if it had
 * another, other things in it would be hidden or protected. */
bool policy_state_has_begun(const struct policy_state *state);

/* A rule of which that is so. */
uint16_t policy_begun_rule(const struct policy *policy, const struct policy_state *state);

/* What the rules say of @name (one component) in a directory of @state. */
void policy_examine(const struct policy *policy, const struct policy_state *state, const char *name,
		    struct policy_verdict *verdict);

/* The same for a whole path from the root, @path without a leading slash: the verdict on its last
 * name, hidden or protected if one before it is. For those who do not walk: `mvagent apply`. */
void policy_examine_path(const struct policy *policy, const char *path,
			 struct policy_verdict *verdict);

#endif
