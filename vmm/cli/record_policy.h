/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a run as a value of JSON: all that decides what the guest may reach. */
#ifndef MVAGENT_CLI_RECORD_POLICY_H
#define MVAGENT_CLI_RECORD_POLICY_H

#include <cjson/cJSON.h>

#include "vmm/cli/run_options.h"
#include "vmm/cli/run_shares.h"

/* NULL: no memory. */
cJSON *record_policy(const struct run_options *options, const struct run_shares *shares);

#endif
