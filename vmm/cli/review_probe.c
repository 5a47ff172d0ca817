/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/review/layout.h"
#include "vmm/review/store.h"

#define PROBE_FILE  "probe"
#define PROBE_XATTR REVIEW_XATTR_OURS "probe"

int review_probe(int directory_fd, const char **lacking)
{
	*lacking = "whiteouts";
	if (mknodat(directory_fd, PROBE_FILE, S_IFCHR, 0))
		return -errno;
	unlinkat(directory_fd, PROBE_FILE, 0);
	*lacking = "user attributes";
	if (fsetxattr(directory_fd, PROBE_XATTR, "y", 1, 0))
		return -errno;
	fremovexattr(directory_fd, PROBE_XATTR);
	return 0;
}

/* Cuts names off the end of an absolute path until there is a directory. */
static void find_existing(char *path)
{
	struct stat status;

	while (path[1] && (stat(path, &status) || !S_ISDIR(status.st_mode))) {
		char *slash = strrchr(path, '/');

		slash[slash == path] = '\0';
	}
}

int review_probe_store(char *directory, const char **lacking)
{
	char scratch[PATH_MAX + 32];
	FD_CLEANUP int fd = -1;
	int error = review_store_path(directory);

	*lacking = "new directories";
	if (error)
		return error;
	find_existing(directory);
	snprintf(scratch, sizeof(scratch), "%s/.mvagent-XXXXXX", directory);
	if (!mkdtemp(scratch))
		return -errno;
	fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = fd < 0 ? -errno : review_probe(fd, lacking);
	rmdir(scratch);
	return error;
}
