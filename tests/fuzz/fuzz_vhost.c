/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vhost-user back end against a front end that says anything, on both loops, with a guest that
 * writes anything and kicks. At the end nothing may be left open.
 *
 * Input: one byte for the loop, then steps of a code, a kind of descriptor, a length and as many
 * bytes:
 *   below 48     the message with that request; bit 7 of the kind asks for a reply
 *   WRITE        two bytes of address, the rest is put into guest memory there
 *   KICK         all kick descriptors are signalled
 *   RAW          the bytes go over the socket as they are, and it is closed for writing
 */
#include <fcntl.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/virtio/vhost_backend.h"
#include "vmm/virtio/vhost_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(truth) ((truth) ? (void)0 : abort())

#define MEMORY_BYTES 0x8000U
#define STEPS_MAX    200U
#define CODE_WRITE   0xf0U
#define CODE_KICK    0xf1U
#define CODE_RAW     0xf2U
#define GOES_ON      1 /* the loop ended because of our timer */

struct fixture {
	struct loop *loop;
	struct vhost_backend *backend;
	int front_end;
	int memory_fd;
	int events[2]; /* an eventfd that blocks and one that does not */
	uint8_t *memory;
};

struct step {
	uint8_t code;
	uint8_t kind;
	uint8_t length;
	const uint8_t *bytes;
};

/* An echo, whatever comes. */
static int process_queue(void *device, unsigned int index, struct virtqueue *queue)
{
	static struct descriptor_chain chain;
	static uint8_t buffer[4096];
	int result;

	(void)device;
	REQUIRE(index < 2);
	while ((result = virtqueue_pop(queue, &chain)) == 1) {
		size_t length = descriptor_chain_read(&chain, 0, buffer, sizeof(buffer));
		size_t written = descriptor_chain_write(&chain, 0, buffer, length);

		REQUIRE(virtqueue_push(queue, chain.head, (uint32_t)written) == 0);
	}
	return result;
}

static const struct vhost_backend_ops ops = {.process_queue = process_queue};

struct pause {
	struct loop_operation timer;
	struct loop *loop;
};

static void on_timer(struct loop_operation *operation, int result)
{
	(void)result;
	loop_stop(CONTAINER_OF(operation, struct pause, timer)->loop, GOES_ON);
}

/* Runs the back end until it has nothing to do. Returns whether it goes on. */
static bool settle(struct fixture *fixture)
{
	struct pause pause = {.loop = fixture->loop};

	for (unsigned int turn = 0; turn < 3; turn++) {
		int result;

		REQUIRE(loop_timer(fixture->loop, &pause.timer, 0, on_timer) == 0);
		result = loop_run(fixture->loop);
		while (!loop_operation_idle(&pause.timer))
			REQUIRE(loop_run_once(fixture->loop, -1) >= 0);
		if (result != GOES_ON)
			return false;
	}
	return true;
}

/* Fills in the descriptors that a kind stands for. */
static void add_descriptors(const struct fixture *fixture, struct vhost_message *message,
			    uint8_t kind)
{
	const int choices[] = {fixture->memory_fd, fixture->events[0], fixture->events[1],
			       STDERR_FILENO};

	message->fd_count = kind & 0xf;
	if (message->fd_count > VHOST_MESSAGE_MAX_FDS)
		message->fd_count = VHOST_MESSAGE_MAX_FDS;
	for (unsigned int i = 0; i < message->fd_count; i++)
		message->fds[i] = choices[kind >> 4 & 3];
}

static void send_message(struct fixture *fixture, const struct step *step)
{
	struct vhost_message message = {
		.request = step->code,
		.flags = VHOST_FLAG_VERSION | (step->kind & 0x80 ? VHOST_FLAG_NEED_REPLY : 0),
		.size = step->length,
	};
	uint8_t replies[4096];

	memcpy(&message.payload, step->bytes, step->length);
	add_descriptors(fixture, &message, step->kind);
	vhost_message_send(fixture->front_end, &message);
	while (recv(fixture->front_end, replies, sizeof(replies), MSG_DONTWAIT) > 0)
		;
}

/* Returns whether the back end goes on. */
static bool take_step(struct fixture *fixture, const struct step *step)
{
	if (step->code < 48) {
		send_message(fixture, step);
	} else if (step->code == CODE_WRITE && step->length > 2) {
		size_t address = (size_t)(step->bytes[0] | step->bytes[1] << 8) % MEMORY_BYTES;
		size_t length = step->length - 2U;

		if (length > MEMORY_BYTES - address)
			length = MEMORY_BYTES - address;
		memcpy(fixture->memory + address, step->bytes + 2, length);
	} else if (step->code == CODE_KICK) {
		fd_signal_event(fixture->events[0]);
		fd_signal_event(fixture->events[1]);
	} else if (step->code == CODE_RAW) {
		send(fixture->front_end, step->bytes, step->length, MSG_NOSIGNAL | MSG_DONTWAIT);
		shutdown(fixture->front_end, SHUT_WR);
	}
	return settle(fixture);
}

static void create(struct fixture *fixture, enum loop_backend loop_backend)
{
	const struct vhost_backend_description description = {
		.ops = &ops,
		.features =
			(1ULL << VIRTIO_RING_F_EVENT_IDX) | (1ULL << VIRTIO_RING_F_INDIRECT_DESC),
		.queue_count = 2,
		.config = "config",
		.config_size = 6,
	};
	int pair[2];

	REQUIRE(loop_create(&fixture->loop, 16, loop_backend) == 0);
	REQUIRE(fd_create_socket_pair(SOCK_STREAM, pair) == 0);
	fixture->front_end = pair[0];
	fixture->memory_fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	REQUIRE(fixture->memory_fd >= 0 && ftruncate(fixture->memory_fd, MEMORY_BYTES) == 0 &&
		fcntl(fixture->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	fixture->memory =
		mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fixture->memory_fd, 0);
	REQUIRE(fixture->memory != MAP_FAILED);
	fixture->events[0] = fd_create_event();
	fixture->events[1] = fd_create_event();
	REQUIRE(fd_set_nonblocking(fixture->events[1], 0) == 0);
	REQUIRE(vhost_backend_create(&fixture->backend, &description, fixture->loop, pair[1]) == 0);
	REQUIRE(loop_enable(fixture->loop) == 0);
}

static void destroy(struct fixture *fixture)
{
	vhost_backend_destroy(fixture->backend);
	loop_destroy(fixture->loop);
	munmap(fixture->memory, MEMORY_BYTES);
	fd_close(&fixture->events[0]);
	fd_close(&fixture->events[1]);
	fd_close(&fixture->memory_fd);
	fd_close(&fixture->front_end);
}

/* The lowest number that is free: it grows when a descriptor is forgotten. */
static int lowest_free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), number = fd;

	fd_close(&fd);
	return number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = lowest_free_descriptor();
	struct fixture fixture;
	size_t position = 1;

	if (size == 0)
		return 0;
	log_set_level(LOG_QUIET);
	create(&fixture, data[0] & 1 ? LOOP_BACKEND_ANY : LOOP_BACKEND_EPOLL);
	for (unsigned int i = 0; i < STEPS_MAX && size - position >= 3; i++) {
		const struct step step = {data[position], data[position + 1], data[position + 2],
					  data + position + 3};

		position += 3U;
		if (step.length > size - position || !take_step(&fixture, &step))
			break;
		position += step.length;
	}
	destroy(&fixture);
	REQUIRE(lowest_free_descriptor() == before);
	return 0;
}
