/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/secret_uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"

int secret_uses_add_query(struct secret_uses *uses, const char *name)
{
	if (uses->query_count == LIMIT_SECRETS) {
		log_error("--secret-query: it can be given %u times", LIMIT_SECRETS);
		return -E2BIG;
	}
	uses->queries[uses->query_count] = strdup(name);
	if (!uses->queries[uses->query_count])
		return log_errno(-ENOMEM, "cannot keep secrets");
	uses->query_count++;
	return 0;
}

static struct secret *find_secret(struct secret_set *set, const char *name)
{
	for (unsigned int i = 0; set && i < set->count; i++) {
		if (strcmp(set->secrets[i].name, name) == 0)
			return &set->secrets[i];
	}
	return NULL;
}

int secret_uses_apply(const struct secret_uses *uses, struct secret_set *set)
{
	for (unsigned int i = 0; i < uses->query_count; i++) {
		struct secret *secret = find_secret(set, uses->queries[i]);

		/* What is wrong is not shown: it may be a secret. */
		if (!secret) {
			log_error("--secret-query: it must be followed by the NAME of a secret "
				  "that --secret, --secret-file or --secret-cmd names as well");
			return -EINVAL;
		}
		secret->in_query = true;
	}
	return 0;
}

void secret_uses_free(struct secret_uses *uses)
{
	for (unsigned int i = 0; i < uses->query_count; i++)
		free(uses->queries[i]);
	*uses = (struct secret_uses){0};
}
