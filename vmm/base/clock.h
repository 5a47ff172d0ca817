/* SPDX-License-Identifier: Apache-2.0 */
/* The clock by which deadlines and durations are told: it is never set. */
#ifndef MVAGENT_BASE_CLOCK_H
#define MVAGENT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_MS 1000000U

/* Nanoseconds of CLOCK_MONOTONIC, the same for all processes of the host. */
static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#endif
