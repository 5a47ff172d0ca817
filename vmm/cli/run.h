/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_CLI_RUN_H
#define MVAGENT_CLI_RUN_H

/* `mvagent run`: returns the exit status. */
int run_command(int argc, char **argv);

#endif
