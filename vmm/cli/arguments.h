/* SPDX-License-Identifier: Apache-2.0 */
/* A command line as it was given: parsing takes ":ro" and the like off its words. */
#ifndef MVAGENT_CLI_ARGUMENTS_H
#define MVAGENT_CLI_ARGUMENTS_H

/* @argc words and a NULL; free them with arguments_free. NULL: no memory. */
char **arguments_copy(int argc, char *const *argv);

/* @arguments may be NULL. */
void arguments_free(char **arguments);

#endif
