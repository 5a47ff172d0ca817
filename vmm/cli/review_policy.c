/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_policy.h"

#include <errno.h>
#include <stddef.h>

#include "vmm/base/log.h"

static const char *hidden_by(const void *context, const char *path)
{
	const struct policy *rules = context;
	struct policy_verdict verdict;

	policy_examine_path(rules, path, &verdict);
	return verdict.hidden ? policy_rule(rules, verdict.rule) : NULL;
}

static const char *protected_by(const void *context, const char *path, bool replaces_file)
{
	const struct policy *rules = context;
	struct policy_verdict verdict;

	policy_examine_path(rules, path, &verdict);
	if (verdict.protected || (verdict.protected_if_old && replaces_file))
		return policy_rule(rules, verdict.rule);
	return NULL;
}

static int add_all(struct policy *rules, enum policy_list list, char *const *patterns,
		   const char *option)
{
	for (; patterns && *patterns; patterns++) {
		int error = policy_add(rules, list, *patterns);

		if (error)
			return log_errno(error, "%s '%s' is no pattern for names in a share",
					 option, *patterns);
	}
	return 0;
}

int run_policy_create(struct run_policy *policy, const struct review_record *record,
		      char *const *unprotect)
{
	int error;

	policy->rules = policy_create();
	policy->policy = (struct review_policy){
		.context = policy->rules,
		.hidden_by = hidden_by,
		.protected_by = protected_by,
	};
	if (!policy->rules)
		return log_errno(-ENOMEM, "cannot make the rules for names");
	error = policy_add_defaults(policy->rules);
	if (error)
		return log_errno(error, "cannot make the rules for names");
	error = add_all(policy->rules, POLICY_HIDE, record->hide.texts, "--hide");
	if (!error)
		error = add_all(policy->rules, POLICY_SHOW, record->show.texts, "--show");
	if (!error)
		error = add_all(policy->rules, POLICY_PROTECT, record->protect.texts, "--protect");
	if (!error)
		error = add_all(policy->rules, POLICY_UNPROTECT, unprotect, "--unprotect");
	return error;
}

void run_policy_destroy(struct run_policy *policy)
{
	policy_destroy(policy->rules);
	policy->rules = NULL;
}
