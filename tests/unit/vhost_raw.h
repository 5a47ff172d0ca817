/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front end that says what a test wants said, one message at a time, to the toy device in a
 * thread of its own. After cmocka.h.
 */
#ifndef MVAGENT_TESTS_VHOST_RAW_H
#define MVAGENT_TESTS_VHOST_RAW_H

#include <errno.h>
#include <linux/virtio_config.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tests/unit/vhost_machine.h"
#include "vmm/virtio/vhost_message.h"

#define USER_ADDRESS 0x7f0000000000ULL /* what the front end calls gpa 0 */
/* what our front end accepts */
#define FEATURES ((1ULL << VIRTIO_F_VERSION_1) | (1ULL << VIRTIO_RING_F_INDIRECT_DESC))

static struct machine machine;
static int raw; /* the front end's end of the socket */
static int error_fd;

/* The request and what came back: 1 a reply, 0 none was asked for, or an error. */
static inline int transact(struct vhost_message *message, bool has_reply)
{
	message->flags |= VHOST_FLAG_VERSION;
	if (vhost_message_send(raw, message) < 0)
		return -EPIPE;
	if (!has_reply && !(message->flags & VHOST_FLAG_NEED_REPLY))
		return 0;
	return vhost_message_receive(raw, message);
}

static inline uint64_t ask_value(uint32_t request)
{
	struct vhost_message message = {.request = request};

	assert_int_equal(transact(&message, true), 1);
	assert_int_equal(message.request, request);
	assert_int_equal(message.flags, VHOST_FLAG_VERSION | VHOST_FLAG_REPLY);
	assert_int_equal(message.size, 8);
	return message.payload.value;
}

/* Whether the back end accepts a message; it is asked to say so. */
static inline bool accepted(struct vhost_message *message)
{
	message->flags = VHOST_FLAG_NEED_REPLY;
	assert_int_equal(transact(message, false), 1);
	assert_int_equal(message->size, 8);
	return message->payload.value == 0;
}

static inline bool accepts_value(uint32_t request, uint64_t value)
{
	struct vhost_message message = {.request = request, .size = 8, .payload.value = value};

	return accepted(&message);
}

static inline bool accepts_ring(uint32_t request, uint32_t index, uint32_t value)
{
	return accepts_value(request, index | (uint64_t)value << 32);
}

static inline bool accepts_fd(uint32_t request, uint64_t value, int fd)
{
	struct vhost_message message = {
		.request = request,
		.size = 8,
		.payload.value = value,
		.fd_count = 1,
		.fds = {fd},
	};

	return accepted(&message);
}

static inline bool accepts_addresses(uint32_t index, uint64_t descriptor, uint64_t available,
				     uint64_t used)
{
	struct vhost_message message = {.request = VHOST_SET_VRING_ADDR, .size = 40};

	message.payload.vring_address.index = index;
	message.payload.vring_address.descriptor = USER_ADDRESS + descriptor;
	message.payload.vring_address.available = USER_ADDRESS + available;
	message.payload.vring_address.used = USER_ADDRESS + used;
	return accepted(&message);
}

static inline bool accepts_table(const struct vhost_memory_region *regions, unsigned int count)
{
	struct vhost_message message = {
		.request = VHOST_SET_MEM_TABLE,
		.size = 8 + count * 32,
		.payload.memory.count = count,
		.fd_count = count,
	};

	for (unsigned int i = 0; i < count; i++) {
		memcpy(&message.payload.memory.regions[i], &regions[i], sizeof(regions[i]));
		message.fds[i] = machine.memory_fd;
	}
	return accepted(&message);
}

static inline bool accepts_region(uint32_t request, const struct vhost_memory_region *region)
{
	struct vhost_message message = {
		.request = request,
		.size = 40,
		.fd_count = request == VHOST_ADD_MEM_REG,
		.fds = {machine.memory_fd},
	};

	memcpy(&message.payload.memory_region.region, region, sizeof(*region));
	return accepted(&message);
}

static const struct vhost_memory_region both_regions[] = {
	{0, LOW_BYTES, USER_ADDRESS, 0},
	{HIGH_GPA, HIGH_BYTES, USER_ADDRESS + HIGH_GPA, LOW_BYTES},
};

