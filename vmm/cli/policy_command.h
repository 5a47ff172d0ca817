/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent policy check`: what a run with the same options would let through. */
#ifndef MVAGENT_CLI_POLICY_COMMAND_H
#define MVAGENT_CLI_POLICY_COMMAND_H

/* argv[0] is "policy". Returns the exit status: 0 allowed, 1 not, EXIT_MVAGENT. */
int policy_command(int argc, char **argv);

#endif
