/* SPDX-License-Identifier: Apache-2.0 */
/* The user's data directory. */
#ifndef MVAGENT_CLI_DATA_DIRECTORY_H
#define MVAGENT_CLI_DATA_DIRECTORY_H

#include <stdbool.h>

/* Opens the directory mvagent/NAME of $XDG_DATA_HOME or ~/.local/share, which is the user's own and
 * closed to all others. @make: if it is not there it is made. Descriptor, -ENOENT without a
 * sentence, or -errno with the sentence printed. */
int data_directory_open(const char *name, bool make);

#endif
