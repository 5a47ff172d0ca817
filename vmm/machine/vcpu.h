/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual processor and the thread that runs it. */
#ifndef MVAGENT_MACHINE_VCPU_H
#define MVAGENT_MACHINE_VCPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/machine/bus.h"
#include "vmm/machine/vm.h"

struct kvm_run;

struct vcpu {
	int fd;
	unsigned int id;
	struct kvm_run *run; /* shared with KVM */
	uint32_t run_size;
	struct bus *bus;
	struct ending *ending;
	pthread_t thread;
	bool started;
};

/* Makes processor @id of @count, with CPUID and MSRs set; only processor 0 gets registers, by
 * vcpu_set_entry, the others wait for INIT and SIPI. 0 or -errno with the sentence printed. */
int vcpu_create(struct vcpu *vcpu, struct vm *vm, unsigned int id, unsigned int count,
		struct bus *bus, struct ending *ending);
int vcpu_set_entry(struct vcpu *vcpu, uint64_t entry);

/* The ring of postponed writes in this processor's mapping, with its capacity; NULL when KVM has
 * none. */
struct kvm_coalesced_mmio_ring *vcpu_postponed_ring(const struct vcpu *vcpu, const struct vm *vm,
						    unsigned int *capacity);

/* Starts the thread. 0 or -errno. */
int vcpu_start(struct vcpu *vcpu);

/* Asks the thread to leave the guest and end; vcpu_destroy waits for it. */
void vcpu_stop(struct vcpu *vcpu);
void vcpu_destroy(struct vcpu *vcpu);

/* Installs the handler of the signal that kicks a vCPU out of KVM_RUN. Once, before any thread. */
void vcpu_install_kick_signal(void);

#endif
