/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/cgroup_limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"

#define LONGEST_NUMBER 24U

static int read_size(const char *text, uint64_t *mib)
{
	return number_parse_mib(text, LIMIT_CGROUP_MIB, mib);
}

/* 150%. Without the sign it might be meant as processors. */
static int read_percent(const char *text, uint64_t *percent)
{
	static const struct number_unit units[] = {{'%', 1}, {0}};

	if (!*text || text[strlen(text) - 1] != '%')
		return -EINVAL;
	return number_parse_scaled(text, units, LIMIT_CGROUP_PERCENT, percent);
}

static int read_pids(const char *text, uint64_t *pids)
{
	return number_parse(text, LIMIT_CGROUP_PIDS_MIN, UINT32_MAX, pids);
}

/* One "NAME=VALUE" of @length bytes. */
static int parse_one(struct cgroup_limits *limits, const char *text, size_t length)
{
	const struct {
		const char *name;
		uint64_t *limit;
		int (*read)(const char *text, uint64_t *number);
		const char *form;
	} known[] = {
		{"memory=", &limits->memory_mib, read_size, "a size in MiB, or with suffix M or G"},
		{"pids=", &limits->pids, read_pids,
		 "a number of processes and threads, 64 or more: mvagent's own count"},
		{"cpu=", &limits->cpu_percent, read_percent,
		 "percent of one processor's time, with the %: 50% is half of one, 200% two"},
		{"io=", &limits->io_mib, read_size,
		 "a size per second in MiB, or with suffix M or G"},
	};
	char value[LONGEST_NUMBER + 1];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t prefix = strlen(known[i].name);

		if (length < prefix || memcmp(text, known[i].name, prefix) != 0)
			continue;
		if (*known[i].limit) {
			log_error("--cgroup: %.*s is given twice", (int)length, text);
			return -EINVAL;
		}
		snprintf(value, sizeof(value), "%.*s", (int)(length - prefix), text + prefix);
		if (length - prefix <= LONGEST_NUMBER &&
		    known[i].read(value, known[i].limit) == 0 && *known[i].limit)
			return 0;
		log_error("--cgroup %.*s: give %s", (int)length, text, known[i].form);
		return -EINVAL;
	}
	log_error("--cgroup %.*s: what can be limited is memory=SIZE, pids=NUMBER, cpu=PERCENT%% "
		  "and io=SIZE, with commas between",
		  (int)length, text);
	return -EINVAL;
}

int cgroup_limits_parse(struct cgroup_limits *limits, const char *text)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		int error = parse_one(limits, text, length);

		if (error || !text[length])
			return error;
		text += length + 1;
	}
}

int cgroup_limits_check(const struct cgroup_limits *limits, uint64_t guest_memory_mib)
{
	const uint64_t least = guest_memory_mib + LIMIT_CGROUP_OWN_MIB;

	if (!limits->memory_mib || limits->memory_mib >= least)
		return 0;
	log_error("--cgroup memory=%lluM: the machine alone can use %lluM (--memory) and mvagent "
		  "%dM; "
		  "give memory=%lluM, or the machine less",
		  (unsigned long long)limits->memory_mib, (unsigned long long)guest_memory_mib,
		  LIMIT_CGROUP_OWN_MIB, (unsigned long long)least);
	return -EINVAL;
}

bool cgroup_limits_any(const struct cgroup_limits *limits)
{
	return limits->memory_mib || limits->pids || limits->cpu_percent || limits->io_mib;
}
