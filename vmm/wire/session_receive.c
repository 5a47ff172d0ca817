/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/session.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* The end of the stream inside a message is a broken message. */
static int read_rest(int fd, void *buffer, size_t length)
{
	int error = fd_read_full(fd, buffer, length);

	return error == -ENODATA ? -EPROTO : error;
}

int session_check_header(const struct session_header *header, uint32_t *type, uint32_t *length)
{
	*type = le32toh(header->type);
	*length = le32toh(header->length);
	if (*type < SESSION_HELLO || *type > SESSION_MEMORY ||
	    *length > LIMIT_SESSION_MESSAGE_BYTES)
		return -EPROTO;
	return 0;
}

int session_receive(int fd, struct session_message *message)
{
	struct session_header header;
	ssize_t count;
	int error;

	do {
		count = read(fd, &header, sizeof(header));
	} while (count < 0 && errno == EINTR);
	if (count <= 0)
		return count < 0 ? -errno : 0;
	error = read_rest(fd, (uint8_t *)&header + count, sizeof(header) - (size_t)count);
	if (!error)
		error = session_check_header(&header, &message->type, &message->length);
	if (error)
		return error;
	message->payload = NULL;
	if (!message->length)
		return 1;
	message->payload = malloc(message->length);
	if (!message->payload)
		return -ENOMEM;
	error = read_rest(fd, message->payload, message->length);
	if (error) {
		free(message->payload);
		message->payload = NULL;
		return error;
	}
	return 1;
}
