/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent doctor` found, check by check. */
#ifndef MVAGENT_CLI_DIAGNOSIS_H
#define MVAGENT_CLI_DIAGNOSIS_H

#include <stdbool.h>

#define DIAGNOSIS_CHECKS 24U

struct check {
	const char *name;
	bool good;
	bool needed; /* mvagent cannot run without */
	char text[640];
};

struct diagnosis {
	unsigned int count;
	struct check checks[DIAGNOSIS_CHECKS];
};

static inline struct check *diagnosis_add(struct diagnosis *diagnosis, const char *name,
					  bool needed)
{
	struct check *check = &diagnosis->checks[diagnosis->count++];

	check->name = name;
	check->needed = needed;
	return check;
}

#endif
