/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/log.h"

#define CAPABILITY_BIT(capability) (1U << (capability))

int fs_drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	const uint32_t kept = CAPABILITY_BIT(CAP_DAC_OVERRIDE) | CAPABILITY_BIT(CAP_FOWNER);

	if (syscall(SYS_capget, &header, data))
		return log_errno(-errno, "cannot read this process's capabilities");
	for (unsigned int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].effective &= i == 0 ? kept : 0;
		data[i].permitted &= i == 0 ? kept : 0;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data))
		return log_errno(-errno, "cannot drop capabilities");
	return 0;
}
