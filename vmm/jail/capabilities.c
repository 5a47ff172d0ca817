/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/capabilities.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct capability_sets {
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int capabilities_get(struct capability_sets *sets)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, sets->data) ? -errno : 0;
}

static int capabilities_set(const struct capability_sets *sets)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capset, &header, sets->data) ? -errno : 0;
}

bool capabilities_have(unsigned int capability)
{
	struct capability_sets sets;

	return !capabilities_get(&sets) &&
	       sets.data[capability / 32].effective & 1U << capability % 32;
}

/* Needs CAP_SETPCAP; without it there is no execution that could gain anything: no_new_privs. */
static void capabilities_empty_bounding_set(void)
{
	for (unsigned long capability = 0; capability <= CAP_LAST_CAP; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

int capabilities_keep_only(uint64_t kept)
{
	struct capability_sets sets;
	int error = capabilities_get(&sets);

	if (error)
		return error;
	capabilities_empty_bounding_set();
	for (unsigned int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		sets.data[i].permitted &= (uint32_t)(kept >> 32 * i);
		sets.data[i].effective &= sets.data[i].permitted;
		sets.data[i].inheritable = 0; /* the ambient set follows it */
	}
	return capabilities_set(&sets);
}

int capabilities_keep_over_exec(uint64_t kept)
{
	struct capability_sets sets;
	int error = capabilities_get(&sets);

	if (error)
		return error;
	for (unsigned int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets.data[i].inheritable |= (uint32_t)(kept >> 32 * i);
	error = capabilities_set(&sets);
	for (unsigned long capability = 0; !error && capability <= CAP_LAST_CAP; capability++) {
		if (kept & CAPABILITY_BIT(capability) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))
			error = -errno;
	}
	return error;
}
