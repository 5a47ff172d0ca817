/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the event loop share. After cmocka.h. */
#ifndef MVAGENT_TESTS_LOOP_PROBE_H
#define MVAGENT_TESTS_LOOP_PROBE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/loop/loop.h"

#define CAPACITY 8

/* An operation that remembers what its callback was given. */
struct probe {
	struct loop_operation operation;
	struct loop *loop;
	int calls;
	int result;
	int order;
	int *counter; /* shared by the probes whose order matters */
};

static inline void probe_callback(struct loop_operation *operation, int result)
{
	struct probe *probe = CONTAINER_OF(operation, struct probe, operation);

	probe->calls++;
	probe->result = result;
	if (probe->counter)
		probe->order = ++*probe->counter;
}

/* Where io_uring is forbidden, its tests are skipped and say so. */
static inline struct loop *create_loop(unsigned int capacity, enum loop_backend backend)
{
	struct loop *loop = NULL;
	int result = loop_create(&loop, capacity, backend);

	if (backend == LOOP_BACKEND_IO_URING &&
	    (result == -EPERM || result == -EACCES || result == -ENOSYS || result == -EOPNOTSUPP)) {
		print_message("io_uring is not to be had here: %s\n", strerror(-result));
		skip();
	}
	assert_int_equal(result, 0);
	assert_int_equal(loop_backend_in_use(loop), backend);
	return loop;
}

static inline struct loop *make_loop(void **state, unsigned int capacity)
{
	struct loop *loop = create_loop(capacity, *(enum loop_backend *)*state);

	assert_int_equal(loop_enable(loop), 0);
	return loop;
}

/* Runs turns until the probe has been called @calls times. */
static inline void run_until(struct loop *loop, const struct probe *probe, int calls)
{
	for (int turns = 0; probe->calls < calls; turns++) {
		assert_true(turns < 1000);
		assert_true(loop_run_once(loop, 2000) >= 0);
	}
	assert_int_equal(probe->calls, calls);
}

static inline int make_file(const char *contents, size_t length)
{
	int fd = memfd_create("loop", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, contents, length), 0);
	return fd;
}

/* A test on io_uring and on epoll; make_loop gets which from the state. */
#define ON_BOTH(test)                                                                         \
	{#test " [io_uring]", test, NULL, NULL, &(enum loop_backend){LOOP_BACKEND_IO_URING}}, \
	{                                                                                     \
#test " [epoll]", test, NULL, NULL, &(enum loop_backend)                      \
		{                                                                             \
			LOOP_BACKEND_EPOLL                                                    \
		}                                                                             \
	}

#endif
