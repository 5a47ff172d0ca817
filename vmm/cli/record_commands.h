/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent record`, `mvagent log` and `mvagent runs prune`. Each returns the exit status. */
#ifndef MVAGENT_CLI_RECORD_COMMANDS_H
#define MVAGENT_CLI_RECORD_COMMANDS_H

/* Exit statuses of `mvagent record verify` beside 0 and 125. */
#define EXIT_RECORD_ALTERED 1
#define EXIT_RECORD_CUT     2

int record_command(int argc, char **argv);
int log_command(int argc, char **argv);

/* argv[0] is "prune". */
int runs_prune_command(int argc, char **argv);

#endif
