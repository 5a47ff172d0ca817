/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loop.c and the two back ends share. loop.c owns the slots and the list of callbacks that are
 * due; a back end starts and cancels operations and reports what became of them.
 *
 * The kernel is never given an operation's address: it gets a name, slot and generation, and a name
 * that is out of date leads to nothing.
 */
#ifndef MVAGENT_LOOP_LOOP_INTERNAL_H
#define MVAGENT_LOOP_LOOP_INTERNAL_H

#include "vmm/loop/loop.h"

#define LOOP_NAME_NONE UINT64_MAX /* of no operation */

struct loop_methods {
	enum loop_backend backend;
	void (*destroy)(struct loop *loop);
	int (*enable)(struct loop *loop);
	/* Starts an operation whose fields are filled and whose slot is taken. */
	int (*start)(struct loop *loop, struct loop_operation *operation);
	/* Asks for the end of a waiting operation; ends in loop_complete like any other. */
	void (*cancel)(struct loop *loop, struct loop_operation *operation);
	/* Sleeps until something completes, at most @timeout_ms (-1: for ever, 0: not at all), and
	 * calls loop_complete for all that did. 0 (also after EINTR) or -errno. */
	int (*wait)(struct loop *loop, int timeout_ms);
};

struct loop_slot {
	struct loop_operation *operation; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

/* Distinct eventfds gathered in one round; one more flushes them. */
#define LOOP_SIGNALS 16

struct loop {
	const struct loop_methods *methods;
	bool enabled;
	bool stopped;
	int stop_result;
	unsigned int capacity;
	struct loop_slot *slots;
	uint32_t first_free; /* == capacity: none */
	struct loop_operation *due_first;
	struct loop_operation *due_last;
	unsigned int due_count;
	unsigned int signal_count;
	int signals[LOOP_SIGNALS];
};

/* The back ends' constructors: *@loop has its methods set, and nothing else of the common part.
 * 0 or -errno. */
int loop_uring_create(struct loop **loop, unsigned int capacity);
int loop_epoll_create(struct loop **loop, unsigned int capacity);

/* The operation's name, and the operation of a name (NULL: ended already). */
uint64_t loop_name(const struct loop *loop, const struct loop_operation *operation);
struct loop_operation *loop_find(const struct loop *loop, uint64_t name);

/* Reports a result. @last: the operation is no longer waiting. */
void loop_complete(struct loop *loop, struct loop_operation *operation, int result, bool last);

#endif
