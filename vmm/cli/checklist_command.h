/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_CLI_CHECKLIST_COMMAND_H
#define MVAGENT_CLI_CHECKLIST_COMMAND_H

#define EXIT_REVIEW_OPEN 1

/* `mvagent review`: returns the exit status. */
int checklist_command(int argc, char **argv);

/* `mvagent review verify`: argv[0] is "verify". */
int checklist_verify_command(int argc, char **argv);

#endif
