/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent selftest`: attacks this installation's own machines. */
#ifndef MVAGENT_CLI_SELFTEST_H
#define MVAGENT_CLI_SELFTEST_H

#define EXIT_SELFTEST_FAILED 1 /* something got through */

/* argv[0] is "selftest". Returns the exit status. */
int selftest_command(int argc, char **argv);

#endif
