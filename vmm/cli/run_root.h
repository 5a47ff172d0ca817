/* SPDX-License-Identifier: Apache-2.0 */
/* The options about the guest's root file system: --root, --root-add, --root-hide, --scratch. */
#ifndef MVAGENT_CLI_RUN_ROOT_H
#define MVAGENT_CLI_RUN_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/cli/process.h"
#include "vmm/root/host_plan.h"

struct run_root {
	const char *image; /* a file; NULL: the host's own directories */
	unsigned int add_count;
	char *adds[LIMIT_ROOT_ADDS]; /* absolute; allocated */
	unsigned int hide_count;
	const char *hides[LIMIT_ROOT_HIDES];
	uint64_t scratch_mib; /* 0: half of the guest's memory */
};

/* Each takes the value of the option of its name. 0 or -errno with the sentence printed. */
int run_root_set(struct run_root *root, const char *value);
int run_root_add(struct run_root *root, const char *value);
int run_root_hide(struct run_root *root, const char *value);
int run_root_set_scratch(struct run_root *root, const char *value);

/* Checks them together: what is for the host's directories only. 0 or -errno, as above. */
int run_root_check(const struct run_root *root);

/* What the options make of this host's directories. 0 or -errno with the sentence printed; destroy
 * the plan in every case. */
int run_root_make_plan(const struct run_root *root, struct host_plan *plan);

/* Whether the host's directories can be had as the options say: asked before anything is started. 0
 * or -errno, as above. */
int run_root_try(const struct run_root *root);

/* Adds the options of mvagent-blk for the host's directories. */
void run_root_plan(const struct run_root *root, struct process_plan *plan);

void run_root_free(struct run_root *root);

#endif
