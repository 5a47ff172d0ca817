/* SPDX-License-Identifier: Apache-2.0 */
/* The vhost-user back end, message by message, as good and bad front ends send them. */
#include "vmm/virtio/vhost_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/descriptors.h"
#include "tests/unit/vhost_raw.h"

static void what_is_offered(void **state)
{
	(void)state;
	assert_true(ask_value(VHOST_GET_FEATURES) ==
		    (TOY_FEATURES | FEATURES | VHOST_F_PROTOCOL_FEATURES));
	assert_true(ask_value(VHOST_GET_PROTOCOL_FEATURES) ==
		    (VHOST_PROTOCOL_F_MQ | VHOST_PROTOCOL_F_REPLY_ACK | VHOST_PROTOCOL_F_CONFIG |
		     VHOST_PROTOCOL_F_CONFIGURE_MEM_SLOTS));
	assert_true(ask_value(VHOST_GET_QUEUE_NUM) == TOY_QUEUES);
	assert_true(ask_value(VHOST_GET_MAX_MEM_SLOTS) == LIMIT_MEMORY_REGIONS);
	negotiate();
	assert_false(accepts_value(VHOST_SET_FEATURES, FEATURES | 1ULL << 34));
	assert_false(accepts_value(VHOST_SET_PROTOCOL_FEATURES, 1ULL << 5));
	assert_false(accepts_value(99, 0)); /* no such request */
	assert_int_equal(hang_up(), 0);
}

static void the_configuration_can_be_read(void **state)
{
	struct vhost_message message;

	(void)state;
	negotiate();
	for (uint32_t offset = 0; offset <= 256; offset += 4) {
		message = (struct vhost_message){
			.request = VHOST_GET_CONFIG,
			.size = 12 + 8,
			.payload.config = {.offset = offset, .size = 8},
		};
		assert_int_equal(transact(&message, true), 1);
		/* behind what the device has there are zeros; behind the space there is nothing */
		assert_int_equal(message.size, offset <= 248 ? 20 : 0);
		if (offset <= 8)
			assert_memory_equal(message.payload.config.bytes,
					    &"configuration\0\0\0"[offset], 8);
	}
	message = (struct vhost_message){
		.request = VHOST_SET_CONFIG, .size = 13, .payload.config.size = 1};
	assert_false(accepted(&message));
	assert_int_equal(hang_up(), 0);
}

/* How often guest memory is mapped in this process, by the test and by the back end. */
static unsigned int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:guest") != NULL;
	fclose(maps);
	return count;
}

static void regions_must_lie_in_their_file(void **state)
{
	const struct vhost_memory_region bad[] = {
		{0, LOW_BYTES + HIGH_BYTES + 1, USER_ADDRESS, 0},
		{0, LOW_BYTES, USER_ADDRESS, HIGH_BYTES + 4096},
		{0, LOW_BYTES, USER_ADDRESS, UINT64_MAX},
		{0, UINT64_MAX, USER_ADDRESS, 4096},
		{UINT64_MAX - 4095, 8192, USER_ADDRESS, 0},
		{0, 8192, UINT64_MAX - 4095, 0},
		{0, 0, USER_ADDRESS, 0},
	};
	struct vhost_memory_region twice[2] = {both_regions[0], both_regions[0]};
	struct vhost_message pipe_message = {.request = VHOST_ADD_MEM_REG, .size = 40};

	(void)state;
	negotiate();
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(accepts_table(&bad[i], 1));
		assert_false(accepts_region(VHOST_ADD_MEM_REG, &bad[i]));
	}
	assert_false(accepts_table(twice, 2));
	assert_int_equal(mappings(), 1); /* our own */
	pipe_message.payload.memory_region.region.size = 4096;
	pipe_message.fd_count = 1;
	pipe_message.fds[0] = machine.kick_fds[0]; /* not a file with a size */
	assert_false(accepted(&pipe_message));
	/* offsets that are not a multiple of a page are no reason to refuse */
	twice[0] = (struct vhost_memory_region){0x1000, 0x800, USER_ADDRESS, 0x200};
	assert_true(accepts_table(twice, 1));
	assert_true(accepts_table(both_regions, 2));
	assert_int_equal(mappings(), 3);
	assert_int_equal(hang_up(), 0);
	assert_int_equal(mappings(), 1);
}

