/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/text.h"

static enum log_level current_level = LOG_NORMAL;
static char last_error[1024];

const char *log_last_error(void)
{
	return last_error;
}

void log_set_level(enum log_level level)
{
	current_level = level;
}

/* One write(2) a line, so that lines of several processes do not mix. What it says may come from
 * the guest or be a file's name: it stays one line, and cannot act on the terminal. */
static void log_line(bool is_error, const char *tail, const char *format, va_list arguments)
{
	char line[1024];
	int prefix = snprintf(line, sizeof(line), "%s: ", program_invocation_short_name);
	int length = prefix;

	length += vsnprintf(line + length, sizeof(line) - (size_t)length, format, arguments);
	if (length > (int)sizeof(line) - 256)
		length = (int)sizeof(line) - 256;
	length += snprintf(line + length, sizeof(line) - (size_t)length, "%s%s", tail ? ": " : "",
			   tail ? tail : "");
	for (char *newline = line; (newline = strchr(newline, '\n'));)
		*newline = '?';
	text_make_printable(line, (size_t)length);
	if (is_error)
		snprintf(last_error, sizeof(last_error), "%.*s", length - prefix, line + prefix);
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		return; /* nobody is left to tell */
}

void log_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(true, NULL, format, arguments);
	va_end(arguments);
}

void log_warning(const char *format, ...)
{
	va_list arguments;

	if (current_level == LOG_QUIET)
		return;
	va_start(arguments, format);
	log_line(false, NULL, format, arguments);
	va_end(arguments);
}

void log_info(const char *format, ...)
{
	va_list arguments;

	if (current_level != LOG_VERBOSE)
		return;
	va_start(arguments, format);
	log_line(false, NULL, format, arguments);
	va_end(arguments);
}

int log_errno(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(true, strerror(-error), format, arguments);
	va_end(arguments);
	return error;
}

noreturn void log_fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(true, NULL, format, arguments);
	va_end(arguments);
	abort();
}
