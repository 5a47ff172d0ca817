/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual machine as KVM knows it: memory slots, interrupt controllers, event descriptors. */
#ifndef MVAGENT_MACHINE_VM_H
#define MVAGENT_MACHINE_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/machine/cpuid.h"

struct vm {
	int kvm_fd; /* /dev/kvm; the caller's */
	int vm_fd;
	uint32_t slot_count;
	uint32_t run_size;        /* bytes to map of a vCPU descriptor */
	uint32_t postponed_page;  /* page of that mapping with the coalesced writes; 0: none */
	bool has_deadline_timer;  /* KVM_CAP_TSC_DEADLINE_TIMER */
	bool has_readonly_memory; /* KVM_CAP_READONLY_MEM */
	bool has_ioeventfd;
	struct cpuid_table cpuid; /* KVM_GET_SUPPORTED_CPUID */
};

/* Makes a VM with in-kernel interrupt controllers (PIC, IO-APIC, local APICs) and no PIT.
 * Returns 0 or -errno with the sentence printed. */
int vm_create(struct vm *vm, int kvm_fd);
void vm_destroy(struct vm *vm);

/* Maps @size bytes at @host into the guest at @gpa. 0 or -errno. */
int vm_add_memory(struct vm *vm, uint64_t gpa, uint64_t size, void *host, bool read_only);

/* A 32-bit write at @gpa signals @event_fd instead of leaving the guest; only the value *@match if
 * that is given. 0 or -errno. */
int vm_add_ioeventfd(struct vm *vm, uint64_t gpa, const uint32_t *match, int event_fd);

/* A signal on @event_fd is an edge on interrupt @gsi. 0 or -errno. */
int vm_add_irqfd(struct vm *vm, uint32_t gsi, int event_fd);

/* Writes to [gpa, gpa + length) wait in a ring until the next exit (coalesced MMIO). 0 or -errno.
 */
int vm_postpone_writes(struct vm *vm, uint64_t gpa, uint32_t length);

#endif
