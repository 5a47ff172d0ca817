/* SPDX-License-Identifier: Apache-2.0 */
/* Why /dev/kvm may not be opened, and what to do about it. */
#ifndef MVAGENT_CLI_KVM_ACCESS_H
#define MVAGENT_CLI_KVM_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The device, and how this process stands to it. */
struct kvm_access {
	mode_t mode;
	gid_t group;
	const char *group_name; /* NULL: it has none here */
	bool privileged;        /* root: no mode keeps it out */
	bool in_group;          /* of this process */
	bool enrolled;          /* the user database has the user in the group */
};

/* The sentence for it. */
void kvm_access_explain(const struct kvm_access *access, char *text, size_t size);

/* The same for /dev/kvm as it is. */
void kvm_access_explain_device(char *text, size_t size);

#endif
