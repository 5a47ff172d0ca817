/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

int number_parse(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number)
{
	const struct number_unit one = {'\0', 1};
	int error = number_parse_scaled(text, &one, maximum, number);

	return error ? error : *number < minimum ? -ERANGE : 0;
}

int number_parse_scaled(const char *text, const struct number_unit *units, uint64_t maximum,
			uint64_t *number)
{
	uint64_t count, factor = units->factor;
	bool wrapped;
	char *end;

	if (!isdigit((unsigned char)*text)) /* strtoull(3) takes spaces and signs */
		return -EINVAL;
	errno = 0;
	count = strtoull(text, &end, 10);
	wrapped = errno == ERANGE;
	if (*end) {
		while (units->letter && units->letter != *end)
			units++;
		if (!units->letter || end[1])
			return -EINVAL;
		factor = units->factor;
	}
	if (wrapped || count > maximum / factor)
		return -ERANGE;
	*number = count * factor;
	return 0;
}

int number_parse_mib(const char *text, uint64_t maximum, uint64_t *mib)
{
	static const struct number_unit units[] = {
		{'M', 1}, {'m', 1}, {'G', 1024}, {'g', 1024}, {0},
	};

	return number_parse_scaled(text, units, maximum, mib);
}
