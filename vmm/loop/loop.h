/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's event loop: completions from io_uring, or the same interface on epoll where io_uring
 * is forbidden. An operation is a structure that its caller owns and embeds; nothing is allocated
 * for it. Callbacks run from loop_run only, never from inside the call that started the operation.
 *
 * The kernel holds an operation's buffers until its callback ran with the last result: memory
 * handed to loop_read/loop_write must stay until then, also after loop_cancel.
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

enum loop_kind { LOOP_IDLE, LOOP_WATCH, LOOP_READ, LOOP_WRITE, LOOP_FSYNC, LOOP_TIMER };

struct loop_operation {
	loop_callback *callback;
	/* The loop's own; zero before first use. */
	enum loop_kind kind;
	bool cancelling;
	int fd;
	uint32_t events;
	uint32_t slot;
	const struct iovec *vector;
	unsigned int vector_count;
	int result;
	off_t offset;
	int64_t deadline_ns[2]; /* a struct __kernel_timespec */
	struct loop_operation *next;
};

enum loop_backend { LOOP_BACKEND_ANY, LOOP_BACKEND_IO_URING, LOOP_BACKEND_EPOLL };

/* Makes a loop that can hold @capacity operations at once. LOOP_BACKEND_ANY tries io_uring and
 * falls back to epoll when the kernel refuses it (EPERM, ENOSYS, EACCES: kernel.io_uring_disabled
 * or a seccomp filter). The thread that calls loop_run must be the one that called this. Returns 0
 * or -errno. */
int loop_create(struct loop **loop, unsigned int capacity, enum loop_backend backend);
void loop_destroy(struct loop *loop);

/* LOOP_BACKEND_IO_URING or LOOP_BACKEND_EPOLL: what the loop runs on. */
enum loop_backend loop_backend_in_use(const struct loop *loop);

/* Forbids everything this loop does not do: on io_uring, restricts the ring
 * (IORING_REGISTER_RESTRICTIONS) and enables it. Until then no operation is started. Must be called
 * once before loop_run; no-op on epoll. 0 or -errno. */
int loop_enable(struct loop *loop);

/* Watches @fd for @events (POLLIN, POLLOUT...; POLLERR and POLLHUP are always reported). Edge
 * triggered: one callback for each change, so the callback reads or writes until EAGAIN, except for
 * an eventfd, of which every signal is reported although it is never drained. Goes on until
 * loop_cancel, or a negative result, which is the last. Returns 0, -ENOSPC (loop full), -errno. */
int loop_watch(struct loop *loop, struct loop_operation *operation, int fd, uint32_t events,
	       loop_callback *callback);

/* One preadv/pwritev (@offset >= 0) or readv/writev (-1). @vector stays the caller's until the
 * callback. */
int loop_read(struct loop *loop, struct loop_operation *operation, int fd,
	      const struct iovec *vector, unsigned int count, off_t offset,
	      loop_callback *callback);
int loop_write(struct loop *loop, struct loop_operation *operation, int fd,
	       const struct iovec *vector, unsigned int count, off_t offset,
	       loop_callback *callback);

/* fsync(@fd), or fdatasync when @data_only. */
int loop_fsync(struct loop *loop, struct loop_operation *operation, int fd, bool data_only,
	       loop_callback *callback);

/* One callback with result 0 after @milliseconds (-ECANCELED when cancelled). */
int loop_timer(struct loop *loop, struct loop_operation *operation, uint64_t milliseconds,
	       loop_callback *callback);

/* Asks for the end of an operation. Its callback runs once more from loop_run, with -ECANCELED or
 * with the result that came first; until then the operation is not idle. No-op when idle. */
void loop_cancel(struct loop *loop, struct loop_operation *operation);

/* Whether the operation is at rest: never started, or its last callback has begun. */
bool loop_operation_idle(const struct loop_operation *operation);

/* Signals an eventfd (EFD_NONBLOCK) before the loop sleeps next; on io_uring the write rides on the
 * submission that waits. The same fd given several times in a round is signalled once. */
void loop_signal(struct loop *loop, int event_fd);

/* Runs callbacks until loop_stop. Returns the value given to loop_stop, or -errno of the loop
 * itself. */
int loop_run(struct loop *loop);

/* Waits for at least one completion, or @timeout_ms (-1: for ever), and runs the callbacks that are
 * due. Returns the count of callbacks run or -errno. For owners that must drain in-flight work. */
int loop_run_once(struct loop *loop, int timeout_ms);

/* Makes loop_run return @result after the running callback. From a callback only. */
void loop_stop(struct loop *loop, int result);

#endif
