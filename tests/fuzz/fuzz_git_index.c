/* SPDX-License-Identifier: Apache-2.0 */
/* A git index as an earlier guest may have left it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/fs/git_index.h"
#include "vmm/fs/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each path must be one that the policy can walk. */
static void visit(void *context, const char *path)
{
	struct policy_verdict verdict;

	if (!*path)
		abort();
	policy_examine_path(context, path, &verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy *policy;

	if (!policy) {
		policy = policy_create();
		if (!policy || policy_add_defaults(policy))
			abort();
	}
	git_index_read(data, size, visit, policy);
	return 0;
}
