/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent root show`: what the guest's root is made of. */
#ifndef MVAGENT_CLI_ROOT_SHOW_H
#define MVAGENT_CLI_ROOT_SHOW_H

/* argv[0] is "root". The exit status. */
int root_command(int argc, char **argv);

#endif
