/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop on io_uring: one ring, used by one thread, created disabled, restricted to the four
 * operations below, then enabled. Seccomp sees io_uring_enter and not what is submitted, so the
 * restrictions are what keeps a hijacked process from opening files or sockets through its ring.
 */
#include "vmm/loop/loop_uring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"

static_assert(sizeof(struct loop_time) == sizeof(struct __kernel_timespec) &&
		      offsetof(struct loop_time, nanoseconds) ==
			      offsetof(struct __kernel_timespec, tv_nsec),
	      "loop_timer hands a loop_time to the kernel");

/* Between two submissions a slot needs two entries at most: a start, or a watch started again, and
 * its cancel. So the submission queue cannot run full. The kernel makes twice as many completion
 * entries, and keeps what does not fit in them (IORING_FEAT_NODROP). */
#define ENTRIES_PER_SLOT 2
static_assert(LOOP_CAPACITY_MAX * ENTRIES_PER_SLOT <= 32768, "IORING_MAX_ENTRIES");

/* Timeouts of the wait itself without an entry (5.11), no completion for cancels that succeed
 * (5.17). */
static const uint32_t needed_features =
	IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;

static const uint8_t allowed_operations[] = {
	IORING_OP_POLL_ADD,
	IORING_OP_ASYNC_CANCEL,
	IORING_OP_READV,
	IORING_OP_TIMEOUT,
};

static struct loop_uring *to_uring(struct loop *loop)
{
	return CONTAINER_OF(loop, struct loop_uring, loop);
}

static void uring_destroy(struct loop *loop)
{
	struct loop_uring *uring = to_uring(loop);

	io_uring_queue_exit(&uring->ring);
	free(uring);
}

static int uring_enable(struct loop *loop)
{
	struct io_uring_restriction restrictions[ARRAY_SIZE(allowed_operations) + 1] = {0};
	struct io_uring *ring = &to_uring(loop)->ring;
	unsigned int count = 0;
	int result;

	for (; count < ARRAY_SIZE(allowed_operations); count++) {
		restrictions[count].opcode = IORING_RESTRICTION_SQE_OP;
		restrictions[count].sqe_op = allowed_operations[count];
	}
	restrictions[count].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
	restrictions[count++].sqe_flags = IOSQE_CQE_SKIP_SUCCESS;
	/* No IORING_RESTRICTION_REGISTER_OP: nothing can be registered any more. */
	result = io_uring_register_restrictions(ring, restrictions, count);
	if (result < 0)
		return result;
	return io_uring_enable_rings(ring);
}

/* A free submission entry; NULL only when the kernel takes none. */
static struct io_uring_sqe *get_entry(struct io_uring *ring)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(ring);

	if (!entry && io_uring_submit(ring) > 0)
		entry = io_uring_get_sqe(ring);
	return entry;
}

static int uring_start(struct loop *loop, struct loop_operation *operation)
{
	struct io_uring_sqe *entry = get_entry(&to_uring(loop)->ring);

	if (!entry)
		return -EBUSY;
	switch (operation->kind) {
	case LOOP_WATCH:
		io_uring_prep_poll_multishot(entry, operation->fd, operation->events);
		break;
	case LOOP_READ:
		io_uring_prep_readv(entry, operation->fd, operation->vector,
				    operation->vector_count, (uint64_t)operation->offset);
		break;
	case LOOP_TIMER:
		io_uring_prep_timeout(entry, (struct __kernel_timespec *)&operation->deadline, 0,
				      IORING_TIMEOUT_ABS);
		break;
	case LOOP_IDLE:
		log_fatal("an idle loop operation was started");
	}
	io_uring_sqe_set_data64(entry, loop_name(loop, operation));
	return 0;
}

static void uring_cancel(struct loop *loop, struct loop_operation *operation)
{
	struct io_uring_sqe *entry = get_entry(&to_uring(loop)->ring);

	if (!entry)
		log_fatal("no io_uring entry left to cancel an operation");
	io_uring_prep_cancel64(entry, loop_name(loop, operation), 0);
	io_uring_sqe_set_flags(entry, IOSQE_CQE_SKIP_SUCCESS);
	io_uring_sqe_set_data64(entry, LOOP_NAME_NONE);
}

