/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/limits.h"

#define TURN_BUFFERS 8 /* half a megabyte */

void flow_free(struct flow *flow)
{
	free(flow->kept);
	flow->kept = NULL;
	flow->offset = flow->length = 0;
}

void flow_put(struct flow *flow, uint8_t *bytes, size_t length)
{
	flow->kept = bytes;
	flow->offset = 0;
	flow->length = length;
}

/* Returns how much the sink took, or -errno. */
static ssize_t write_some(struct flow *flow, int sink, const uint8_t *bytes, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t count =
			send(sink, bytes + done, length - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN)
			break;
		if (count < 0)
			return -errno;
		done += (size_t)count;
	}
	flow->bytes += done;
	return (ssize_t)done;
}

/* 1 when nothing is kept any more, 0 when the sink is full, -errno. */
static int drain(struct flow *flow, int sink)
{
	ssize_t count;

	if (!flow->kept)
		return 1;
	count = write_some(flow, sink, flow->kept + flow->offset, flow->length - flow->offset);
	if (count < 0)
		return (int)count;
	flow->offset += (size_t)count;
	if (flow->offset < flow->length)
		return 0;
	flow_free(flow);
	return 1;
}

static int keep(struct flow *flow, const uint8_t *bytes, size_t length)
{
	flow->kept = malloc(length);
	if (!flow->kept)
		return -ENOMEM;
	memcpy(flow->kept, bytes, length);
	flow->length = length;
	return 0;
}

/* Reads as much as is allowed. When nothing is any more, it is still to be seen whether the source
 * has more: -EDQUOT then. As recv(2). */
static ssize_t read_allowed(const struct flow *flow, int source, uint8_t *bytes, size_t size)
{
	ssize_t count;

	if (!flow->allowance || *flow->allowance >= size) {
		count = recv(source, bytes, size, MSG_DONTWAIT);
	} else if (*flow->allowance) {
		count = recv(source, bytes, (size_t)*flow->allowance, MSG_DONTWAIT);
	} else {
		count = recv(source, bytes, 1, MSG_DONTWAIT | MSG_PEEK);
		if (count > 0) {
			errno = EDQUOT;
			return -1;
		}
	}
	if (count > 0 && flow->allowance)
		*flow->allowance -= (uint64_t)count;
	return count;
}

/* One buffer. 1, 0 when the source has nothing now or the sink is full, -errno. */
static int move_buffer(struct flow *flow, int source, int sink)
{
	uint8_t bytes[LIMIT_RELAY_BUFFER_BYTES];
	ssize_t count = read_allowed(flow, source, bytes, sizeof(bytes)), written;

	if (count < 0)
		return errno == EAGAIN ? 0 : errno == EINTR ? 1 : -errno;
	if (count == 0) {
		flow->ended = true;
		return 1;
	}
	if (flow->inspect && !flow->inspect(flow, bytes, (size_t)count))
		return -EACCES;
	written = write_some(flow, sink, bytes, (size_t)count);
	if (written < 0)
		return (int)written;
	if (written < count)
		return keep(flow, bytes + written, (size_t)(count - written));
	return 1;
}

enum flow_result flow_move(struct flow *flow, int source, int sink)
{
	if (flow->done)
		return FLOW_DONE;
	for (int i = 0; i < TURN_BUFFERS; i++) {
		int result = drain(flow, sink);

		if (result > 0 && flow->ended) {
			shutdown(sink, SHUT_WR);
			flow->done = true;
			return FLOW_DONE;
		}
		if (result > 0)
			result = move_buffer(flow, source, sink);
		if (result < 0)
			return result == -EDQUOT ? FLOW_SPENT : FLOW_BROKEN;
		if (result == 0)
			return FLOW_WAITS;
	}
	return FLOW_AGAIN;
}
