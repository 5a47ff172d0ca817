/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_CLI_DEMO_H
#define MVAGENT_CLI_DEMO_H

#define EXIT_DEMO_THROUGH 1

/* `mvagent demo`: returns the exit status. */
int demo_command(int argc, char **argv);

#endif
