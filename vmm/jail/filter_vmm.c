/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <linux/kvm.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>

#define REQUEST 0xffffffffULL /* of ioctl and prctl: the kernel looks at 32 bits */

const struct filter_rule filter_vmm[] = {
	/* The threads of the vCPUs, and no process. */
	FILTER_CALL_IF(clone, 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM),
	FILTER_CALL_IF(prctl, 0, REQUEST, PR_SET_NAME), /* their names */
	FILTER_CALL(sched_getaffinity),                 /* their stacks, in some C libraries */

	/* KVM: run; queues that the guest sets up; the place of a crash. */
	FILTER_CALL_IF(ioctl, 1, REQUEST, KVM_RUN),
	FILTER_CALL_IF(ioctl, 1, REQUEST, KVM_IOEVENTFD),
	FILTER_CALL_IF(ioctl, 1, REQUEST, KVM_IRQFD),
	FILTER_CALL_IF(ioctl, 1, REQUEST, KVM_GET_REGS),

	FILTER_CALL(eventfd2),  /* a queue's kick */
	FILTER_CALL(fallocate), /* memory that the guest's balloon gives back */
	FILTER_CALL(shutdown),  /* one direction of a vsock stream */
	FILTER_END,
};
