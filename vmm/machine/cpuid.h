/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's CPUID instruction answers: what KVM supports, corrected for this machine. */
#ifndef MVAGENT_MACHINE_CPUID_H
#define MVAGENT_MACHINE_CPUID_H

#include <linux/kvm.h>
#include <stdbool.h>

#define CPUID_MAX_ENTRIES 128U

struct cpuid_table {
	struct kvm_cpuid2 header;
	struct kvm_cpuid_entry2 entries[CPUID_MAX_ENTRIES];
};

/* Makes a table (from KVM_GET_SUPPORTED_CPUID) fit processor @vcpu_id of @vcpu_count. Pure.
 * @has_deadline_timer: KVM_CAP_TSC_DEADLINE_TIMER.
 * Returns 0, -ENOSPC when topology leaves do not fit, or -EOPNOTSUPP when the kernel could not boot
 * by device tree: no kvmclock or no TSC deadline timer, *@complaint says which. */
int cpuid_adjust(struct cpuid_table *table, unsigned int vcpu_id, unsigned int vcpu_count,
		 bool has_deadline_timer, const char **complaint);

#endif
