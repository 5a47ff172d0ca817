/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same loop on epoll, for hosts that forbid io_uring. Watches are edge-triggered epoll entries;
 * reads are made when they are asked for, and only their callbacks wait for the loop. Only a stream
 * that is not ready is waited for.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/loop/loop_internal.h"

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
		      EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP && EPOLLPRI == POLLPRI,
	      "poll events are passed on as they are");

struct loop_epoll {
	struct loop loop;
	int epoll_fd;
	struct loop_operation *timers; /* the soonest first */
};

static struct loop_epoll *to_epoll(struct loop *loop)
{
	return CONTAINER_OF(loop, struct loop_epoll, loop);
}

static void epoll_destroy(struct loop *loop)
{
	struct loop_epoll *epoll = to_epoll(loop);

	fd_close(&epoll->epoll_fd);
	free(epoll);
}

static int epoll_enable(struct loop *loop)
{
	(void)loop;
	return 0;
}

static int control(struct loop *loop, int what, const struct loop_operation *operation,
		   uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = loop_name(loop, operation)};

	return epoll_ctl(to_epoll(loop)->epoll_fd, what, operation->fd, &event) < 0 ? -errno : 0;
}

/* The result of a read, -EAGAIN if it would block: streams are tried with RWF_NOWAIT, or after
 * poll(2) if they do not know it. */
static ssize_t read_now(const struct loop_operation *operation)
{
	struct pollfd ready = {.fd = operation->fd, .events = POLLIN};
	int flags = operation->offset < 0 ? RWF_NOWAIT : 0;
	ssize_t count;

	do {
		count = preadv2(operation->fd, operation->vector, (int)operation->vector_count,
				operation->offset, flags);
		if (count < 0 && errno == EOPNOTSUPP && flags) {
			if (poll(&ready, 1, 0) == 0)
				return -EAGAIN;
			flags = 0;
			errno = EINTR;
		}
	} while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

/* Reads, now or when the stream is ready. @what: how to wait for it. */
static int start_read(struct loop *loop, struct loop_operation *operation, int what)
{
	ssize_t result = read_now(operation);

	if (result == -EAGAIN && operation->offset < 0)
		return control(loop, what, operation, EPOLLIN | EPOLLONESHOT);
	if (what == EPOLL_CTL_MOD)
		control(loop, EPOLL_CTL_DEL, operation, 0);
	/* A read is at most MAX_RW_COUNT bytes, below 2 GiB. */
	loop_complete(loop, operation, (int)result, true);
	return 0;
}

static void start_timer(struct loop *loop, struct loop_operation *operation)
{
	struct loop_operation **link = &to_epoll(loop)->timers;
	const struct loop_time *deadline = &operation->deadline;

	while (*link && ((*link)->deadline.seconds < deadline->seconds ||
			 ((*link)->deadline.seconds == deadline->seconds &&
			  (*link)->deadline.nanoseconds <= deadline->nanoseconds)))
		link = &(*link)->next;
	operation->next = *link;
	*link = operation;
}

static int epoll_start(struct loop *loop, struct loop_operation *operation)
{
	switch (operation->kind) {
	case LOOP_WATCH:
		return control(loop, EPOLL_CTL_ADD, operation, operation->events | EPOLLET);
	case LOOP_READ:
		return start_read(loop, operation, EPOLL_CTL_ADD);
	case LOOP_TIMER:
		start_timer(loop, operation);
		return 0;
	case LOOP_IDLE:
		break;
	}
	log_fatal("an idle loop operation was started");
}

static void epoll_cancel(struct loop *loop, struct loop_operation *operation)
{
	struct loop_operation **link = &to_epoll(loop)->timers;

	if (operation->kind == LOOP_TIMER) {
		while (*link != operation)
			link = &(*link)->next;
		*link = operation->next;
	} else {
		control(loop, EPOLL_CTL_DEL, operation, 0);
	}
	loop_complete(loop, operation, -ECANCELED, true);
}

/* Milliseconds from now to the first timer, rounded up; -1 without one. */
static int first_timer_ms(const struct loop_epoll *epoll)
{
	struct timespec now;
	int64_t seconds;
	int64_t nanoseconds;

	if (!epoll->timers)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = epoll->timers->deadline.seconds - now.tv_sec;
	nanoseconds = epoll->timers->deadline.nanoseconds - now.tv_nsec;
	if (seconds > INT_MAX / 1000 - 2)
		return INT_MAX;
	nanoseconds += seconds * 1000000000;
	return nanoseconds <= 0 ? 0 : (int)((nanoseconds + 999999) / 1000000);
}

static void expire_timers(struct loop *loop)
{
	struct loop_epoll *epoll = to_epoll(loop);

	while (first_timer_ms(epoll) == 0) {
		struct loop_operation *operation = epoll->timers;

		epoll->timers = operation->next;
		loop_complete(loop, operation, 0, true);
	}
}

static void handle_event(struct loop *loop, const struct epoll_event *event)
{
	struct loop_operation *operation = loop_find(loop, event->data.u64);
	int result;

	if (!operation || !operation->waiting)
		return;
	if (operation->kind == LOOP_WATCH) {
		loop_complete(loop, operation, (int)event->events, false);
		return;
	}
	result = start_read(loop, operation, EPOLL_CTL_MOD);
	if (result < 0)
		loop_complete(loop, operation, result, true);
}

static int epoll_wait_and_collect(struct loop *loop, int timeout_ms)
{
	struct loop_epoll *epoll = to_epoll(loop);
	struct epoll_event events[64];
	int timer_ms = first_timer_ms(epoll);
	int count;

	if (timer_ms >= 0 && (timeout_ms < 0 || timer_ms < timeout_ms))
		timeout_ms = timer_ms;
	count = epoll_wait(epoll->epoll_fd, events, ARRAY_SIZE(events), timeout_ms);
	if (count < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < count; i++)
		handle_event(loop, &events[i]);
	expire_timers(loop);
	return 0;
}

static const struct loop_methods epoll_methods = {
	.backend = LOOP_BACKEND_EPOLL,
	.destroy = epoll_destroy,
	.enable = epoll_enable,
	.start = epoll_start,
	.cancel = epoll_cancel,
	.wait = epoll_wait_and_collect,
};

int loop_epoll_create(struct loop **loop, unsigned int capacity)
{
	struct loop_epoll *epoll;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	(void)capacity;
	if (epoll_fd < 0)
		return -errno;
	epoll = calloc(1, sizeof(*epoll));
	if (!epoll) {
		close(epoll_fd);
		return -ENOMEM;
	}
	epoll->epoll_fd = epoll_fd;
	epoll->loop.methods = &epoll_methods;
	*loop = &epoll->loop;
	return 0;
}
