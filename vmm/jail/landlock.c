/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* Rights of later versions than the headers may know; Documentation/userspace-api/landlock.rst. */
#define RIGHT_REFER     (1ULL << 13) /* ABI 2 */
#define RIGHT_TRUNCATE  (1ULL << 14) /* ABI 3 */
#define RIGHT_IOCTL_DEV (1ULL << 15) /* ABI 5 */

#define RIGHTS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* Without EXECUTE, MAKE_CHAR, MAKE_BLOCK and IOCTL_DEV: nothing here may ever do these. */
#define RIGHTS_WRITE                                                                \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |            \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |             \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |               \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | RIGHT_REFER | \
	 RIGHT_TRUNCATE)
#define RIGHTS_NEVER                                                 \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | RIGHT_IOCTL_DEV)

/* The rights that a version of Landlock knows. */
static uint64_t landlock_known_rights(int version)
{
	uint64_t rights = RIGHTS_READ | RIGHTS_WRITE | RIGHTS_NEVER;

	if (version < 2)
		rights &= ~RIGHT_REFER;
	if (version < 3)
		rights &= ~RIGHT_TRUNCATE;
	if (version < 5)
		rights &= ~RIGHT_IOCTL_DEV;
	return rights;
}

static uint64_t landlock_rights_of(const struct landlock_directory *directory)
{
	uint64_t rights = RIGHTS_READ;

	if (directory->writable)
		rights |= RIGHTS_WRITE;
	if (directory->whiteouts)
		rights |= LANDLOCK_ACCESS_FS_MAKE_CHAR;
	return rights;
}

int landlock_confine(const struct landlock_directory *directories, unsigned int count)
{
	struct landlock_ruleset_attr attributes = {0};
	FD_CLEANUP int ruleset = -1;
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	/* Version 1 cannot let a file move from one directory to another. */
	if (version < 2)
		return -EOPNOTSUPP;
	attributes.handled_access_fs = landlock_known_rights((int)version);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes,
			       sizeof(attributes.handled_access_fs), 0);
	if (ruleset < 0)
		return -errno;
	for (unsigned int i = 0; i < count; i++) {
		struct landlock_path_beneath_attr rule = {
			.allowed_access =
				landlock_rights_of(&directories[i]) & attributes.handled_access_fs,
			.parent_fd = directories[i].fd,
		};

		if (directories[i].fd >= 0 &&
		    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
			return -errno;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) ? -errno : 0;
}