static void the_memory_slots_have_an_end(void **state)
{
	struct vhost_memory_region region = {0, 4096, USER_ADDRESS, 0};

	(void)state;
	negotiate();
	for (unsigned int i = 0; i < LIMIT_MEMORY_REGIONS; i++) {
		assert_true(accepts_region(VHOST_ADD_MEM_REG, &region));
		assert_false(accepts_region(VHOST_ADD_MEM_REG, &region));
		region.gpa += 8192;
		region.user_address += 8192;
	}
	assert_false(accepts_region(VHOST_ADD_MEM_REG, &region));
	assert_false(accepts_region(VHOST_REM_MEM_REG, &region));
	region.gpa -= 8192;
	assert_false(accepts_region(VHOST_REM_MEM_REG, &region)); /* its user address is wrong */
	region.user_address -= 8192;
	assert_true(accepts_region(VHOST_REM_MEM_REG, &region));
	assert_true(accepts_region(VHOST_ADD_MEM_REG, &region));
	assert_int_equal(hang_up(), 0);
}

static void rings_must_be_usable(void **state)
{
	struct ring_driver *driver = &machine.drivers[0];

	(void)state;
	negotiate();
	assert_false(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0])); /* no ring yet */
	assert_true(accepts_table(both_regions, 2));
	assert_false(accepts_ring(VHOST_SET_VRING_NUM, 0, 0));
	assert_false(accepts_ring(VHOST_SET_VRING_NUM, 0, 65536 + SIZE));
	assert_false(accepts_ring(VHOST_SET_VRING_NUM, TOY_QUEUES, SIZE));
	assert_false(accepts_ring(VHOST_SET_VRING_NUM, UINT32_MAX, SIZE));
	assert_false(accepts_ring(VHOST_SET_VRING_ENABLE, TOY_QUEUES, 1));
	assert_false(accepts_fd(VHOST_SET_VRING_KICK, TOY_QUEUES, machine.kick_fds[0]));
	assert_false(accepts_value(VHOST_SET_VRING_KICK, VHOST_VRING_NO_FD)); /* no polling */
	prepare_queue(0, 0);
	assert_true(accepts_addresses(0, 0x1000, LOW_BYTES + 0x1000, 0x2000));
	assert_false(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	assert_true(accepts_addresses(0, LOW_BYTES - 16, 0x1000, 0x2000));
	assert_false(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	assert_true(accepts_addresses(0, 0x1008, 0x3000, 0x2000));
	assert_false(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	assert_true(accepts_addresses(0, driver->descriptor_gpa, driver->available_gpa,
				      driver->used_gpa));
	assert_true(accepts_ring(VHOST_SET_VRING_NUM, 0, 3));
	assert_false(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	assert_true(accepts_ring(VHOST_SET_VRING_NUM, 0, SIZE));
	assert_true(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	/* and a started one is not set up under its own feet */
	assert_false(accepts_ring(VHOST_SET_VRING_NUM, 0, SIZE));
	assert_false(accepts_ring(VHOST_SET_VRING_BASE, 0, 7));
	assert_false(accepts_addresses(0, 0, 0, 0));
	assert_int_equal(get_base(0), 0);
	assert_true(accepts_ring(VHOST_SET_VRING_BASE, 0, 7));
	assert_int_equal(get_base(0), 7);
	assert_int_equal(hang_up(), 0);
}

/* What cannot be waited for, or could make the device wait, is no kick, no call and no error. */
static void only_eventfds_are_signals(void **state)
{
	static const enum vhost_request requests_with_fd[] = {
		VHOST_SET_VRING_KICK, VHOST_SET_VRING_CALL, VHOST_SET_VRING_ERR};
	int pair[2], ends[2], file, queue;

	(void)state;
	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	file = memfd_create("file", MFD_CLOEXEC);
	queue = epoll_create1(EPOLL_CLOEXEC);
	negotiate();
	assert_true(accepts_table(both_regions, 2));
	prepare_queue(0, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(requests_with_fd); i++) {
		const int others[] = {pair[0], ends[0], ends[1], file, queue};

		for (unsigned int j = 0; j < ARRAY_SIZE(others); j++)
			assert_false(accepts_fd(requests_with_fd[i], 0, others[j]));
		assert_true(accepts_fd(requests_with_fd[i], 0, machine.kick_fds[0]));
	}
	assert_int_equal(lseek(file, 0, SEEK_END), 0); /* nothing was written to it */
	assert_int_equal(hang_up(), 0);
	for (unsigned int i = 0; i < 2; i++) {
		fd_close(&pair[i]);
		fd_close(&ends[i]);
	}
	fd_close(&file);
	fd_close(&queue);
}

static bool accepts_memory(int fd)
{
	struct vhost_message message = {.request = VHOST_ADD_MEM_REG, .size = 40, .fd_count = 1};

	message.payload.memory_region.region =
		(struct vhost_memory_region){.size = 0x10000, .user_address = USER_ADDRESS};
	message.fds[0] = fd;
	return accepted(&message);
}

/* Guest memory that somebody could cut short would be a SIGBUS. */
static void only_sealed_memory_is_mapped(void **state)
{
	int file = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(file, 0x10000), 0);
	negotiate();
	assert_false(accepts_memory(file));
	assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_false(accepts_memory(file));
	assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_true(accepts_memory(file));
	assert_int_equal(hang_up(), 0);
	fd_close(&file);
}

/* Each of these ends the connection, and with it everything the back end held. */
static void wrong_forms_end_the_connection(void **state)
{
	struct vhost_message messages[] = {
		{.request = VHOST_SET_FEATURES, .size = 4},
		{.request = VHOST_GET_FEATURES, .size = 8},
		{.request = VHOST_SET_VRING_KICK, .size = 8},
		{.request = VHOST_SET_MEM_TABLE, .size = 40, .payload.memory.count = 1},
		{.request = VHOST_SET_MEM_TABLE, .size = 264, .payload.memory.count = 9},
		{.request = VHOST_ADD_MEM_REG, .size = 40},
		{.request = VHOST_SET_OWNER, .fd_count = 3, .fds = {0, 0, 0}},
		{.request = VHOST_GET_VRING_BASE, .size = 8, .payload.value = TOY_QUEUES},
		{.request = VHOST_GET_FEATURES, .flags = 2},
	};
	unsigned int before;

	for (unsigned int i = 0; i < ARRAY_SIZE(messages); i++) {
		struct vhost_message reply;

		disconnect_raw(state);
		before = open_descriptors();
		connect_raw(state);
		start_device(0);
		messages[i].flags |= VHOST_FLAG_VERSION | VHOST_FLAG_NEED_REPLY;
		assert_int_equal(vhost_message_send(raw, &messages[i]), 0);
		assert_true(vhost_message_receive(raw, &reply) <= 0);
		assert_int_equal(hang_up(), -EPROTO);
		fd_close(&error_fd);
		machine_destroy(&machine);
		assert_int_equal(open_descriptors(), before);
		connect_raw(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RAW_TEST(what_is_offered),
		RAW_TEST(the_configuration_can_be_read),
		RAW_TEST(regions_must_lie_in_their_file),
		RAW_TEST(the_memory_slots_have_an_end),
		RAW_TEST(rings_must_be_usable),
		RAW_TEST(only_eventfds_are_signals),
		RAW_TEST(only_sealed_memory_is_mapped),
		RAW_TEST(wrong_forms_end_the_connection),
	};

	log_set_level(LOG_QUIET); /* refusals are what is tested */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
