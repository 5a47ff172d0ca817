/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent selftest` prints: a line an attack and the sum, or one object of JSON. */
#ifndef MVAGENT_CLI_SELFTEST_REPORT_H
#define MVAGENT_CLI_SELFTEST_REPORT_H

#include <cjson/cJSON.h>

#include "vmm/cli/selftest_machine.h"

struct selftest_output {
	cJSON *json;    /* NULL: text */
	cJSON *attacks; /* in it */
	unsigned int held, failed;
	uint64_t tries, checks;
	double slowest_ms;
};

/* 0 or -ENOMEM. */
int selftest_output_begin(struct selftest_output *output, bool json);

void selftest_output_add(struct selftest_output *output, const struct selftest_attack *attack,
			 uint64_t seed, const char *variant, const struct selftest_result *result);

/* Prints the sum. */
void selftest_output_end(struct selftest_output *output, uint64_t seed, double seconds);

#endif
