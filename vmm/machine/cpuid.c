/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/cpuid.h"

#include <asm/kvm_para.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define LEAF1_ECX_VMX          (1U << 5)
#define LEAF1_ECX_TSC_DEADLINE (1U << 24)
#define LEAF1_ECX_HYPERVISOR   (1U << 31)
#define LEAF1_EDX_HTT          (1U << 28)
#define LEAF6_EAX_ARAT         (1U << 2)
#define AMD1_ECX_SVM           (1U << 2)

/* Intel SDM, CPUID leaf 0BH: level types in ECX[15:8]. */
#define TOPOLOGY_LEVEL_THREAD 1U
#define TOPOLOGY_LEVEL_CORE   2U

static struct kvm_cpuid_entry2 *cpuid_find(struct cpuid_table *table, uint32_t function)
{
	for (uint32_t i = 0; i < table->header.nent; i++) {
		if (table->entries[i].function == function)
			return &table->entries[i];
	}
	return NULL;
}

static void cpuid_remove(struct cpuid_table *table, uint32_t function)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < table->header.nent; i++) {
		if (table->entries[i].function != function)
			table->entries[kept++] = table->entries[i];
	}
	table->header.nent = kept;
}

/* Bits needed to number @count things. */
static uint32_t cpuid_width(unsigned int count)
{
	uint32_t width = 0;

	while ((1U << width) < count)
		width++;
	return width;
}

/* Leaves 0BH and 1FH: one thread a core, all cores in one package. */
static int cpuid_set_topology(struct cpuid_table *table, uint32_t function, unsigned int vcpu_id,
			      unsigned int vcpu_count)
{
	const struct kvm_cpuid_entry2 levels[3] = {
		{.function = function,
		 .index = 0,
		 .eax = 0,
		 .ebx = 1,
		 .ecx = TOPOLOGY_LEVEL_THREAD << 8},
		{.function = function,
		 .index = 1,
		 .eax = cpuid_width(vcpu_count),
		 .ebx = vcpu_count,
		 .ecx = (TOPOLOGY_LEVEL_CORE << 8) | 1},
		{.function = function, .index = 2, .ecx = 2},
	};

	if (!cpuid_find(table, function))
		return 0;
	cpuid_remove(table, function);
	if (table->header.nent + 3 > CPUID_MAX_ENTRIES)
		return -ENOSPC;
	for (unsigned int i = 0; i < 3; i++) {
		struct kvm_cpuid_entry2 *entry = &table->entries[table->header.nent++];

		*entry = levels[i];
		entry->flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
		entry->edx = vcpu_id; /* the x2APIC id */
	}
	return 0;
}

static void cpuid_adjust_entry(struct kvm_cpuid_entry2 *entry, unsigned int vcpu_id,
			       unsigned int vcpu_count, bool has_deadline_timer)
{
	switch (entry->function) {
	case 0x1:
		entry->ebx = (entry->ebx & 0xffff) | (vcpu_count << 16) | (vcpu_id << 24);
		/* KVM leaves this one out of the list although it does it (seen on 6.12). */
		if (has_deadline_timer)
			entry->ecx |= LEAF1_ECX_TSC_DEADLINE;
		entry->ecx |= LEAF1_ECX_HYPERVISOR;
		/* A guest that cannot nest is a smaller surface of KVM. */
		entry->ecx &= ~LEAF1_ECX_VMX;
		if (vcpu_count > 1)
			entry->edx |= LEAF1_EDX_HTT;
		break;
	case 0x4: /* cores in the package, less one */
		if (entry->eax & 0x1f)
			entry->eax = (entry->eax & 0x03ffffff) | ((vcpu_count - 1) << 26);
		break;
	case 0x6: /* the APIC timer goes on in deep sleep: KVM's does */
		entry->eax |= LEAF6_EAX_ARAT;
		break;
	case 0xa: /* no performance counters */
		entry->eax = entry->ebx = entry->ecx = entry->edx = 0;
		break;
	case 0x80000001:
		entry->ecx &= ~AMD1_ECX_SVM;
		break;
	case 0x80000008: /* AMD: cores less one, and the width of their numbers */
		entry->ecx = (entry->ecx & ~0xf0ffU) | (vcpu_count - 1) |
			     (cpuid_width(vcpu_count) << 12);
		break;
	case 0x8000001e: /* AMD: extended APIC id, core id, node */
		entry->eax = vcpu_id;
		entry->ebx = vcpu_id & 0xff;
		entry->ecx = 0;
		break;
	default:
		break;
	}
}

int cpuid_adjust(struct cpuid_table *table, unsigned int vcpu_id, unsigned int vcpu_count,
		 bool has_deadline_timer, const char **complaint)
{
	struct kvm_cpuid_entry2 *entry;
	int error;

	for (uint32_t i = 0; i < table->header.nent; i++)
		cpuid_adjust_entry(&table->entries[i], vcpu_id, vcpu_count, has_deadline_timer);
	/* Nested virtualization's own leaf goes with the SVM bit. */
	cpuid_remove(table, 0x8000000a);

	entry = cpuid_find(table, 0x1);
	*complaint = "its KVM has no TSC deadline timer";
	if (!entry || !(entry->ecx & LEAF1_ECX_TSC_DEADLINE) || !cpuid_find(table, 0x6))
		return -EOPNOTSUPP;
	entry = cpuid_find(table, KVM_CPUID_FEATURES);
	*complaint = "its KVM has no kvmclock";
	if (!entry || !(entry->eax & (1U << KVM_FEATURE_CLOCKSOURCE2)))
		return -EOPNOTSUPP;
	*complaint = NULL;
	error = cpuid_set_topology(table, 0xb, vcpu_id, vcpu_count);
	return error ? error : cpuid_set_topology(table, 0x1f, vcpu_id, vcpu_count);
}
