/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* The log is opened anew for each line: lines are rare, and no descriptor is kept for them. It is
 * opened without blocking because the command may have put a FIFO in its place. */
void message(const char *format, ...)
{
	FD_CLEANUP int log = open("/dev/kmsg", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char line[256] = "init: ";
	const size_t prefix = strlen(line);
	va_list arguments;

	if (log < 0)
		return;
	va_start(arguments, format);
	vsnprintf(line + prefix, sizeof(line) - prefix, format, arguments);
	va_end(arguments);
	if (write(log, line, strlen(line)) < 0)
		return; /* nobody is left to tell */
}

int failure_set(struct failure *failure, enum session_stage stage, int error, const char *format,
		...)
{
	va_list arguments;

	failure->stage = stage;
	failure->error = error;
	va_start(arguments, format);
	vsnprintf(failure->text, sizeof(failure->text), format, arguments);
	va_end(arguments);
	return error;
}

/* Writes a message that was encoded with the result @error. */
static int send_encoded(int control, int error, uint8_t *bytes, size_t length)
{
	if (error)
		return error;
	error = fd_write_full(control, bytes, length);
	free(bytes);
	return error;
}

int message_send_empty(int control, enum session_type type)
{
	uint8_t *bytes;
	size_t length;
	int error = session_encode_empty(type, &bytes, &length);

	return send_encoded(control, error, bytes, length);
}

int message_send_value(int control, enum session_type type, uint32_t value)
{
	uint8_t *bytes;
	size_t length;
	int error = session_encode_value(type, value, &bytes, &length);

	return send_encoded(control, error, bytes, length);
}

int message_send_failure(int control, const struct failure *failure)
{
	struct session_failure wire = {
		.stage = failure->stage,
		.error = (uint32_t)-failure->error,
		.text = failure->text,
	};
	uint8_t *bytes;
	size_t length;
	int error = session_encode_failure(&wire, &bytes, &length);

	return send_encoded(control, error, bytes, length);
}
