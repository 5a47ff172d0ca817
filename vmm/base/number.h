/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: decimal digits, and nothing that strtoull(3) would overlook. */
#ifndef MVAGENT_BASE_NUMBER_H
#define MVAGENT_BASE_NUMBER_H

#include <stdint.h>

/* The whole of @text as a number within [@minimum, @maximum]. 0, -EINVAL (it is no
 * number) or -ERANGE. */
int number_parse(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number);

/* A number that may end in one letter of @suffixes, worth the factor at the letter's place in
 * @factors; without one factors[0] counts. 0, -EINVAL, or -ERANGE when the product is above
 * @maximum. */
int number_parse_scaled(const char *text, const char *suffixes, const uint64_t *factors,
			uint64_t maximum, uint64_t *number);

#endif
