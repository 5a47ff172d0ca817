/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that a server has given out (OAuth: RFC 6749, 5.1). The guest gets a placeholder for each;
 * from then on it is a secret like those that the user gave: for the same hosts as the one whose
 * token endpoint is there, masked in all answers. In this process's memory, until the run is over.
 */
#ifndef MVAGENT_SECRET_TOKEN_STORE_H
#define MVAGENT_SECRET_TOKEN_STORE_H

#include "vmm/secret/mask_table.h"
#include "vmm/secret/secret.h"

struct token_store {
	struct secret_set *set;
	struct mask_table *masks;
	unsigned int given; /* so many of the set are no tokens */
};

/* Tokens of one connection's server. */
struct token_scope {
	struct token_store *store;
	const char *host;
	uint16_t port;
	uint64_t replaced[LIMIT_SECRETS]; /* how many, by the secret that they are counted as */
};

/* Whether some secret has its token endpoint at that host. */
bool token_store_watches(const struct token_store *store, const char *host, uint16_t port);

/* Keeps a token that the scope's server gives out, unless it is known. Returns what the guest is
 * told instead, as long as it; or NULL with @reason, as what follows "its answer " (static). */
const char *token_store_keep(struct token_scope *scope, const char *value, size_t length,
			     const char **reason);

#endif
