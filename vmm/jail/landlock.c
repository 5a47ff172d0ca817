/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
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

#define RIGHT_BIND    1ULL /* ABI 4 */
#define RIGHT_CONNECT 2ULL
#define SCOPES        3ULL /* ABI 6: abstract sockets and signals */

/* struct landlock_ruleset_attr as of ABI 6, longer than the headers may know. */
struct landlock_attributes {
	uint64_t files, tcp, scopes;
};

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

static uint64_t landlock_rights_of(const struct jail_directory *directory)
{
	uint64_t rights = RIGHTS_READ;

	if (directory->writable)
		rights |= RIGHTS_WRITE;
	if (directory->whiteouts)
		rights |= LANDLOCK_ACCESS_FS_MAKE_CHAR;
	return rights;
}

static uint64_t landlock_rights_in_place(int fd)
{
	struct stat status;

	/* Rights that are about directories are refused for a file. */
	if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode))
		return LANDLOCK_ACCESS_FS_READ_FILE;
	return RIGHTS_READ;
}

/* A set of rules with none in it yet, and the rights that it is about. @moves: files may be moved
 * from one directory to another; @network: connections are made. Descriptor or -errno. */
static int landlock_begin(uint64_t *rights, bool moves, bool network)
{
	struct landlock_attributes attributes = {0};
	int ruleset;
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	/* Version 1 lets no file move from one directory to another. */
	if (version < (moves ? 2 : 1))
		return -EOPNOTSUPP;
	attributes.files = landlock_known_rights((int)version);
	if (version >= 4)
		attributes.tcp = network ? RIGHT_BIND : RIGHT_BIND | RIGHT_CONNECT;
	attributes.scopes = version >= 6 ? SCOPES : 0;
	/* A kernel takes a longer structure when what it does not know is 0. */
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	*rights = attributes.files;
	return ruleset < 0 ? -errno : ruleset;
}

static int landlock_add(int ruleset, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};

	if (fd < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0)
		       ? -errno
		       : 0;
}

static int landlock_enter(int ruleset)
{
#ifdef __SANITIZE_ADDRESS__ /* LeakSanitizer reads there at the end */
	FD_CLEANUP int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	landlock_add(ruleset, proc, RIGHTS_READ);
#endif
	return syscall(SYS_landlock_restrict_self, ruleset, 0) ? -errno : 0;
}

static bool landlock_has_moves(const struct jail_directory *directories, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (directories[i].fd >= 0 && directories[i].writable)
			return true;
	}
	return false;
}

int landlock_confine(const struct jail_directory *directories, unsigned int count, bool network)
{
	uint64_t rights;
	FD_CLEANUP int ruleset =
		landlock_begin(&rights, landlock_has_moves(directories, count), network);
	int error = ruleset < 0 ? ruleset : 0;

	for (unsigned int i = 0; i < count && !error; i++)
		error = landlock_add(ruleset, directories[i].fd,
				     landlock_rights_of(&directories[i]) & rights);
	return error ? error : landlock_enter(ruleset);
}

int landlock_confine_to_places(const int *places, unsigned int count)
{
	uint64_t rights;
	FD_CLEANUP int ruleset = landlock_begin(&rights, false, false);
	int error = ruleset < 0 ? ruleset : 0;

	for (unsigned int i = 0; i < count && !error; i++)
		error = landlock_add(ruleset, places[i], landlock_rights_in_place(places[i]));
	return error ? error : landlock_enter(ruleset);
}
