/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent image`: import, build, list, show, remove. */
#ifndef MVAGENT_CLI_IMAGE_COMMANDS_H
#define MVAGENT_CLI_IMAGE_COMMANDS_H

/* @argv[0] is "image". Returns the exit status. */
int image_command(int argc, char **argv);

#endif
