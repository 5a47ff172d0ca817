/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest without a processor for benchmarks: memory, two rings and the front end of vhost-user on
 * this side, any virtio-fs server that listens on a socket on the other. Requests go out in the
 * shape that Linux gives them: header and arguments, data, header of the reply.
 */
#ifndef MVAGENT_BENCH_NATIVE_MACHINE_H
#define MVAGENT_BENCH_NATIVE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/unit/ring_driver.h"
#include "vmm/virtio/vhost_frontend.h"

#define NATIVE_QUEUES   2U /* hiprio and one request queue (virtio 1.2, 5.11.2) */
#define NATIVE_RING     1024U
#define NATIVE_SLOTS    64U
#define NATIVE_DATA_MAX (1U << 20)

struct native_request {
	uint32_t opcode;
	uint64_t node;
	const void *arguments; /* the operation's structure, or a name with its end */
	uint32_t arguments_size;
	uint32_t write_size; /* bytes of data that go out after the arguments */
	uint32_t read_size;  /* room for data in the reply */
	uint32_t reply_size; /* of the structure in the reply, when it is not data */
};

struct native_machine {
	pid_t server;
	int memory_fd;
	uint8_t *host;
	struct guest_memory memory;
	struct vhost_frontend *frontend;
	struct ring_driver drivers[NATIVE_QUEUES];
	int kick_fds[NATIVE_QUEUES];
	int interrupt_fd;
	int error_fd;
	uint64_t unique;
	uint64_t kicks;
	int heads[NATIVE_SLOTS];        /* -1: free */
	uint32_t replies[NATIVE_SLOTS]; /* bytes expected, with the header */
};

/* Starts the server @command, which makes the socket @path, and connects to it. Ends the program
 * with a sentence when that fails, as all functions here do. */
void native_machine_start(struct native_machine *machine, char *const command[], const char *path);
void native_machine_stop(struct native_machine *machine);

/* Puts a request into free slot @slot; not shown to the server yet. */
void native_machine_add(struct native_machine *machine, unsigned int slot,
			const struct native_request *request);

/* Shows what was added, with a kick if the server wants one. */
void native_machine_show(struct native_machine *machine);

/* The slot of a finished request, waiting for one as a guest does: asleep until the interrupt.
 * Whatever the server does not answer in full ends the program. */
unsigned int native_machine_wait(struct native_machine *machine);

/* Sends one request and waits; copies the structure in the reply to @reply unless that is NULL. */
void native_machine_call(struct native_machine *machine, const struct native_request *request,
			 void *reply);

/* CPU time that the server has used, in nanoseconds. */
uint64_t native_machine_server_time(const struct native_machine *machine);

#endif
