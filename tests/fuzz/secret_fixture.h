/* SPDX-License-Identifier: Apache-2.0 */
/* The one secret of the targets that look at what passes mvagent-secret. */
#ifndef MVAGENT_TESTS_FUZZ_SECRET_FIXTURE_H
#define MVAGENT_TESTS_FUZZ_SECRET_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "vmm/secret/mask_table.h"
#include "vmm/secret/secret.h"

#define VALUE "S3CRET-S3CRET"
#define PLACE "PLACE-HOLDER1"

static inline const struct secret_set *the_set(void)
{
	static struct secret_set set;

	if (!set.count) {
		set.count = 1;
		set.secrets[0].length = strlen(VALUE);
		memcpy(set.secrets[0].value, VALUE, sizeof(VALUE));
		memcpy(set.secrets[0].placeholder, PLACE, sizeof(PLACE));
		memcpy(set.secrets[0].hosts[0].name, "a.test", 7);
		set.secrets[0].hosts[0].port = 443;
		set.secrets[0].host_count = 1;
	}
	return &set;
}

static inline const struct mask_table *the_table(void)
{
	static struct mask_table *table;

	if (!table && mask_table_create(&table, the_set()) < 0)
		abort();
	return table;
}

#endif
