/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this host's /dev/kvm can run the guest, and if not, what the user can do about it. */
#ifndef MVAGENT_CLI_KVM_PROBE_H
#define MVAGENT_CLI_KVM_PROBE_H

#include <stddef.h>

enum kvm_state {
	KVM_STATE_HARDWARE,
	KVM_STATE_ABSENT,    /* no /dev/kvm */
	KVM_STATE_FORBIDDEN, /* no permission to open it */
	KVM_STATE_SOFTWARE,  /* guest kernel code is emulated: no Linux boots in useful time, if at
				all */
	KVM_STATE_BROKEN,    /* it does not work as KVM */
};

struct kvm_probe {
	enum kvm_state state;
	int fd;         /* /dev/kvm when it could be opened, else -1; the caller's */
	double loop_ns; /* time of one round of a two-instruction loop at CPL 0; 0: not measured */
	char sentence[512]; /* what is wrong and what to do; empty when nothing is */
};

/* Opens /dev/kvm and judges it. The timing in a throw-away VM (a few milliseconds) is done when the
 * processor shows neither VMX nor SVM, or when @measure. */
void kvm_probe(struct kvm_probe *probe, int measure);

#endif
