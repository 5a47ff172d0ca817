/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a policy that directories have, each kept once. */
#ifndef MVAGENT_FS_POLICY_STATE_H
#define MVAGENT_FS_POLICY_STATE_H

#include "vmm/fs/policy.h"

struct policy_kept {
	struct policy_kept *next; /* in the bucket */
	struct policy_state state;
};

struct policy_states {
	struct policy_kept *buckets[1024];
	uint32_t count;
};

void policy_states_destroy(struct policy_states *states);
const struct policy_state *policy_states_keep(struct policy_states *states,
					      const struct policy_state *state);

#endif
