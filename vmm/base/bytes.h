/* SPDX-License-Identifier: Apache-2.0 */
/* Small arithmetic on sizes and addresses, with the overflow question always asked. */
#ifndef MVAGENT_BASE_BYTES_H
#define MVAGENT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The structure that holds @member at @pointer. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Rounds up to a multiple of @alignment, a power of two; the caller knows that it cannot overflow.
 */
static inline uint64_t bytes_align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

/* Whether [start, start + length) lies within [0, limit), asked without overflow. */
static inline bool bytes_range_fits(uint64_t start, uint64_t length, uint64_t limit)
{
	return start <= limit && length <= limit - start;
}

/* Whether two ranges share a byte; neither range may wrap. */
static inline bool bytes_ranges_overlap(uint64_t start_a, uint64_t length_a, uint64_t start_b,
					uint64_t length_b)
{
	return start_a < start_b + length_b && start_b < start_a + length_a;
}

static inline uint64_t bytes_minimum(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
