/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `mvagent selftest` and its guest (tests/hostile) say to each other.
 *
 * To the guest, as the kernel command line: "SEED NONCE ATTACK", the numbers in decimal. From the
 * guest, on its console, once for each machine: "WORD TRIES CHECKS PORTS PROOF", the numbers as 16
 * hexadecimal digits. It comes last: nothing is tried after it but the guest's own end. "bad: WHY"
 * comes instead as soon as the machine answers as it must not.
 *
 * The proof shows that the numbers are those of the guest that was given this nonce. PORTS is what
 * mvagent-vmm counts as well, whatever is said on the console.
 */
#ifndef MVAGENT_WIRE_SELFTEST_H
#define MVAGENT_WIRE_SELFTEST_H

#include <stdint.h>

#define SELFTEST_DONE    "done"    /* the attack is over and the devices serve */
#define SELFTEST_LAST    "last"    /* the guest's end comes next */
#define SELFTEST_ENDLESS "endless" /* from here on the guest goes on for ever */
#define SELFTEST_BAD     "bad: "

/* What is at the other end of each vsock port. */
#define SELFTEST_SINK_PORT   1024U /* reads everything */
#define SELFTEST_FLOOD_PORT  1025U /* writes without end; two more at the numbers after it */
#define SELFTEST_FLOOD_PORTS 3U
#define SELFTEST_STUCK_PORT  1028U /* neither reads nor writes */
#define SELFTEST_GONE_PORT   1029U /* closed from the start */
#define SELFTEST_ECHO_PORT   1030U /* writes back what it reads, the first of a few */
#define SELFTEST_ECHO_PORTS  4U

/* The disk: this many bytes, of 32-bit words that count up from the first. */
#define SELFTEST_DISK_BYTES 0x100000U
#define SELFTEST_DISK_WORD  0xb1000000U

/* Guest memory, in MiB. */
#define SELFTEST_MEMORY_MIB 64U

struct selftest_report {
	uint64_t tries;  /* things done that no good driver does */
	uint64_t checks; /* answers that were looked at, and were right */
	uint64_t ports;  /* accesses to ports that leave the guest for certain, of the first vCPU */
};

/* One step of a mixer (that of splitmix64). */
static inline uint64_t selftest_mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
	return value ^ value >> 31;
}

static inline uint64_t selftest_proof(uint64_t nonce, const struct selftest_report *report)
{
	uint64_t proof = selftest_mix(nonce + report->tries);

	proof = selftest_mix(proof + report->checks);
	return selftest_mix(proof + report->ports);
}

#endif
