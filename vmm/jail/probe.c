/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/probe.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/jail/filter.h"
#include "vmm/jail/mounts.h"
#include "vmm/jail/namespaces.h"

/* What the child says by its exit status. */
#define HAS_MOUNTS (1 << 0)
#define HAS_FILTER (1 << 1)

static int probe_child(void)
{
	int found = mounts_enter(NULL, 0, true) ? 0 : HAS_MOUNTS;

	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !filter_enter(filter_blk))
		found |= HAS_FILTER;
	return found;
}

int jail_probe(struct jail_probe *probe)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	pid_t child = namespaces_fork(&probe->namespaces);
	int status;

	if (child < 0)
		return child;
	if (child == 0)
		_exit(probe_child());
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	probe->mounts = status & HAS_MOUNTS;
	probe->filter = status & HAS_FILTER;
	probe->landlock = version > 0 ? (int)version : 0;
	return 0;
}
