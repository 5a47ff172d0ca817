/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/ending.h"

#include <stdarg.h>
#include <stdio.h>

#include "vmm/base/fd.h"

int ending_create(struct ending *ending)
{
	pthread_mutex_init(&ending->lock, NULL);
	ending->given = false;
	ending->text[0] = '\0';
	ending->event_fd = fd_create_event();
	return ending->event_fd < 0 ? ending->event_fd : 0;
}

void ending_destroy(struct ending *ending)
{
	fd_close(&ending->event_fd);
	pthread_mutex_destroy(&ending->lock);
}

void ending_give(struct ending *ending, enum monitor_reason reason, const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&ending->lock);
	if (!ending->given) {
		ending->given = true;
		ending->reason = reason;
		va_start(arguments, format);
		vsnprintf(ending->text, sizeof(ending->text), format, arguments);
		va_end(arguments);
	}
	pthread_mutex_unlock(&ending->lock);
	fd_signal_event(ending->event_fd);
}
