/* SPDX-License-Identifier: Apache-2.0 */
/* --git-identity: the name and the address that the user's git puts into commits, for the guest's
 * git. Nothing else of its configuration. */
#ifndef MVAGENT_CLI_GIT_IDENTITY_H
#define MVAGENT_CLI_GIT_IDENTITY_H

#include <stddef.h>

/* Of the two together; each value has 256 bytes at most, and each byte may need another. */
#define GIT_IDENTITY_BYTES 1280

/* Asks the user's git for user.name and user.email, as it would find them in @directory (an
 * includeIf may make a difference), but in the user's own configuration and the system's alone:
 * what a repository says is in the repository. Writes them as a git-config(1) file. 0 or -errno
 * with the sentence printed. */
int git_identity_read(const char *directory, char text[GIT_IDENTITY_BYTES]);

/* Writes such a file. 0, or -EINVAL when a value is empty, too long or of more than one line. */
int git_identity_write(const char *name, const char *email, char text[GIT_IDENTITY_BYTES]);

#endif
