/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent diff`, `apply`, `discard` and `runs`: what became of a share that was given as
 * DIR:review.
 */
#ifndef MVAGENT_CLI_REVIEW_COMMANDS_H
#define MVAGENT_CLI_REVIEW_COMMANDS_H

/* Exit statuses of `mvagent apply`, beside 0 and EXIT_MVAGENT (docs/mvagent.1). */
#define EXIT_APPLY_REFUSED 1 /* something cannot be applied, and nothing was */
#define EXIT_APPLY_PARTIAL 2 /* it failed when something had been applied */

int diff_command(int argc, char **argv);
int apply_command(int argc, char **argv);
int discard_command(int argc, char **argv);
int runs_command(int argc, char **argv);

#endif
