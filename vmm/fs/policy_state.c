/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/policy_state.h"

#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

void policy_states_destroy(struct policy_states *states)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(states->buckets); i++) {
		while (states->buckets[i]) {
			struct policy_kept *kept = states->buckets[i];

			states->buckets[i] = kept->next;
			free(kept);
		}
	}
}

static bool state_equals(const struct policy_state *a, const struct policy_state *b)
{
	return memcmp(a->matched, b->matched, sizeof(a->matched)) == 0 &&
	       a->path_node == b->path_node && a->root == b->root &&
	       a->protected_below == b->protected_below &&
	       a->unprotected_below == b->unprotected_below &&
	       a->packages_below == b->packages_below && a->shown_below == b->shown_below &&
	       a->rule == b->rule;
}

static uint32_t state_bucket(const struct policy_state *state)
{
	uint64_t hash = (uint64_t)state->path_node << 16 | state->rule;

	for (unsigned int i = 0; i < POLICY_STATE_WORDS; i++)
		hash = (hash ^ state->matched[i]) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(hash >> 54);
}

const struct policy_state *policy_states_keep(struct policy_states *states,
					      const struct policy_state *state)
{
	struct policy_kept **bucket = &states->buckets[state_bucket(state)];
	struct policy_kept *kept;

	for (kept = *bucket; kept; kept = kept->next)
		if (state_equals(&kept->state, state))
			return &kept->state;
	kept = states->count < LIMIT_POLICY_STATES ? malloc(sizeof(*kept)) : NULL;
	if (!kept)
		return NULL;
	*kept = (struct policy_kept){.next = *bucket, .state = *state};
	*bucket = kept;
	states->count++;
	return &kept->state;
}
