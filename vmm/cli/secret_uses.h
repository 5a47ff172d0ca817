/* SPDX-License-Identifier: Apache-2.0 */
/* What secrets may be used for besides the fields of heads, as options of `mvagent run` ask. */
#ifndef MVAGENT_CLI_SECRET_USES_H
#define MVAGENT_CLI_SECRET_USES_H

#include "vmm/secret/secret.h"

/* Options may come before the secret that they name. Zero before use. */
struct secret_uses {
	unsigned int query_count;
	char *queries[LIMIT_SECRETS]; /* names; allocated */
	unsigned int endpoint_count;
	char *endpoints[LIMIT_SECRETS]; /* NAME@HOST[:PORT]/PATH; allocated */
};

/* --secret-query NAME. 0 or -errno with the sentence printed. */
int secret_uses_add_query(struct secret_uses *uses, const char *name);

/* --secret-oauth NAME@HOST[:PORT]/PATH. The same. */
int secret_uses_add_endpoint(struct secret_uses *uses, const char *endpoint);

/* All secrets are known: notes with each what it may be used for. The same. */
int secret_uses_apply(const struct secret_uses *uses, struct secret_set *set);

void secret_uses_free(struct secret_uses *uses);

#endif
