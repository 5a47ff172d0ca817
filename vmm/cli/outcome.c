/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/outcome.h"

#include <stdarg.h>
#include <stdio.h>

void outcome_give(struct outcome *outcome, enum outcome_kind kind, int value, const char *format,
		  ...)
{
	va_list arguments;

	if (outcome->kind != OUTCOME_NONE)
		return;
	outcome->kind = kind;
	outcome->value = value;
	va_start(arguments, format);
	vsnprintf(outcome->sentence, sizeof(outcome->sentence), format, arguments);
	va_end(arguments);
}

int outcome_exit_status(const struct outcome *outcome)
{
	switch (outcome->kind) {
	case OUTCOME_EXITED:
		return outcome->value;
	case OUTCOME_SIGNALED:
	case OUTCOME_INTERRUPTED:
		return 128 + outcome->value;
	case OUTCOME_TIME_LIMIT:
		return EXIT_TIME_LIMIT;
	case OUTCOME_NOT_EXECUTABLE:
		return EXIT_NOT_EXECUTABLE;
	case OUTCOME_NOT_FOUND:
		return EXIT_NOT_FOUND;
	default:
		return EXIT_MVAGENT;
	}
}

const char *outcome_name(enum outcome_kind kind)
{
	switch (kind) {
	case OUTCOME_EXITED:
		return "exited";
	case OUTCOME_SIGNALED:
		return "signaled";
	case OUTCOME_TIME_LIMIT:
		return "time-limit";
	case OUTCOME_NOT_FOUND:
		return "not-found";
	case OUTCOME_NOT_EXECUTABLE:
		return "not-executable";
	case OUTCOME_SETUP_FAILED:
		return "setup-failed";
	case OUTCOME_GUEST_FAILED:
		return "guest-failed";
	case OUTCOME_MACHINE_FAILED:
		return "machine-failed";
	case OUTCOME_OUTPUT_LOST:
		return "output-lost";
	case OUTCOME_INTERRUPTED:
		return "interrupted";
	default:
		return "none";
	}
}
