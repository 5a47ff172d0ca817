/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine without a processor, for tests of vhost-user: guest memory, a front end, and drivers
 * that send random requests to the toy device and check its answers. After cmocka.h.
 */
#ifndef MVAGENT_TESTS_VHOST_MACHINE_H
#define MVAGENT_TESTS_VHOST_MACHINE_H

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/ring_driver.h"
#include "tests/unit/vhost_toy.h"
#include "vmm/base/fd.h"
#include "vmm/virtio/vhost_frontend.h"

#define LOW_BYTES  (1U << 20)
#define HIGH_GPA   (1ULL << 32)
#define HIGH_BYTES (1U << 20)
#define SIZE       64
#define SLOT_BYTES 4096U /* of each region, for the buffers of one request */
#define BUFFERS    6     /* of one request */

/* A machine without a processor: memory, a front end, and a driver for two queues. */
struct machine {
	int memory_fd;
	uint8_t *host;
	struct guest_memory memory;
	int kick_fds[TOY_QUEUES];
	int interrupt_fd;
	int error_fd;
	unsigned int patience_ms; /* of the front end; 0: its own */
	struct vhost_frontend *frontend;
	struct ring_driver drivers[TOY_QUEUES];
	struct virtio_queue_setup setups[TOY_QUEUES];
	struct toy toy;
};

static uint64_t random_state = 1;

static inline uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % limit;
}

