/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Reads up to @size bytes of the message. 1 when they are there, 0 when not yet, -errno. */
static int read_up_to(struct control *control, size_t size)
{
	while (control->have < size) {
		ssize_t count = recv(control->fd, control->bytes + control->have,
				     size - control->have, MSG_DONTWAIT);

		if (count == 0)
			return -ECONNRESET;
		if (count > 0)
			control->have += (size_t)count;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return -errno;
	}
	return 1;
}

int control_next_message(struct control *control, struct control_message *message)
{
	struct session_header header;
	uint32_t length;
	int result = read_up_to(control, sizeof(header));

	if (result <= 0)
		return result;
	memcpy(&header, control->bytes, sizeof(header));
	if (session_check_header(&header, &message->type, &length) ||
	    (length && length != sizeof(uint32_t)))
		return -EPROTO;
	result = read_up_to(control, sizeof(header) + length);
	if (result <= 0)
		return result;
	control->have = 0;
	message->value = 0;
	return !length || !session_decode_value(control->bytes + sizeof(header), length,
						&message->value)
		       ? 1
		       : -EPROTO;
}
