/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities(7) of this process: what it may do beside what its user may. */
#ifndef MVAGENT_JAIL_CAPABILITIES_H
#define MVAGENT_JAIL_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#define CAPABILITY_BIT(capability) (1ULL << (capability))

/*
 * What the file server may keep. Started by root, it may pass by file modes and owners, as root's
 * own commands may. All else that root can do it gives up: device nodes, trusted and security
 * attributes, immutable files; and without CAP_FSETID the kernel takes set-id bits off a file that
 * the guest writes to, as INIT promised (HANDLE_KILLPRIV_V2).
 */
#define CAPABILITIES_FILE_SERVER (CAPABILITY_BIT(CAP_DAC_OVERRIDE) | CAPABILITY_BIT(CAP_FOWNER))

bool capabilities_have(unsigned int capability);

/* Gives up all but @kept (CAPABILITY_BIT), for good, and for what it might execute as well: the
 * inheritable, ambient and bounding sets too. What this process does not have is not had
 * afterwards either. 0 or -errno. */
int capabilities_keep_only(uint64_t kept);

/* Lets @kept (CAPABILITY_BIT), which this process has, live through execve. 0 or -errno. */
int capabilities_keep_over_exec(uint64_t kept);

#endif
