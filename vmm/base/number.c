/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int number_parse(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number)
{
	const uint64_t one = 1;
	int error = number_parse_scaled(text, "", &one, maximum, number);

	return error ? error : *number < minimum ? -ERANGE : 0;
}

int number_parse_scaled(const char *text, const char *suffixes, const uint64_t *factors,
			uint64_t maximum, uint64_t *number)
{
	uint64_t count, factor = factors[0];
	bool wrapped;
	char *end;

	if (!isdigit((unsigned char)*text)) /* strtoull(3) takes spaces and signs */
		return -EINVAL;
	errno = 0;
	count = strtoull(text, &end, 10);
	wrapped = errno == ERANGE;
	if (*end) {
		const char *suffix = strchr(suffixes, *end);

		if (!suffix || end[1])
			return -EINVAL;
		factor = factors[suffix - suffixes];
	}
	if (wrapped || count > maximum / factor)
		return -ERANGE;
	*number = count * factor;
	return 0;
}
