/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the root file system of the base image, by the installed program for it. */
#ifndef MVAGENT_CLI_IMAGE_BUILD_H
#define MVAGENT_CLI_IMAGE_BUILD_H

/* Runs libexec/mvagent/mvagent-base, which writes a tar archive to @archive_fd (empty, and at its
 * beginning again afterwards), with these packages beside its own. 0, -EINTR (a signal ended it) or
 * -errno; the sentence is printed. */
int image_build_archive(int archive_fd, char *const *packages, unsigned int count);

#endif
