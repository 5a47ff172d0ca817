/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets that are used for the guest and never enter it: the guest has a placeholder of the same
 * length in the place of each, and mvagent-secret puts the secret into requests to its hosts.
 */
#ifndef MVAGENT_SECRET_SECRET_H
#define MVAGENT_SECRET_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/base/stream_search.h"

#define SECRET_HOST_BYTES 254 /* a name, in the one form of vmm/relay/names.h */

struct secret_host {
	char name[SECRET_HOST_BYTES];
	uint16_t port;
};

struct secret {
	char name[LIMIT_SECRET_NAME_BYTES + 1]; /* of the guest's variable */
	size_t length;                          /* of both of these: visible ASCII, terminated */
	char value[LIMIT_SECRET_BYTES + 1];
	char placeholder[LIMIT_SECRET_BYTES + 1];
	bool in_query; /* it may be put into the query of a URL as well */
	/* Of a token that a server gave out: 1 + the index of the secret that it is counted as. */
	unsigned int counted_as;
	unsigned int endpoint_host;                      /* where tokens are given out for it */
	char endpoint_path[LIMIT_SECRET_PATH_BYTES + 1]; /* there; "": nowhere */
	unsigned int host_count;
	struct secret_host hosts[LIMIT_SECRET_HOSTS];
};

struct secret_set {
	unsigned int count;
	struct secret secrets[LIMIT_SECRET_ALL]; /* those that the user gave, then tokens */
};

/* What is wrong with @length bytes as a secret, as what follows "its value "; NULL: nothing. */
const char *secret_objection(const char *value, size_t length);

bool secret_is_for(const struct secret *secret, const char *host, uint16_t port);

/* The index of the secret of the user's that the use of this one is counted as: mostly itself. */
unsigned int secret_owner(const struct secret_set *set, unsigned int index);

/* Makes .placeholder from .value: what everybody knows of such secrets stays ("sk-ant-api03-"),
 * and '.' and ':', which part secrets; all else is chance, in digits if the secret is, in hex if it
 * is, or else in letters and digits. 0 or -errno. */
int secret_make_placeholder(struct secret *secret);

/* The placeholders of all of them, as stream_search takes them. */
void secret_list_placeholders(const struct secret_set *set,
			      struct stream_text texts[LIMIT_SECRET_ALL]);

/* Writes them to a file in memory for mvagent-secret. Its descriptor, or -errno. */
int secret_set_write(const struct secret_set *set);

/* Reads such a file and overwrites it. 0 or -errno. */
int secret_set_read(struct secret_set *set, int fd);

/* Forgets all. */
void secret_set_wipe(struct secret_set *set);

#endif
