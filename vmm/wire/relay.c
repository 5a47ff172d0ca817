/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/log.h"

size_t relay_encode_request(const struct relay_request *request, uint8_t bytes[RELAY_REQUEST_BYTES])
{
	bytes[0] = RELAY_VERSION;
	bytes[1] = (uint8_t)request->kind;
	bytes[2] = (uint8_t)request->port;
	bytes[3] = (uint8_t)(request->port >> 8);
	bytes[4] = request->name_length;
	bytes[5] = 0;
	memcpy(bytes + RELAY_HEADER_BYTES, request->name, request->name_length);
	return RELAY_HEADER_BYTES + (size_t)request->name_length;
}

int relay_decode_request(const uint8_t *bytes, size_t length, struct relay_request *request)
{
	if (length < RELAY_HEADER_BYTES)
		return 0;
	*request = (struct relay_request){
		.kind = (enum relay_kind)bytes[1],
		.port = (uint16_t)(bytes[2] | bytes[3] << 8),
		.name_length = bytes[4],
	};
	if (bytes[0] != RELAY_VERSION || bytes[5] ||
	    (request->kind != RELAY_CONNECT && request->kind != RELAY_OFFER &&
	     request->kind != RELAY_SIGN) ||
	    (request->kind == RELAY_CONNECT) != (request->port != 0) ||
	    (request->kind == RELAY_CONNECT) != (request->name_length != 0))
		return -EPROTO;
	if (length < RELAY_HEADER_BYTES + (size_t)request->name_length)
		return 0;
	memcpy(request->name, bytes + RELAY_HEADER_BYTES, request->name_length);
	return (int)RELAY_HEADER_BYTES + request->name_length;
}

int relay_tell_walls(int event_fd, const char *process, uint8_t walls)
{
	struct relay_event event = {.type = RELAY_EVENT_WALLS, .sent = walls};

	snprintf(event.text, sizeof(event.text), "%s", process);
	if (send(event_fd, &event, sizeof(event), MSG_NOSIGNAL) >= 0)
		return 0;
	return log_errno(-errno, "cannot tell mvagent how this process is confined");
}
