/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's event loop: completions from io_uring, or the same interface on epoll where io_uring
 * is forbidden. An operation is a structure that its caller owns and embeds; nothing is allocated
 * for it. Callbacks run from loop_run only, never from inside the call that started the operation.
 *
 * The kernel holds an operation's buffers until its callback ran with the last result: memory
 * handed to loop_read must stay until then, also after loop_cancel.
 */
#ifndef MVAGENT_LOOP_LOOP_H
#define MVAGENT_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct loop;
struct loop_operation;

/* @result: as the system call's return value, or -errno; for watches the poll events that are
 * ready. */
typedef void loop_callback(struct loop_operation *operation, int result);

enum loop_kind { LOOP_IDLE, LOOP_WATCH, LOOP_READ, LOOP_TIMER };

/* CLOCK_MONOTONIC; laid out as struct __kernel_timespec, which io_uring reads. */
struct loop_time {
	int64_t seconds;
	int64_t nanoseconds;
};

struct loop_operation {
	/* The loop's own, all of it; zero before first use. */
	loop_callback *callback;
	enum loop_kind kind;
	bool cancelling; /* loop_cancel was called */
	bool waiting;    /* the kernel has it, or epoll waits for its descriptor */
	bool due;        /* on the list of callbacks to run */
	int fd;
	uint32_t events;
	uint32_t slot;
	int result;
	const struct iovec *vector;
	unsigned int vector_count;
	off_t offset;
	struct loop_time deadline;
	struct loop_operation *next; /* in the list of callbacks to run, or of timers */
};

enum loop_backend { LOOP_BACKEND_ANY, LOOP_BACKEND_IO_URING, LOOP_BACKEND_EPOLL };

/* Makes a loop that can hold @capacity operations at once (1..LOOP_CAPACITY_MAX).
 * LOOP_BACKEND_ANY tries io_uring and falls back to epoll when the kernel refuses it (EPERM,
 * ENOSYS, EACCES: kernel.io_uring_disabled or a seccomp filter) or is too old for it (before
 * 5.18). Returns 0, -EINVAL or -errno. */
#define LOOP_CAPACITY_MAX 8192
int loop_create(struct loop **loop, unsigned int capacity, enum loop_backend backend);

/* Ends all operations without running their callbacks, and waits for those that the kernel cannot
 * cancel, so that their memory may be freed afterwards. NULL is ignored. Not from a callback. */
void loop_destroy(struct loop *loop);

/* LOOP_BACKEND_IO_URING or LOOP_BACKEND_EPOLL: what the loop runs on. */
enum loop_backend loop_backend_in_use(const struct loop *loop);

/* Forbids everything this loop does not do: on io_uring, restricts the ring
 * (IORING_REGISTER_RESTRICTIONS) and enables it. Operations may be asked for before, and start
 * then. Called once, before loop_run, by the thread (or forked child) that runs the loop from now
 * on; no-op on epoll. 0 or -errno. */
int loop_enable(struct loop *loop);

/* Watches @fd for @events (POLLIN, POLLOUT...; POLLERR and POLLHUP are always reported). Edge
 * triggered: one callback for each change, so the callback reads or writes until EAGAIN, except for
 * an eventfd: that one need not be drained, and a callback follows every signal (one for several
 * that came together). Reported at once if ready when the watch starts. A callback may come without
 * anything new. A descriptor can be in one watch (or one waiting read of a stream) at a
 * time. Goes on until loop_cancel, or a negative result, which is the last. Cancel it before
 * closing @fd. Returns 0, -ENOSPC (loop full), -errno. */
int loop_watch(struct loop *loop, struct loop_operation *operation, int fd, uint32_t events,
	       loop_callback *callback);

/* One preadv (@offset >= 0) or readv (-1: a stream), with its short results. Waits
 * for a stream that is not ready, O_NONBLOCK or not. @vector stays the caller's, unchanged, until
 * the callback. Returns 0, -ENOSPC (loop full), -errno. */
int loop_read(struct loop *loop, struct loop_operation *operation, int fd,
	      const struct iovec *vector, unsigned int count, off_t offset,
	      loop_callback *callback);
/* One callback with result 0 after @milliseconds (-ECANCELED when cancelled). */
int loop_timer(struct loop *loop, struct loop_operation *operation, uint64_t milliseconds,
	       loop_callback *callback);

/* Asks for the end of an operation. Its callback runs once more from loop_run, with -ECANCELED or
 * with the result that came first; until then the operation is not idle. No-op when idle. */
void loop_cancel(struct loop *loop, struct loop_operation *operation);

/* Cancels an operation and waits until it is at rest, so that its memory and its descriptor may go.
 * Runs any callback that is due meanwhile. No-op when idle. */
void loop_end(struct loop *loop, struct loop_operation *operation);

/* Whether the operation is at rest: never started, or its last callback has begun. */
bool loop_operation_idle(const struct loop_operation *operation);

/* Signals an eventfd (EFD_NONBLOCK) before the loop sleeps next. The same fd given several times in
 * a round is signalled once. */
void loop_signal(struct loop *loop, int event_fd);

/* Signals now what loop_signal has gathered: needed before closing a descriptor given to it. */
void loop_flush_signals(struct loop *loop);

/* Runs callbacks until loop_stop. Returns the value given to loop_stop, or -errno of the loop
 * itself. */
int loop_run(struct loop *loop);

/* Waits for at least one completion, or @timeout_ms (-1: for ever), and runs the callbacks that are
 * due. Returns the count of callbacks run (0 also when a signal handler ran) or -errno. For owners
 * that must drain in-flight work; may be called from a callback, and then runs any callback that is
 * due, as loop_run would. */
int loop_run_once(struct loop *loop, int timeout_ms);

/* Makes loop_run return @result after the running callback. From a callback only. */
void loop_stop(struct loop *loop, int result);

#endif
