/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the policy: rules as they are kept. */
#ifndef MVAGENT_FS_POLICY_RULES_H
#define MVAGENT_FS_POLICY_RULES_H

#include "vmm/fs/policy.h"

enum rule_flags {
	RULE_OLD_FILES = 1,  /* protects what is no directory and was not made in this run */
	RULE_OLD_PLACES = 2, /* what a wildcard of it matched must not have been made in this run */
	RULE_PACKAGES = 4,   /* of POLICY_UNPROTECT: ours, not the user's */
};

int policy_add_rule(struct policy *policy, enum policy_list list, const char *pattern,
		    unsigned int flags);

#endif
