/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/kvm_access.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS_LOOKED_AT 1024

void kvm_access_explain(const struct kvm_access *access, char *text, size_t size)
{
	const char *name = access->group_name;

	if (access->privileged || (access->in_group && access->mode & S_IWGRP))
		snprintf(text, size,
			 "you may not open /dev/kvm, though its permissions would let you: in a "
			 "container, start that with --device /dev/kvm");
	else if (!(access->mode & S_IRGRP) || !(access->mode & S_IWGRP))
		snprintf(text, size,
			 "you may not open /dev/kvm, and neither may its group (its mode is %04o): "
			 "have root run 'chgrp kvm /dev/kvm; chmod 660 /dev/kvm', which udev "
			 "usually does",
			 access->mode & 07777U);
	else if (!name || access->group == 0)
		snprintf(text, size,
			 "you may not open /dev/kvm, which only the group %u (%s) may: in a "
			 "container, start that with --group-add %u; elsewhere have root give the "
			 "device a group of its own ('chgrp kvm /dev/kvm') and join that",
			 access->group, name ? name : "it has no name here", access->group);
	else if (access->enrolled)
		snprintf(text, size,
			 "you may not open /dev/kvm yet: you are in its group '%s', but this "
			 "session is older than that; log in again",
			 name);
	else
		snprintf(text, size,
			 "you may not open /dev/kvm: add yourself to its group ('sudo usermod -aG "
			 "%s $USER', then log in again)",
			 name);
}

static bool process_has_group(gid_t group)
{
	gid_t groups[GROUPS_LOOKED_AT];
	int count = getgroups(GROUPS_LOOKED_AT, groups);

	for (int i = 0; i < count; i++) {
		if (groups[i] == group)
			return true;
	}
	return getegid() == group;
}

static bool user_has_group(gid_t group)
{
	const struct passwd *user = getpwuid(geteuid());
	gid_t groups[GROUPS_LOOKED_AT];
	int count = GROUPS_LOOKED_AT;

	if (!user || getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0)
		return false;
	for (int i = 0; i < count; i++) {
		if (groups[i] == group)
			return true;
	}
	return false;
}

void kvm_access_explain_device(char *text, size_t size)
{
	struct kvm_access access = {.privileged = geteuid() == 0};
	const struct group *group;
	struct stat status;

	if (stat("/dev/kvm", &status) == 0) {
		group = getgrgid(status.st_gid);
		access.mode = status.st_mode;
		access.group = status.st_gid;
		access.group_name = group ? group->gr_name : NULL;
		access.in_group = process_has_group(status.st_gid);
		access.enrolled = user_has_group(status.st_gid);
	}
	kvm_access_explain(&access, text, size);
}
