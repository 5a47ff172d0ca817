/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `mvagent run` that say how much a machine has: processors, memory, time. */
#ifndef MVAGENT_CLI_RUN_MACHINE_H
#define MVAGENT_CLI_RUN_MACHINE_H

#include "vmm/cli/run_options.h"

/* What they are unless given. */
void run_machine_set_defaults(struct run_options *options);

/* Each: 0, or -EINVAL with the sentence printed. */
int run_machine_set_cpus(struct run_options *options, const char *value);
int run_machine_set_memory(struct run_options *options, const char *value);
int run_machine_set_timeout(struct run_options *options, const char *value);

#endif
