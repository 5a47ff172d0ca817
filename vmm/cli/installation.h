/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of this installation are: found from the place of the running executable, so that
 * a build directory and an installed prefix work alike. */
#ifndef MVAGENT_CLI_INSTALLATION_H
#define MVAGENT_CLI_INSTALLATION_H

#include <limits.h>

struct installation {
	char prefix[PATH_MAX]; /* .../bin/mvagent without its last two parts */
};

/* 0 or -errno with the sentence printed. */
int installation_find(struct installation *installation);

/* The path of libexec/mvagent/@name or share/mvagent/@name. 0 or -ENAMETOOLONG. */
int installation_program(const struct installation *installation, const char *name,
			 char path[PATH_MAX]);
int installation_file(const struct installation *installation, const char *name,
		      char path[PATH_MAX]);

#endif
