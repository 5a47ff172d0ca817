/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/console.h"

#include <string.h>
#include <sys/socket.h>

/* 8250 registers, as offsets from the base port. */
#define REGISTER_TRANSMIT     0U
#define REGISTER_LINE_CONTROL 3U
#define REGISTER_LINE_STATUS  5U
#define LINE_CONTROL_DIVISOR  0x80U
#define LINE_STATUS_IDLE      0x60U /* transmitter and its holding register are empty */

void console_create(struct console *console, int monitor_fd)
{
	memset(console, 0, sizeof(*console));
	pthread_mutex_init(&console->lock, NULL);
	console->monitor_fd = monitor_fd;
	console->packet.type = MONITOR_CONSOLE;
}

static void console_flush_locked(struct console *console)
{
	if (!console->packet.text_length)
		return;
	send(console->monitor_fd, &console->packet, sizeof(console->packet),
	     MSG_DONTWAIT | MSG_NOSIGNAL);
	console->packet.text_length = 0;
}

void console_write(struct console *console, uint16_t offset, uint8_t value)
{
	pthread_mutex_lock(&console->lock);
	if (offset == REGISTER_LINE_CONTROL)
		console->line_control = value;
	if (offset == REGISTER_TRANSMIT && !(console->line_control & LINE_CONTROL_DIVISOR)) {
		console->total_bytes++;
		console->packet.text[console->packet.text_length++] = (char)value;
		if (value == '\n' || console->packet.text_length == sizeof(console->packet.text))
			console_flush_locked(console);
	}
	pthread_mutex_unlock(&console->lock);
}

uint8_t console_read(uint16_t offset)
{
	return offset == REGISTER_LINE_STATUS ? LINE_STATUS_IDLE : 0;
}

void console_flush(struct console *console)
{
	pthread_mutex_lock(&console->lock);
	console_flush_locked(console);
	pthread_mutex_unlock(&console->lock);
}

uint64_t console_bytes(struct console *console)
{
	uint64_t total;

	pthread_mutex_lock(&console->lock);
	total = console->total_bytes;
	pthread_mutex_unlock(&console->lock);
	return total;
}
