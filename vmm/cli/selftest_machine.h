/* SPDX-License-Identifier: Apache-2.0 */
/* One machine of `mvagent selftest`: started as a run starts its own, watched to its end. */
#ifndef MVAGENT_CLI_SELFTEST_MACHINE_H
#define MVAGENT_CLI_SELFTEST_MACHINE_H

#include "vmm/cli/installation.h"
#include "vmm/cli/selftest_attacks.h"
#include "vmm/cli/selftest_place.h"
#include "vmm/wire/selftest.h"

struct selftest_setup {
	struct installation installation;
	struct selftest_place place;
	int kvm_fd;
	int guest_fd;
	bool trap;           /* every register access leaves the guest */
	bool no_io_uring;    /* epoll */
	bool allow_degraded; /* without walls that the host forbids */
};

struct selftest_result {
	bool held;
	char why[1024];                /* it did not */
	struct selftest_report report; /* the guest's own count, if its proof is right */
	struct monitor_counters counters;
	unsigned int reason; /* enum monitor_reason; 0: mvagent-vmm did not say */
	char sentence[MONITOR_TEXT_BYTES + 1];
	double seconds;
	double slowest_ms; /* answer of mvagent-vmm to the supervisor's question */
};

/* Runs one attack. 0 with the result, -EINTR when a signal that ends the program is pending, or
 * -errno with the sentence printed: it could not be run. */
int selftest_machine_run(struct selftest_setup *setup, const struct selftest_attack *attack,
			 uint64_t seed, struct selftest_result *result);

#endif
