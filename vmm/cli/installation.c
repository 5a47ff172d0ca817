/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/installation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/log.h"

int installation_find(struct installation *installation)
{
	ssize_t length =
		readlink("/proc/self/exe", installation->prefix, sizeof(installation->prefix) - 1);

	if (length < 0)
		return log_errno(-errno,
				 "cannot find where mvagent is installed (is /proc mounted?)");
	installation->prefix[length] = '\0';
	for (int part = 0; part < 2; part++) {
		char *slash = strrchr(installation->prefix, '/');

		if (!slash) {
			log_error("mvagent is not installed in a bin directory; it needs its parts "
				  "in ../libexec/mvagent and ../share/mvagent");
			return -ENOENT;
		}
		*slash = '\0';
	}
	return 0;
}

static int installation_path(const struct installation *installation, const char *directory,
			     const char *name, char path[PATH_MAX])
{
	int length =
		snprintf(path, PATH_MAX, "%s/%s/mvagent/%s", installation->prefix, directory, name);

	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int installation_program(const struct installation *installation, const char *name,
			 char path[PATH_MAX])
{
	return installation_path(installation, "libexec", name, path);
}

int installation_file(const struct installation *installation, const char *name,
		      char path[PATH_MAX])
{
	return installation_path(installation, "share", name, path);
}
