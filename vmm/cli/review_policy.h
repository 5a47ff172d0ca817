/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for names that were in force in a run, as review asks for them. */
#ifndef MVAGENT_CLI_REVIEW_POLICY_H
#define MVAGENT_CLI_REVIEW_POLICY_H

#include "vmm/fs/policy.h"
#include "vmm/fs/scan.h"
#include "vmm/review/change.h"
#include "vmm/review/record.h"

/* What holds in one share: the run's rules, and what its directory on the host has that names do
 * not tell. Found when a change is to be judged. */
struct share_rules {
	const struct review_share *share;
	struct policy *rules;
	struct scan_result scanned;
	bool failed;
};

struct run_policy {
	struct policy *rules;
	struct review_policy policy;
	const struct review_record *record;
	char *const *unprotect;
	bool clean; /* remove what an `apply` that was killed left behind */
	struct share_rules shares[LIMIT_SHARES];
	unsigned int share_count;
};

/* The built-in rules, and those on record; @unprotect: patterns (the array ends with NULL) whose
 * protection the user lifts now. Both must live as long, and the policy stay where it is. 0 or
 * -errno with the sentence printed. Destroy in every case. */
int run_policy_create(struct run_policy *policy, const struct review_record *record,
		      char *const *unprotect);
void run_policy_destroy(struct run_policy *policy);

/* The rules of a share, for which its directory is looked through when they are asked for first. */
const struct share_rules *run_policy_of(struct run_policy *policy,
					const struct review_share *share);

/* --- review_protect.c --- */

/* struct review_policy's protects, for a share. */
enum review_problem share_rules_judge(const struct share_rules *rules,
				      const struct review_change *change, const char **rule);

#endif
