/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/selftest_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vmm/cli/report.h"

int selftest_output_begin(struct selftest_output *output, bool json)
{
	*output = (struct selftest_output){0};
	if (!json)
		return 0;
	output->json = cJSON_CreateObject();
	output->attacks = cJSON_AddArrayToObject(output->json, "attacks");
	return output->attacks ? 0 : -ENOMEM;
}

static void print_line(const struct selftest_attack *attack, const char *variant,
		       const struct selftest_result *result)
{
	printf("%-4s %s%s: tried %s (%llu tries); ", result->held ? "ok" : "NO", attack->name,
	       variant, attack->tried, (unsigned long long)result->report.tries);
	if (!result->held)
		printf("got through: %s\n", result->why);
	else if (result->report.checks)
		printf("held: %s (%llu answers checked)\n", attack->held,
		       (unsigned long long)result->report.checks);
	else
		printf("held: %s\n", attack->held);
	fflush(stdout);
}

static void add_object(cJSON *attacks, const struct selftest_attack *attack, uint64_t seed,
		       const char *variant, const struct selftest_result *result)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "name", attack->name);
	cJSON_AddStringToObject(object, "variant", variant + (variant[0] != '\0'));
	cJSON_AddNumberToObject(object, "seed", (double)seed);
	cJSON_AddStringToObject(object, "tried", attack->tried);
	cJSON_AddStringToObject(object, "held", attack->held);
	cJSON_AddBoolToObject(object, "good", result->held);
	cJSON_AddStringToObject(object, "why", result->why);
	cJSON_AddNumberToObject(object, "tries", (double)result->report.tries);
	cJSON_AddNumberToObject(object, "checks", (double)result->report.checks);
	cJSON_AddNumberToObject(object, "ports_guest", (double)result->report.ports);
	cJSON_AddNumberToObject(object, "ports_host", (double)result->counters.port_io);
	cJSON_AddNumberToObject(object, "exits", (double)result->counters.exits);
	cJSON_AddStringToObject(object, "end",
				report_reason_name((enum monitor_reason)result->reason));
	cJSON_AddStringToObject(object, "sentence", result->sentence);
	cJSON_AddNumberToObject(object, "seconds", result->seconds);
	cJSON_AddNumberToObject(object, "slowest_answer_ms", result->slowest_ms);
	cJSON_AddItemToArray(attacks, object);
}

void selftest_output_add(struct selftest_output *output, const struct selftest_attack *attack,
			 uint64_t seed, const char *variant, const struct selftest_result *result)
{
	if (result->held)
		output->held++;
	else
		output->failed++;
	output->tries += result->report.tries;
	output->checks += result->report.checks;
	if (result->slowest_ms > output->slowest_ms)
		output->slowest_ms = result->slowest_ms;
	if (output->json)
		add_object(output->attacks, attack, seed, variant, result);
	else
		print_line(attack, variant, result);
}

static void print_json(struct selftest_output *output, uint64_t seed, double seconds)
{
	char *text;

	cJSON_AddNumberToObject(output->json, "seed", (double)seed);
	cJSON_AddNumberToObject(output->json, "held", output->held);
	cJSON_AddNumberToObject(output->json, "failed", output->failed);
	cJSON_AddNumberToObject(output->json, "tries", (double)output->tries);
	cJSON_AddNumberToObject(output->json, "checks", (double)output->checks);
	cJSON_AddNumberToObject(output->json, "slowest_answer_ms", output->slowest_ms);
	cJSON_AddNumberToObject(output->json, "seconds", seconds);
	text = cJSON_Print(output->json);
	if (text)
		puts(text);
	free(text);
	cJSON_Delete(output->json);
	output->json = NULL;
}

void selftest_output_end(struct selftest_output *output, uint64_t seed, double seconds)
{
	if (output->json)
		print_json(output, seed, seconds);
	else
		printf("%u attack%s held, %u got through; %llu tries and %llu checks in %.1f s "
		       "from "
		       "seed %llu; the machine answered within %.0f ms\n",
		       output->held, output->held == 1 ? "" : "s", output->failed,
		       (unsigned long long)output->tries, (unsigned long long)output->checks,
		       seconds, (unsigned long long)seed, output->slowest_ms);
}
