/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/doctor_jail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/jail/probe.h"

static void doctor_add_layer(struct diagnosis *diagnosis, const char *name, bool good, bool needed,
			     const char *text)
{
	struct check *check = diagnosis_add(diagnosis, name, needed);

	check->good = good;
	snprintf(check->text, sizeof(check->text), "%s", text);
}

static const char *doctor_landlock_text(int version)
{
	if (version >= 6)
		return "files, TCP, signals";
	if (version >= 4)
		return "files, TCP (signals from Linux 6.12 on)";
	if (version >= 2)
		return "files (TCP from Linux 6.7 on, signals from 6.12 on)";
	if (version == 1)
		return "only for the processes that move no files (for all from Linux 5.19 on)";
	return "not in this kernel (Linux 5.19 or newer has it), not among its security modules "
	       "(lsm=), or forbidden by a filter of system calls around mvagent";
}

/* Ubuntu's own setting, from 23.10 on. */
static bool doctor_apparmor_restricts(void)
{
	FD_CLEANUP int fd = open("/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
				 O_RDONLY | O_CLOEXEC);
	char digit;

	return fd >= 0 && read(fd, &digit, 1) == 1 && digit == '1';
}

static const char *doctor_namespaces_text(bool good)
{
	if (good)
		return "processes, network, IPC, host name, control groups of its own for each "
		       "process";
	if (doctor_apparmor_restricts())
		return "AppArmor allows this user none "
		       "(kernel.apparmor_restrict_unprivileged_userns; README.md has a profile "
		       "for it): the processes of a run share the host's process numbers and "
		       "network";
	return "not for this user (user.max_user_namespaces, kernel.unprivileged_userns_clone, "
	       "AppArmor, or a container): the processes of a run share the host's process "
	       "numbers and network";
}

void doctor_check_jail(struct diagnosis *diagnosis)
{
	struct jail_probe probe = {0};
	int error = jail_probe(&probe);
	bool has_landlock = probe.landlock >= 2;

	if (error) {
		doctor_add_layer(diagnosis, "jail", false, true, strerror(-error));
		return;
	}
	doctor_add_layer(diagnosis, "namespaces", probe.namespaces, false,
			 doctor_namespaces_text(probe.namespaces));
	doctor_add_layer(diagnosis, "empty root", probe.mounts, !has_landlock,
			 probe.mounts ? "a mount namespace with the shared directory only"
				      : "needs namespaces; Landlock alone keeps to the shared "
					"directory, but for modes, times and attributes");
	doctor_add_layer(diagnosis, "Landlock", has_landlock, !probe.mounts,
			 doctor_landlock_text(probe.landlock));
	doctor_add_layer(diagnosis, "seccomp", probe.filter, true,
			 probe.filter ? "only the system calls that a process needs"
				      : "this kernel has no filters for system calls, or one that "
					"is around mvagent forbids more");
}
