/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single paths that are hidden or protected besides what patterns say: where symbolic links lead
 * that were there under hidden or protected names. A tree of their names, walked along with the
 * patterns: what it says of a directory is a node of it, 0 where no such path goes on.
 */
#ifndef MVAGENT_FS_POLICY_PATH_H
#define MVAGENT_FS_POLICY_PATH_H

#include "vmm/fs/policy.h"

#define POLICY_PATH_ROOT 1U

struct policy_path_node {
	char *name;     /* folded */
	uint32_t first; /* below it; 0: none */
	uint32_t next;  /* beside it */
	bool hidden, protected;
	uint16_t rule;               /* that ends here, or further below */
	struct policy_state *merged; /* what the rules say of a directory there, too; or NULL */
};

struct policy_paths {
	struct policy_path_node *nodes; /* the first is not used */
	uint32_t count;
	uint32_t room;
	char *texts[LIMIT_POLICY_PATHS]; /* of the rules */
	uint16_t text_count;
};

void policy_paths_destroy(struct policy_paths *paths);

/* Makes room for one more node, and for the root at first. */
bool policy_paths_prepare(struct policy_paths *paths);

/* The node of @name (folded) below @node, or 0. */
uint32_t policy_paths_find(const struct policy_paths *paths, uint32_t node, const char *name);

/* Adds the nodes of one more name, @name (folded), below @node. The node, or 0: no room. */
uint32_t policy_paths_add(struct policy_paths *paths, uint32_t node, const char *name,
			  uint16_t rule);

/* Adds the text of a rule. Its number among these, -E2BIG or -ENOMEM. */
int policy_paths_add_text(struct policy_paths *paths, const char *text);

#endif
