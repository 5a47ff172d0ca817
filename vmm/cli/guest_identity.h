/* SPDX-License-Identifier: Apache-2.0 */
/* Who the command is in the guest, and the environment it gets: built from nothing. */
#ifndef MVAGENT_CLI_GUEST_IDENTITY_H
#define MVAGENT_CLI_GUEST_IDENTITY_H

#include <stdint.h>

#include "vmm/cli/run_options.h"
#include "vmm/image/settings.h"

struct guest_identity {
	uint32_t uid; /* of the command, to whom the share's files belong: the agent's, or 0 */
	uint32_t gid;
	char user[33];
	char home[SETTINGS_PATH_BYTES];
	char host_name[LIMIT_HOST_NAME_BYTES + 1];
	unsigned int variable_count;
	char **variables; /* NAME=VALUE, NULL-terminated, each allocated */
};

/* Fills it from the options, what the image says (@settings; NULL: nothing), and the invoking user.
 * @terminal: whether the command gets a terminal (then TERM is passed on). 0 or -errno with the
 * sentence printed. */
int guest_identity_create(struct guest_identity *identity, const struct run_options *options,
			  const struct image_settings *settings, int terminal);
void guest_identity_destroy(struct guest_identity *identity);

#endif