static inline int connect_to_toy(bool deferred)
{
	const struct timeval timeout = {.tv_sec = 5};
	int pair[2];

	machine_create(&machine, EFD_NONBLOCK);
	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	raw = pair[0];
	setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	error_fd = fd_create_event();
	machine.toy = (struct toy){
		.socket_fd = pair[1],
		.deferred = deferred,
		.config = "configuration",
		.config_size = 13,
	};
	return pthread_create(&machine.toy.thread, NULL, toy_serve, &machine.toy);
}

static inline int connect_raw(void **state)
{
	(void)state;
	return connect_to_toy(false);
}

static inline int connect_raw_deferred(void **state)
{
	(void)state;
	return connect_to_toy(true);
}

/* Hangs up; returns what the back end's loop ended with. */
static inline int hang_up(void)
{
	fd_close(&raw);
	pthread_join(machine.toy.thread, NULL);
	return machine.toy.result;
}

static inline int disconnect_raw(void **state)
{
	(void)state;
	if (raw >= 0)
		hang_up();
	fd_close(&error_fd);
	machine_destroy(&machine);
	return 0;
}

static inline void negotiate(void)
{
	struct vhost_message message = {
		.request = VHOST_SET_PROTOCOL_FEATURES,
		.size = 8,
		.payload.value = VHOST_PROTOCOL_F_REPLY_ACK | VHOST_PROTOCOL_F_CONFIG |
				 VHOST_PROTOCOL_F_CONFIGURE_MEM_SLOTS,
	};

	assert_int_equal(transact(&message, false), 0);
	assert_true(accepts_value(VHOST_SET_FEATURES, FEATURES | VHOST_F_PROTOCOL_FEATURES));
}

/* Everything up to the kick, for a queue with its indices at @base. */
static inline void prepare_queue(unsigned int index, uint16_t base)
{
	struct ring_driver *driver = &machine.drivers[index];

	ring_driver_init(driver, machine.host, 0x1000 + index * 0x4000U, SIZE, base, false);
	assert_true(accepts_ring(VHOST_SET_VRING_NUM, index, SIZE));
	assert_true(accepts_ring(VHOST_SET_VRING_BASE, index, base));
	assert_true(accepts_addresses(index, driver->descriptor_gpa, driver->available_gpa,
				      driver->used_gpa));
	assert_true(accepts_fd(VHOST_SET_VRING_CALL, index, machine.interrupt_fd));
	assert_true(accepts_fd(VHOST_SET_VRING_ERR, index, error_fd));
}

static inline void start_queue(unsigned int index, uint16_t base)
{
	prepare_queue(index, base);
	assert_true(accepts_fd(VHOST_SET_VRING_KICK, index, machine.kick_fds[index]));
	assert_true(accepts_ring(VHOST_SET_VRING_ENABLE, index, 1));
}

/* Queue 0 runs, the other is not there. */
static inline void start_device(uint16_t base)
{
	negotiate();
	assert_true(accepts_table(both_regions, 2));
	start_queue(0, base);
	memset(requests, 0, sizeof(requests));
}

static inline uint16_t get_base(uint32_t index)
{
	struct vhost_message message = {
		.request = VHOST_GET_VRING_BASE, .size = 8, .payload.value = index};

	assert_int_equal(transact(&message, true), 1);
	assert_int_equal(message.size, 8);
	assert_int_equal(message.payload.vring_state.index, index);
	return (uint16_t)message.payload.vring_state.value;
}

static inline void add_and_kick(unsigned int count)
{
	while (count--)
		assert_true(add_request(&machine, 0));
	ring_show(&machine.drivers[0]);
	kick(&machine, 0);
}

static inline void await_answers(unsigned int count)
{
	while (count) {
		ring_want_interrupt(&machine.drivers[0]);
		if (*ring_word(&machine.drivers[0], machine.drivers[0].used_gpa, 1) ==
		    machine.drivers[0].used_index)
			wait_for_interrupt(&machine);
		count -= collect(&machine, 0);
	}
}

#define RAW_TEST(name) cmocka_unit_test_setup_teardown(name, connect_raw, disconnect_raw)

#endif
