/* SPDX-License-Identifier: Apache-2.0 */
/* What a program of the user's prints: clients are asked for their own settings. */
#ifndef MVAGENT_CLI_PROGRAM_OUTPUT_H
#define MVAGENT_CLI_PROGRAM_OUTPUT_H

/* Of what one says about its settings. */
#define PROGRAM_OUTPUT_BYTES (1U << 20)

/* Runs it (found by PATH) in @directory, without input, and returns what it prints, terminated,
 * which is the caller's. NULL with errno set: ENODATA when it says that it failed, else that it
 * cannot be run. */
char *program_output(char *const *arguments, const char *directory);

#endif
