/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest of `mvagent selftest` can do (tests/hostile), and what must come of it. */
#ifndef MVAGENT_CLI_SELFTEST_ATTACKS_H
#define MVAGENT_CLI_SELFTEST_ATTACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/wire/monitor.h"

#define SELFTEST_REASON(reason) (1U << (reason))

struct selftest_attack {
	const char *name;
	const char *tried;    /* what, for the user */
	const char *held;     /* what was looked at, besides what every attack has to leave alone */
	const char *word;     /* of the guest's report: vmm/wire/selftest.h */
	unsigned int reasons; /* for which the machine may end: SELFTEST_REASON */
	unsigned int cpus;
	uint64_t tries; /* that the guest makes at the least */
	bool random;    /* another seed is another attack */
	bool cold;      /* the disk is to be read slowly: not from the page cache */
	bool stuck;     /* the end of the stream that nobody reads is part of it */
	bool trap;      /* every access leaves the guest: no read-only pages, no ioeventfds */
};

/* All of them; the last has no name. */
extern const struct selftest_attack selftest_attacks[];

/* The one of that name, or NULL. */
const struct selftest_attack *selftest_attack_find(const char *name);

#endif
