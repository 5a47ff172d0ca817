/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/token_store.h"

#include <string.h>

static bool is_endpoint(const struct secret *secret, const char *host, uint16_t port)
{
	const struct secret_host *place = &secret->hosts[secret->endpoint_host];

	return secret->endpoint_path[0] && place->port == port && strcmp(place->name, host) == 0;
}

bool token_store_watches(const struct token_store *store, const char *host, uint16_t port)
{
	for (unsigned int i = 0; i < store->set->count; i++) {
		if (is_endpoint(&store->set->secrets[i], host, port))
			return true;
	}
	return false;
}

/* The one whose value, or placeholder, that is. */
static const struct secret *find_known(const struct secret_set *set, const char *value,
				       size_t length)
{
	for (unsigned int i = 0; i < set->count; i++) {
		const struct secret *secret = &set->secrets[i];

		if (secret->length == length && (memcmp(secret->value, value, length) == 0 ||
						 memcmp(secret->placeholder, value, length) == 0))
			return secret;
	}
	return NULL;
}

/* Whether there is one that is known inside, in any form: it would go where it may not. */
static bool has_known_inside(const struct token_store *store, const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (mask_table_match(store->masks, value + i, length - i).whole)
			return true;
	}
	return false;
}

/* Of two secrets with their endpoints at this host either may be the one: the token is only for
 * hosts that both are for. */
static void keep_common_hosts(const struct secret_set *set, const struct token_scope *scope,
			      struct secret *token)
{
	for (unsigned int i = 0; i < set->count; i++) {
		const struct secret *secret = &set->secrets[i];
		unsigned int kept = 0;

		if (!is_endpoint(secret, scope->host, scope->port))
			continue;
		for (unsigned int j = 0; j < token->host_count; j++) {
			const struct secret_host host = token->hosts[j];

			if (!secret_is_for(secret, host.name, host.port))
				continue;
			if (j == token->endpoint_host)
				token->endpoint_host = kept;
			token->hosts[kept++] = host;
		}
		token->host_count = kept;
		token->in_query &= secret->in_query;
	}
}

/* Makes it in the place behind the last. */
static int make(struct token_store *store, const struct token_scope *scope, const char *value,
		size_t length)
{
	struct secret_set *set = store->set;
	struct secret *token = &set->secrets[set->count];
	unsigned int like = 0;
	int error;

	while (!is_endpoint(&set->secrets[like], scope->host, scope->port))
		like++;
	*token = set->secrets[like];
	token->counted_as = secret_owner(set, like) + 1;
	token->length = length;
	memcpy(token->value, value, length);
	token->value[length] = '\0';
	keep_common_hosts(set, scope, token);
	error = secret_make_placeholder(token);
	error = error ? error : mask_table_add(store->masks, set, set->count);
	if (error)
		explicit_bzero(token, sizeof(*token));
	else
		set->count++;
	return error;
}

const char *token_store_keep(struct token_scope *scope, const char *value, size_t length,
			     const char **reason)
{
	struct token_store *store = scope->store;
	const struct secret *known = find_known(store->set, value, length);
	unsigned int index;

	if (known) {
		index = (unsigned int)(known - store->set->secrets);
		scope->replaced[secret_owner(store->set, index)]++;
		return known->placeholder;
	}
	if (length < LIMIT_SECRET_TOKEN_BYTES_MIN) {
		*reason = "gives out a token of less than 16 characters";
	} else if (secret_objection(value, length)) {
		*reason = "gives out a token that no field of a request can have, or one that is "
			  "too long";
	} else if (has_known_inside(store, value, length)) {
		*reason = "gives out a token with another secret in it";
	} else if (store->set->count - store->given == LIMIT_SECRET_TOKENS) {
		*reason = "gives out a token, and there is no room for more of them in this run";
	} else if (make(store, scope, value, length) < 0) {
		*reason = "gives out a token that could not be kept";
	} else {
		known = &store->set->secrets[store->set->count - 1];
		scope->replaced[known->counted_as - 1]++;
	}
	return known ? known->placeholder : NULL;
}
