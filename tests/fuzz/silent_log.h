/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of vmm/base/log.h for a fuzz target whose input makes sentences without end: they
 * say nothing, and take the place of those in the archives. */
#ifndef MVAGENT_TESTS_SILENT_LOG_H
#define MVAGENT_TESTS_SILENT_LOG_H

#include <stdlib.h>

#include "vmm/base/log.h"

void log_error(const char *format, ...)
{
	(void)format;
}

void log_warning(const char *format, ...)
{
	(void)format;
}

void log_info(const char *format, ...)
{
	(void)format;
}

int log_errno(int error, const char *format, ...)
{
	(void)format;
	return error;
}

noreturn void log_fatal(const char *format, ...)
{
	(void)format;
	abort();
}

#endif
