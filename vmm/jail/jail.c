/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/jail.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/landlock.h"
#include "vmm/jail/mounts.h"

#define NOBODY 65534 /* the overflow user and group, who own nothing */

static int jail_limit_process(void)
{
	const struct rlimit none = {0, 0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none))
		return log_errno(-errno, "cannot give up privileges");
#ifndef __SANITIZE_ADDRESS__ /* LeakSanitizer traces its process at the end */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return log_errno(-errno, "cannot forbid core files");
#endif
	return 0;
}

static int jail_check_walls(const struct jail *jail, int mounts, int landlock)
{
	if (!mounts && !landlock)
		return 0;
	if (!mounts || !landlock) {
		void (*tell)(const char *, ...) = jail->allow_degraded ? log_warning : log_info;

		tell("this host allows no %s to this process; %s alone keeps it in",
		     mounts ? "mount namespace" : "Landlock",
		     mounts ? "Landlock" : "the mount namespace");
		return 0;
	}
	if (jail->allow_degraded) {
		log_warning("nothing but its own care keeps this process from the host's files: "
			    "neither namespaces nor Landlock can be had here");
		return 0;
	}
	log_error("this host allows neither user namespaces nor Landlock, and so nothing would "
		  "keep this process from the host's files; allow one of them, or accept that "
		  "with --allow-degraded");
	return -EPERM;
}

/* Who changes no files of root's has no business with them: the rest of its life it is nobody, who
 * owns none, or who owns those that it changes. (In a user namespace there is no such number; root
 * is no root there.) */
static int jail_leave_root(const struct jail *jail)
{
	const uint64_t needed = CAPABILITY_BIT(CAP_SETUID) | CAPABILITY_BIT(CAP_SETGID);
	const uid_t user = jail->keep_user ? jail->owner : NOBODY;
	const gid_t group = jail->keep_user ? jail->owner_group : NOBODY;
	int error, death = 0;

#ifdef __SANITIZE_ADDRESS__ /* LeakSanitizer cannot trace what has changed its user */
	return 0;
#endif
	if (geteuid() != 0 || !user)
		return 0;
	error = capabilities_keep_only(needed | jail->capabilities);
	if (error)
		return error;
	if (prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0))
		return -errno;
	if (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user))
		return errno == EINVAL || errno == EPERM ? 0 : -errno;
	/* The change of user has taken back what process_start has set. */
	return prctl(PR_SET_PDEATHSIG, death, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
		       ? -errno
		       : 0;
}

/* The places, or the directories. */
static int jail_confine_files(const struct jail *jail)
{
	return jail->places
		       ? landlock_confine_to_places(jail->places, jail->place_count)
		       : landlock_confine(jail->directories, jail->directory_count, jail->network);
}

int jail_enter(const struct jail *jail)
{
	int mounts, landlock, error = jail_limit_process();
	bool proc = jail->proc;

	if (error)
		return error;
#ifdef __SANITIZE_ADDRESS__
	proc = true;
#endif
	mounts = mounts_enter(jail->directories, jail->directory_count, proc);
	if (mounts && mounts != -EOPNOTSUPP)
		return mounts;
	error = jail_leave_root(jail);
	error = error ? error : capabilities_keep_only(jail->capabilities);
	if (error)
		return log_errno(error, "cannot give up root's powers");
	landlock = jail_confine_files(jail);
	if (landlock && landlock != -EOPNOTSUPP)
		return log_errno(landlock, "cannot confine this process by Landlock");
	if (jail->walls)
		*jail->walls =
			(uint8_t)((mounts ? 0 : JAIL_MOUNTS) | (landlock ? 0 : JAIL_LANDLOCK));
	return jail_check_walls(jail, mounts, landlock);
}

/* What became of a filter, told. */
static int jail_check_filter(int error, bool allow_degraded)
{
	if (!error)
		return 0;
	if (allow_degraded) {
		log_warning("the system calls of this process are not restricted: %s",
			    strerror(-error));
		return 0;
	}
	return log_errno(error, "cannot restrict the system calls of this process (seccomp; "
				"--allow-degraded goes on without)");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* with calls of their own */
int jail_seal(const struct filter_rule *role, bool allow_degraded)
{
	(void)role;
	(void)allow_degraded;
	return 0;
}
#else
int jail_seal(const struct filter_rule *role, bool allow_degraded)
{
	return jail_check_filter(filter_enter(role), allow_degraded);
}
#endif

int jail_deny_network(bool allow_degraded)
{
	return jail_check_filter(filter_deny_network(), allow_degraded);
}
