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

/*
 * How long others may take. Only time counts in which this process could see them take it: not that
 * in which it was stopped, or its host stood still, as a laptop or a virtual machine does that is
 * suspended, while the clock goes on. So the time is spent in slices, of which one that took long
 * counts no more than PATIENCE_LATE_MS.
 */
struct patience {
	uint64_t left_ns;
	uint64_t seen_ns; /* the moment up to which time was taken off */
};

#define PATIENCE_SLICE_MS 500
#define PATIENCE_LATE_MS  1000

static inline struct patience patience_begin(uint64_t milliseconds)
{
	return (struct patience){.left_ns = milliseconds * CLOCK_NS_PER_MS,
				 .seen_ns = clock_monotonic_ns()};
}

/* Takes off what has gone by since the last call. What is left, in milliseconds, but no more than a
 * slice: so long is the next wait. 0: it is over. */
static inline int patience_slice_ms(struct patience *patience)
{
	const uint64_t now = clock_monotonic_ns();
	uint64_t gone = now - patience->seen_ns;

	patience->seen_ns = now;
	if (gone > (uint64_t)PATIENCE_LATE_MS * CLOCK_NS_PER_MS)
		gone = (uint64_t)PATIENCE_LATE_MS * CLOCK_NS_PER_MS;
	patience->left_ns -= gone < patience->left_ns ? gone : patience->left_ns;
	if (patience->left_ns > (uint64_t)PATIENCE_SLICE_MS * CLOCK_NS_PER_MS)
		return PATIENCE_SLICE_MS;
	return (int)((patience->left_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
}

#endif