static inline void machine_create(struct machine *machine, int event_flags)
{
	struct guest_memory_region regions[] = {{.gpa = 0, .size = LOW_BYTES},
						{.gpa = HIGH_GPA, .size = HIGH_BYTES}};

	memset(machine, 0, sizeof(*machine));
	machine->memory_fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(machine->memory_fd >= 0);
	assert_int_equal(ftruncate(machine->memory_fd, LOW_BYTES + HIGH_BYTES), 0);
	assert_int_equal(fcntl(machine->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	machine->host = mmap(NULL, LOW_BYTES + HIGH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     machine->memory_fd, 0);
	assert_ptr_not_equal(machine->host, MAP_FAILED);
	regions[0].host = machine->host;
	regions[1].host = machine->host + LOW_BYTES;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(guest_memory_add(&machine->memory, &regions[i]), 0);
	for (unsigned int i = 0; i < TOY_QUEUES; i++)
		machine->kick_fds[i] = eventfd(0, EFD_CLOEXEC | event_flags);
	machine->interrupt_fd = eventfd(0, EFD_CLOEXEC | event_flags);
	machine->error_fd = fd_create_event();
}

static inline void machine_destroy(struct machine *machine)
{
	vhost_frontend_destroy(machine->frontend);
	for (unsigned int i = 0; i < TOY_QUEUES; i++)
		fd_close(&machine->kick_fds[i]);
	fd_close(&machine->interrupt_fd);
	fd_close(&machine->error_fd);
	munmap(machine->host, LOW_BYTES + HIGH_BYTES);
	fd_close(&machine->memory_fd);
}

static inline int connect_frontend(struct machine *machine, int socket_fd, uint32_t config_size)
{
	const struct vhost_frontend_description description = {
		.id = VIRTIO_DEVICE_FS,
		.socket_fd = socket_fd,
		.memory_fd = machine->memory_fd,
		.memory = &machine->memory,
		.queue_count = TOY_QUEUES,
		.queue_size = SIZE,
		.config_size = config_size,
		.patience_ms = machine->patience_ms,
	};

	return vhost_frontend_create(&machine->frontend, &description);
}

static inline void start_toy(struct machine *machine, enum loop_backend loop_backend, bool deferred)
{
	int pair[2];

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	machine->toy = (struct toy){
		.socket_fd = pair[1],
		.loop_backend = loop_backend,
		.deferred = deferred,
		.config = "configuration",
		.config_size = 13,
	};
	assert_int_equal(pthread_create(&machine->toy.thread, NULL, toy_serve, &machine->toy), 0);
	assert_int_equal(connect_frontend(machine, pair[0], 20), 0);
}

static inline void stop_toy(struct machine *machine)
{
	vhost_frontend_destroy(machine->frontend);
	machine->frontend = NULL;
	pthread_join(machine->toy.thread, NULL);
	assert_int_equal(machine->toy.result, 0);
}

static inline int activate(struct machine *machine, bool event_idx)
{
	const struct virtio_device_description *device = vhost_frontend_device(machine->frontend);
	struct virtio_activation activation = {
		.features = (device->features & ~(1ULL << VIRTIO_RING_F_EVENT_IDX)) |
			    ((uint64_t)event_idx << VIRTIO_RING_F_EVENT_IDX),
		.memory = &machine->memory,
		.queues = machine->setups,
		.kick_fds = machine->kick_fds,
		.interrupt_fd = machine->interrupt_fd,
		.error_fd = machine->error_fd,
	};

	for (unsigned int i = 0; i < TOY_QUEUES; i++) {
		struct ring_driver *driver = &machine->drivers[i];

		ring_driver_init(driver, machine->host, 0x1000 + i * 0x4000U, SIZE, 0, event_idx);
		machine->setups[i] = (struct virtio_queue_setup){
			.size = SIZE,
			.ready = true,
			.descriptor_gpa = driver->descriptor_gpa,
			.available_gpa = driver->available_gpa,
			.used_gpa = driver->used_gpa,
		};
	}
	return device->ops->activate(device->device, &activation);
}

static inline void reset(struct machine *machine)
{
	const struct virtio_device_description *device = vhost_frontend_device(machine->frontend);

	device->ops->reset(device->device);
}

static inline void kick(struct machine *machine, unsigned int queue)
{
	fd_signal_event(machine->kick_fds[queue]);
}

static inline void wait_for_interrupt(struct machine *machine)
{
	struct pollfd ready = {.fd = machine->interrupt_fd, .events = POLLIN};
	uint64_t count;

	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(read(machine->interrupt_fd, &count, sizeof(count)), sizeof(count));
}

static inline uint8_t *host_at(struct machine *machine, uint64_t gpa)
{
	return guest_memory_at(&machine->memory, gpa, 1);
}

/* One request in flight. Its place in guest memory follows from its place in the table. */
struct request {
	bool busy;
	int head;
	unsigned int count;
	struct ring_buffer buffers[BUFFERS];
};

static struct request requests[TOY_QUEUES][SIZE];

/* Adds a random request with buffers in both regions, direct or through a table. */
static inline bool add_request(struct machine *machine, unsigned int queue)
{
	struct request *request = requests[queue];
	unsigned int slot, readable;
	uint64_t gpa;

	while (request < requests[queue] + SIZE && request->busy)
		request++;
	if (request == requests[queue] + SIZE)
		return false;
	slot = queue * SIZE + (unsigned int)(request - requests[queue]);
	gpa = HIGH_GPA + slot * SLOT_BYTES;
	request->count = 1 + random_below(BUFFERS);
	readable = random_below(request->count + 1);
	for (unsigned int i = 0; i < request->count; i++) {
		uint32_t length = 1 + random_below(500);

		if (i == 1)
			gpa = 0x20000 + slot * SLOT_BYTES; /* the other region */
		request->buffers[i] = (struct ring_buffer){gpa, length, i >= readable};
		memset(host_at(machine, gpa), (int)random_below(256), length);
		*host_at(machine, gpa) = (uint8_t)random_below(256);
		gpa += length + random_below(64);
	}
	request->head = ring_add(&machine->drivers[queue], request->buffers, request->count,
				 random_below(2) ? 0xb0000 + slot * 128U : 0);
	request->busy = request->head >= 0;
	return request->busy;
}

/* The writable part must hold the echo of the readable part, as long as both are. */
static inline void check_request(struct machine *machine, const struct request *request,
				 uint32_t written)
{
	uint8_t bytes[2][BUFFERS * 512];
	uint32_t lengths[2] = {0, 0};

	for (unsigned int i = 0; i < request->count; i++) {
		const struct ring_buffer *buffer = &request->buffers[i];

		memcpy(bytes[buffer->writable] + lengths[buffer->writable],
		       host_at(machine, buffer->gpa), buffer->length);
		lengths[buffer->writable] += buffer->length;
	}
	assert_int_equal(written, lengths[0] < lengths[1] ? lengths[0] : lengths[1]);
	assert_memory_equal(bytes[0], bytes[1], written);
}

static inline unsigned int collect(struct machine *machine, unsigned int queue)
{
	unsigned int count = 0;
	uint32_t written;
	uint16_t head;

	while (ring_take_used(&machine->drivers[queue], &head, &written)) {
		struct request *request = requests[queue];

		while (!request->busy || request->head != head) {
			request++;
			assert_true(request < requests[queue] + SIZE);
		}
		check_request(machine, request, written);
		request->busy = false;
		count++;
	}
	return count;
}

/* Sends @total requests over both queues, in batches of all sizes, and checks the answers. Returns
 * the count of interrupts waited for. */
static inline unsigned int exchange(struct machine *machine, unsigned int total)
{
	unsigned int added = 0, answered = 0, interrupts = 0;

	memset(requests, 0, sizeof(requests));
	while (answered < total) {
		bool there = false;

		for (unsigned int queue = 0; queue < TOY_QUEUES; queue++) {
			unsigned int batch = 1 + random_below(SIZE);

			while (added < total && batch-- && add_request(machine, queue))
				added++;
			if (ring_show(&machine->drivers[queue]))
				kick(machine, queue);
		}
		for (unsigned int queue = 0; queue < TOY_QUEUES; queue++)
			there |= ring_want_interrupt(&machine->drivers[queue]);
		if (!there) {
			wait_for_interrupt(machine);
			interrupts++;
		}
		for (unsigned int queue = 0; queue < TOY_QUEUES; queue++)
			answered += collect(machine, queue);
	}
	assert_int_equal(answered, total);
	return interrupts;
}

#endif
