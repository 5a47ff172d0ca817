/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: decimal digits, and nothing that strtoull(3) would overlook. */
#ifndef MVAGENT_BASE_NUMBER_H
#define MVAGENT_BASE_NUMBER_H

#include <stdint.h>

/* The whole of @text as a number within [@minimum, @maximum]. 0, -EINVAL (it is no
 * number) or -ERANGE. */
int number_parse(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number);

/* What a letter behind a number makes of it. */
struct number_unit {
	char letter;
	uint64_t factor;
};

/* A number that may end in the letter of one of @units, the last of which has none; without a
 * letter the first of them counts. 0, -EINVAL, or -ERANGE when the product is above @maximum. */
int number_parse_scaled(const char *text, const struct number_unit *units, uint64_t maximum,
			uint64_t *number);

/* A size in MiB, or with suffix M or G (of either case). As above. */
int number_parse_mib(const char *text, uint64_t maximum, uint64_t *mib);

#endif
