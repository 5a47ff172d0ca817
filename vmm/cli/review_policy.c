/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_policy.h"

#include <errno.h>
#include <stddef.h>

#include "vmm/base/log.h"

static const char *hidden_by(const void *context, const char *path)
{
	const struct policy *rules = ((const struct run_policy *)context)->rules;
	struct policy_verdict verdict;

	policy_examine_path(rules, path, &verdict);
	return verdict.hidden ? policy_rule(rules, verdict.rule) : NULL;
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

/* The built-in rules, those on record and those of now. 0 or -errno with the sentence printed. */
static int make_rules(struct policy **rules, const struct review_record *record,
		      char *const *unprotect)
{
	int error;

	*rules = policy_create();
	error = *rules ? policy_add_defaults(*rules) : -ENOMEM;
	if (error)
		return log_errno(error, "cannot make the rules for names");
	error = add_all(*rules, POLICY_HIDE, record->hide.texts, "--hide");
	if (!error)
		error = add_all(*rules, POLICY_SHOW, record->show.texts, "--show");
	if (!error)
		error = add_all(*rules, POLICY_PROTECT, record->protect.texts, "--protect");
	if (!error)
		error = add_all(*rules, POLICY_UNPROTECT, unprotect, "--unprotect");
	return error;
}

const struct share_rules *run_policy_of(struct run_policy *policy, const struct review_share *share)
{
	struct share_rules *rules;

	for (unsigned int i = 0; i < policy->share_count; i++)
		if (policy->shares[i].share == share)
			return &policy->shares[i];
	rules = &policy->shares[policy->share_count++];
	rules->share = share;
	rules->failed = make_rules(&rules->rules, policy->record, policy->unprotect) ||
			scan_run(&rules->scanned, share->host_fd, rules->rules, policy->clean);
	return rules;
}

static enum review_problem protects(void *context, const struct review_share *share,
				    const struct review_change *change, const char **rule)
{
	return share_rules_judge(run_policy_of(context, share), change, rule);
}

int run_policy_create(struct run_policy *policy, const struct review_record *record,
		      char *const *unprotect)
{
	*policy = (struct run_policy){
		.policy = {.context = policy, .hidden_by = hidden_by, .protects = protects},
		.record = record,
		.unprotect = unprotect,
	};
	return make_rules(&policy->rules, record, unprotect);
}

void run_policy_destroy(struct run_policy *policy)
{
	for (unsigned int i = 0; i < policy->share_count; i++) {
		policy_destroy(policy->shares[i].rules);
		scan_result_destroy(&policy->shares[i].scanned);
	}
	policy->share_count = 0;
	policy_destroy(policy->rules);
	policy->rules = NULL;
}
