/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/control.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void control_init(struct control *control, int fd)
{
	*control = (struct control){.fd = fd};
}

void control_destroy(struct control *control)
{
	free(control->outgoing);
	control->outgoing = NULL;
	control->outgoing_length = control->outgoing_offset = 0;
}

/* Bytes still missing from the message at hand: first of its header, then of its payload. */
static int control_missing(const struct control *control, size_t *missing)
{
	struct session_header header;
	size_t total = sizeof(header);

	if (control->received_length >= sizeof(header)) {
		memcpy(&header, control->received, sizeof(header));
		if (le32toh(header.length) > CONTROL_RECEIVE_BYTES - sizeof(header))
			return -EPROTO;
		total += le32toh(header.length);
	}
	*missing = total - control->received_length;
	return 0;
}

int control_receive(struct control *control, struct session_message *message)
{
	struct session_header header;
	size_t missing = 0;
	int error;

	while ((error = control_missing(control, &missing)) == 0 && missing) {
		ssize_t count = recv(control->fd, control->received + control->received_length,
				     missing, MSG_DONTWAIT);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (count == 0)
			return -ENODATA;
		control->received_length += (size_t)count;
	}
	if (error)
		return error;
	memcpy(&header, control->received, sizeof(header));
	message->type = le32toh(header.type);
	message->length = le32toh(header.length);
	message->payload = control->received + sizeof(header);
	control->received_length = 0;
	return 1;
}

int control_send(struct control *control, uint8_t *bytes, size_t length)
{
	size_t rest = control->outgoing_length - control->outgoing_offset;
	uint8_t *joined;

	if (rest == 0) {
		free(control->outgoing);
		control->outgoing = bytes;
		control->outgoing_length = length;
		control->outgoing_offset = 0;
		return 0;
	}
	joined = malloc(rest + length);
	if (joined) {
		memcpy(joined, control->outgoing + control->outgoing_offset, rest);
		memcpy(joined + rest, bytes, length);
		free(control->outgoing);
		control->outgoing = joined;
		control->outgoing_length = rest + length;
		control->outgoing_offset = 0;
	}
	free(bytes);
	return joined ? 0 : -ENOMEM;
}

int control_flush(struct control *control)
{
	while (control->outgoing_offset < control->outgoing_length) {
		ssize_t count = send(control->fd, control->outgoing + control->outgoing_offset,
				     control->outgoing_length - control->outgoing_offset,
				     MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno == EAGAIN ? 0 : -errno;
		control->outgoing_offset += (size_t)count;
	}
	return 0;
}
