/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for names that were in force in a run, as review asks for them. */
#ifndef MVAGENT_CLI_REVIEW_POLICY_H
#define MVAGENT_CLI_REVIEW_POLICY_H

#include "vmm/fs/policy.h"
#include "vmm/review/change.h"
#include "vmm/review/record.h"

struct run_policy {
	struct policy *rules;
	struct review_policy policy;
};

/* The built-in rules, and those on record; @unprotect: patterns (the array ends with NULL) whose
 * protection the user lifts now. 0 or -errno with the sentence printed. Destroy in every case. */
int run_policy_create(struct run_policy *policy, const struct review_record *record,
		      char *const *unprotect);
void run_policy_destroy(struct run_policy *policy);

#endif
