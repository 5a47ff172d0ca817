/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that the user's own package managers and git are set up for: --allow-from. */
#ifndef MVAGENT_CLI_ALLOW_FROM_H
#define MVAGENT_CLI_ALLOW_FROM_H

#include "vmm/relay/policy.h"

enum allow_client {
	ALLOW_FROM_NPM,
	ALLOW_FROM_PIP,
	ALLOW_FROM_APT,
	ALLOW_FROM_CARGO,
	ALLOW_FROM_GIT,
	ALLOW_CLIENTS,
};

/* The client of that name, or -EINVAL with the sentence printed. */
int allow_from_parse(const char *name);

/* Asks the client, adds rules for the hosts and prints these. Not in a shared directory, whose
 * files could name any host, but for git: it is asked for the remotes of @directories. 0 or -errno
 * with the sentence printed. */
int allow_from_add(struct route_policy *policy, enum allow_client client,
		   const char *const *directories, unsigned int count);

/* The host and port that a URL leads to, or git's HOST:PATH, as HOST:PORT. 0 or -EINVAL. */
int allow_from_read_url(const char *url, size_t length, char place[NAME_BYTES + 8]);

#endif