static void handle_completion(struct loop *loop, const struct io_uring_cqe *completion)
{
	struct loop_operation *operation = loop_find(loop, completion->user_data);
	bool last = !(completion->flags & IORING_CQE_F_MORE);
	int result = completion->res;

	/* A cancel that came too late. */
	if (!operation)
		return;
	if (operation->kind == LOOP_TIMER && result == -ETIME)
		result = 0;
	/* The kernel may end a multishot poll at any time, for want of memory or of room for its
	 * completion. */
	if (operation->kind == LOOP_WATCH && last && result >= 0 && !operation->cancelling) {
		int error = uring_start(loop, operation);

		last = error < 0;
		if (last)
			result = error;
	}
	loop_complete(loop, operation, result, last);
}

/* Takes over all completions before any callback runs. */
static void collect(struct loop *loop)
{
	struct io_uring *ring = &to_uring(loop)->ring;
	struct io_uring_cqe *completions[64];
	unsigned int count;

	do {
		count = io_uring_peek_batch_cqe(ring, completions, ARRAY_SIZE(completions));
		for (unsigned int i = 0; i < count; i++)
			handle_completion(loop, completions[i]);
		io_uring_cq_advance(ring, count);
	} while (count == ARRAY_SIZE(completions));
	if (*ring->cq.koverflow)
		log_fatal("the kernel lost an io_uring completion for want of memory");
}

/* io_uring_submit_and_wait_timeout (liburing 2.3) is two system calls as well when the time runs
 * out, and waits twice as long. */
static int submit_and_wait_for(struct io_uring *ring, int timeout_ms)
{
	struct __kernel_timespec timeout = {.tv_sec = timeout_ms / 1000,
					    .tv_nsec = timeout_ms % 1000 * 1000000LL};
	struct io_uring_cqe *first;
	int result = io_uring_submit(ring);

	return result < 0 ? result : io_uring_wait_cqe_timeout(ring, &first, &timeout);
}

static int uring_wait(struct loop *loop, int timeout_ms)
{
	struct io_uring *ring = &to_uring(loop)->ring;
	int result;

	if (timeout_ms < 0)
		result = io_uring_submit_and_wait(ring, 1);
	else if (timeout_ms == 0)
		result = io_uring_submit_and_get_events(ring);
	else
		result = submit_and_wait_for(ring, timeout_ms);
	collect(loop);
	/* Out of request memory (EAGAIN), or completions had to be collected first (EBUSY): what
	 * was not submitted is submitted by the next wait. */
	if (result < 0 && result != -EINTR && result != -ETIME && result != -EAGAIN &&
	    result != -EBUSY)
		return result;
	return 0;
}

static const struct loop_methods uring_methods = {
	.backend = LOOP_BACKEND_IO_URING,
	.destroy = uring_destroy,
	.enable = uring_enable,
	.start = uring_start,
	.cancel = uring_cancel,
	.wait = uring_wait,
};

/* From what the newest kernels offer (completions are run when we ask for them, one thread: 6.1) to
 * what any offer: older ones answer EINVAL. SUBMIT_ALL: an entry that fails does not hold back the
 * others. */
static int create_ring(struct io_uring *ring, unsigned int entries)
{
	static const uint32_t flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_SUBMIT_ALL,
	};
	struct io_uring_params parameters;
	int result = -EINVAL;

	for (unsigned int i = 0; i < ARRAY_SIZE(flags) && result == -EINVAL; i++) {
		parameters = (struct io_uring_params){.flags = flags[i] | IORING_SETUP_R_DISABLED};
		result = io_uring_queue_init_params(entries, ring, &parameters);
	}
	if (result == -EINVAL)
		return -EOPNOTSUPP;
	if (result < 0)
		return result;
	if ((parameters.features & needed_features) != needed_features) {
		io_uring_queue_exit(ring);
		return -EOPNOTSUPP;
	}
	return 0;
}

int loop_uring_create(struct loop **loop, unsigned int capacity)
{
	struct loop_uring *uring = calloc(1, sizeof(*uring));
	int result;

	if (!uring)
		return -ENOMEM;
	result = create_ring(&uring->ring, capacity * ENTRIES_PER_SLOT);
	if (result < 0) {
		free(uring);
		return result;
	}
	uring->loop.methods = &uring_methods;
	*loop = &uring->loop;
	return 0;
}
