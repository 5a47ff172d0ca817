/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_machine.h"

#include <errno.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/base/number.h"

int run_machine_set_cpus(struct run_options *options, const char *value)
{
	uint64_t number;

	if (number_parse(value, 1, LIMIT_VCPUS, &number) < 0) {
		log_error("--cpus %s: a machine has 1 to %d processors", value, LIMIT_VCPUS);
		return -EINVAL;
	}
	options->cpus = (unsigned int)number;
	return 0;
}

static uint64_t host_memory_mib(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

int run_machine_set_memory(struct run_options *options, const char *value)
{
	uint64_t host = host_memory_mib(), number;
	int error = number_parse_mib(value, host, &number);

	if (error == -EINVAL) {
		log_error("--memory %s: give a size in MiB, or with suffix M or G", value);
		return -EINVAL;
	}
	if (error || number < LIMIT_MEMORY_MIN_MIB) {
		log_error("--memory %s: a machine can have from %dM to what this host has, %lluM",
			  value, LIMIT_MEMORY_MIN_MIB, (unsigned long long)host);
		return -EINVAL;
	}
	options->memory_mib = number;
	return 0;
}

int run_machine_set_timeout(struct run_options *options, const char *value)
{
	static const struct number_unit units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {0}};
	uint64_t number;
	int error = number_parse_scaled(value, units, LIMIT_TIMEOUT_HOURS * 3600UL, &number);

	if (error == -ERANGE) {
		log_error("--timeout %s: at most %uh can be given; leave it out to let the command "
			  "run as long as it likes",
			  value, LIMIT_TIMEOUT_HOURS);
		return -EINVAL;
	}
	if (error || number == 0) {
		log_error("--timeout %s: give a number of seconds above 0, or with suffix s, m or "
			  "h",
			  value);
		return -EINVAL;
	}
	options->timeout_seconds = (unsigned int)number;
	return 0;
}

void run_machine_set_defaults(struct run_options *options)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t half = host_memory_mib() / 2;

	options->cpus = online > 1 ? 2 : 1;
	options->memory_mib = 2048;
	if (half < options->memory_mib)
		options->memory_mib = half > LIMIT_MEMORY_MIN_MIB ? half : LIMIT_MEMORY_MIN_MIB;
}
