/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

#define PAUSE_MS 250U /* RFC 8305, 5: Connection Attempt Delay */

/* A peer that is gone without a word is noticed after some three minutes. */
#define KEEP_ALIVE_IDLE     60
#define KEEP_ALIVE_INTERVAL 20
#define KEEP_ALIVE_COUNT    6

static void go_on(struct dial *dial);

void dial_sort(struct address *addresses, unsigned int count)
{
	int wanted = AF_INET6;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int next = i;

		while (next < count && addresses[next].family != wanted)
			next++;
		wanted = wanted == AF_INET6 ? AF_INET : AF_INET6;
		if (next < count) {
			struct address moved = addresses[next];

			for (; next > i; next--)
				addresses[next] = addresses[next - 1];
			addresses[i] = moved;
		}
	}
}

static void close_attempt(struct dial_attempt *attempt)
{
	loop_cancel(attempt->dial->loop, &attempt->watch);
	fd_close(&attempt->fd);
}

void dial_stop(struct dial *dial)
{
	if (!dial->active)
		return;
	dial->active = false;
	loop_cancel(dial->loop, &dial->pause);
	for (unsigned int i = 0; i < DIAL_AT_ONCE; i++)
		close_attempt(&dial->attempts[i]);
}

bool dial_is_idle(const struct dial *dial)
{
	bool idle = !dial->active && loop_operation_idle(&dial->pause);

	for (unsigned int i = 0; i < DIAL_AT_ONCE; i++)
		idle &= loop_operation_idle(&dial->attempts[i].watch);
	return idle;
}

static void attempt_ready(struct loop_operation *operation, int result)
{
	struct dial_attempt *attempt = CONTAINER_OF(operation, struct dial_attempt, watch);
	struct dial *dial = attempt->dial;
	const struct address *address = &dial->addresses[dial->tried[attempt - dial->attempts]];
	socklen_t length = sizeof(int);
	int error = 0, fd;

	if (result == -ECANCELED || attempt->fd < 0)
		return;
	if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		error = errno;
	if (!error && !(result & POLLOUT))
		return;
	if (error) {
		dial->error = -error;
		close_attempt(attempt);
		go_on(dial);
		return;
	}
	loop_cancel(dial->loop, &attempt->watch);
	fd = fd_take(&attempt->fd);
	dial_stop(dial);
	dial->done(dial, fd, address);
}

static void set_options(int fd)
{
	const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_IDLE},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEP_ALIVE_INTERVAL},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEP_ALIVE_COUNT},
	};

	/* Each makes a connection better, and none is needed for it. */
	for (unsigned int i = 0; i < ARRAY_SIZE(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/* Tries the next address in a free place. Returns whether it is under way. */
static bool try_next(struct dial *dial)
{
	struct dial_attempt *attempt = NULL;
	struct sockaddr_storage to;
	socklen_t length;

	for (unsigned int i = 0; i < DIAL_AT_ONCE; i++) {
		if (dial->attempts[i].fd < 0 && loop_operation_idle(&dial->attempts[i].watch))
			attempt = &dial->attempts[i];
	}
	if (!attempt)
		return true;
	dial->tried[attempt - dial->attempts] = dial->next;
	length = address_to_socket(&dial->addresses[dial->next++], dial->port, &to);
	attempt->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (attempt->fd >= 0) {
		set_options(attempt->fd);
		if ((connect(attempt->fd, (struct sockaddr *)&to, length) == 0 ||
		     errno == EINPROGRESS) &&
		    loop_watch(dial->loop, &attempt->watch, attempt->fd, POLLOUT, attempt_ready) ==
			    0)
			return true;
	}
	dial->error = -errno;
	fd_close(&attempt->fd);
	return false;
}

static bool is_trying(const struct dial *dial)
{
	for (unsigned int i = 0; i < DIAL_AT_ONCE; i++) {
		if (dial->attempts[i].fd >= 0)
			return true;
	}
	return false;
}

static void pause_over(struct loop_operation *operation, int result)
{
	struct dial *dial = CONTAINER_OF(operation, struct dial, pause);

	(void)result;
	if (dial->active)
		go_on(dial);
}

static void go_on(struct dial *dial)
{
	while (dial->next < dial->count && !try_next(dial))
		;
	if (dial->next == dial->count && !is_trying(dial)) {
		dial_stop(dial);
		dial->done(dial, dial->error ? dial->error : -EHOSTUNREACH, NULL);
		return;
	}
	if (dial->next < dial->count && loop_operation_idle(&dial->pause))
		loop_timer(dial->loop, &dial->pause, PAUSE_MS, pause_over);
}

void dial_start(struct dial *dial, struct loop *loop,
		void (*done)(struct dial *dial, int fd, const struct address *address))
{
	dial->loop = loop;
	dial->done = done;
	dial->next = 0;
	dial->error = 0;
	dial->active = true;
	for (unsigned int i = 0; i < DIAL_AT_ONCE; i++) {
		dial->attempts[i].dial = dial;
		dial->attempts[i].fd = -1;
	}
	/* From the loop, so that the owner is never called back from here. */
	loop_timer(loop, &dial->pause, 0, pause_over);
}
