/* SPDX-License-Identifier: Apache-2.0 */
/* The vhost-user back end while its rings run: what may change under them, and what ends them. */
#include "vmm/virtio/vhost_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/vhost_raw.h"

static void a_ring_is_served_while_enabled(void **state)
{
	(void)state;
	start_device(65530); /* its indices wrap on the way */
	add_and_kick(5);
	await_answers(5);
	assert_true(accepts_ring(VHOST_SET_VRING_ENABLE, 0, 0));
	add_and_kick(5);
	usleep(20000);
	assert_int_equal(collect(&machine, 0), 0);
	assert_true(accepts_ring(VHOST_SET_VRING_ENABLE, 0, 1));
	await_answers(5);
	assert_int_equal(get_base(0), 4);
	add_and_kick(3); /* stopped: nobody looks */
	usleep(20000);
	assert_int_equal(collect(&machine, 0), 0);
	assert_true(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	await_answers(3); /* started again where it was */
	assert_int_equal(hang_up(), 0);
	assert_int_equal(machine.toy.served, 13);
}

/* Without the protocol feature bit, rings need no enabling. */
static void an_old_front_end_needs_no_enable(void **state)
{
	(void)state;
	negotiate();
	assert_true(accepts_value(VHOST_SET_FEATURES, FEATURES));
	assert_true(accepts_table(both_regions, 2));
	prepare_queue(0, 0);
	memset(requests, 0, sizeof(requests));
	for (unsigned int i = 0; i < 4; i++)
		assert_true(add_request(&machine, 0));
	ring_show(&machine.drivers[0]); /* the kick for these went to somebody else */
	assert_true(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	await_answers(4);
	assert_int_equal(hang_up(), 0);
}

static void descriptors_can_be_exchanged_while_running(void **state)
{
	(void)state;
	start_device(0);
	for (unsigned int i = 0; i < 50; i++) {
		assert_true(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[i % 2]));
		assert_true(accepts_fd(VHOST_SET_VRING_CALL, 0, machine.interrupt_fd));
		for (unsigned int j = 0; j < 3; j++)
			assert_true(add_request(&machine, 0));
		ring_show(&machine.drivers[0]);
		kick(&machine, i % 2);
		await_answers(3);
	}
	/* without an interrupt the answers are there all the same */
	assert_true(accepts_value(VHOST_SET_VRING_CALL, VHOST_VRING_NO_FD));
	assert_true(add_request(&machine, 0));
	ring_show(&machine.drivers[0]);
	kick(&machine, 1);
	for (unsigned int i = 0; i < 5000 && collect(&machine, 0) == 0; i++)
		usleep(1000);
	assert_false(requests[0][0].busy);
	assert_int_equal(hang_up(), 0);
}

/* What nobody waits for, as FORGET, goes with the next kick, whichever ring it is of. */
static void a_kick_serves_the_rings_before_it(void **state)
{
	(void)state;
	start_device(0);
	start_queue(1, 0);
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 3; i++)
			assert_true(add_request(&machine, 0));
		ring_show(&machine.drivers[0]);
		assert_true(add_request(&machine, 1));
		ring_show(&machine.drivers[1]);
		kick(&machine, 1);
		while (collect(&machine, 1) == 0)
			wait_for_interrupt(&machine);
		/* The first ring was served before, and not only for being kicked itself. */
		assert_int_equal(collect(&machine, 0), 3);
	}
	assert_int_equal(hang_up(), 0);
	assert_int_equal(machine.toy.counters.kicks, 20);
}

static void guest_memory_can_be_exchanged_while_running(void **state)
{
	struct vhost_memory_region moved[2] = {both_regions[1], both_regions[0]};
	const struct vhost_memory_region more = {HIGH_GPA * 2, 4096, USER_ADDRESS * 2, 4096};

	(void)state;
	start_device(0);
	for (unsigned int i = 0; i < 20; i++) {
		add_and_kick(5);
		assert_true(accepts_table(i % 2 ? moved : both_regions, 2));
		await_answers(5);
		assert_true(accepts_region(VHOST_ADD_MEM_REG, &more));
		add_and_kick(5);
		assert_true(accepts_region(VHOST_REM_MEM_REG, &more));
		await_answers(5);
	}
	/* a table that is refused changes nothing */
	moved[0].size *= 2;
	assert_false(accepts_table(moved, 2));
	add_and_kick(5);
	await_answers(5);
	/* a table without the ring breaks it, and that is reported */
	assert_true(accepts_table(&both_regions[1], 1));
	assert_int_equal(fd_drain_event(error_fd), 1);
	add_and_kick(5);
	usleep(20000);
	assert_int_equal(collect(&machine, 0), 0);
	assert_int_equal(hang_up(), 0);
}

/* Mappings go away: until that is done nothing may be begun, on no queue, whatever is kicked. */
static void an_exchange_of_memory_keeps_all_queues_still(void **state)
{
	(void)state;
	start_device(0);
	start_queue(1, 0);
	for (unsigned int round = 0; round < 30; round++) {
		struct vhost_message message = {
			.request = VHOST_REM_MEM_REG,
			.flags = VHOST_FLAG_VERSION | VHOST_FLAG_NEED_REPLY,
			.size = 40,
		};

		for (unsigned int i = 0; i < 3; i++)
			assert_true(add_request(&machine, 0) && add_request(&machine, 1));
		ring_show(&machine.drivers[0]);
		ring_show(&machine.drivers[1]);
		kick(&machine, 1);
		memcpy(&message.payload.memory_region.region, &both_regions[1],
		       sizeof(both_regions[1]));
		assert_int_equal(vhost_message_send(raw, &message), 0);
		for (unsigned int i = 0; i < 20; i++) {
			kick(&machine, 0);
			usleep(50);
		}
		assert_int_equal(vhost_message_receive(raw, &message), 1);
		assert_true(message.payload.value == 0);
		/* what comes now lies in what is gone: it breaks the queue, not the device */
		get_base(0);
		get_base(1);
		assert_true(accepts_region(VHOST_ADD_MEM_REG, &both_regions[1]));
		start_queue(0, 0);
		start_queue(1, 0);
		memset(requests, 0, sizeof(requests));
	}
	assert_int_equal(hang_up(), 0);
}

/* The device works on requests when it is asked two things at once. */
static void answers_come_in_order(void **state)
{
	struct vhost_message message;

	(void)state;
	start_device(0);
	for (unsigned int round = 0; round < 20; round++) {
		add_and_kick(4);
		usleep(100);
		message = (struct vhost_message){
			.request = VHOST_GET_VRING_BASE, .flags = VHOST_FLAG_VERSION, .size = 8};
		assert_int_equal(vhost_message_send(raw, &message), 0);
		message.request = VHOST_GET_QUEUE_NUM;
		message.size = 0;
		assert_int_equal(vhost_message_send(raw, &message), 0);
		assert_int_equal(vhost_message_receive(raw, &message), 1);
		assert_int_equal(message.request, VHOST_GET_VRING_BASE);
		assert_int_equal(vhost_message_receive(raw, &message), 1);
		assert_int_equal(message.request, VHOST_GET_QUEUE_NUM);
		start_queue(0, 0);
		memset(requests, 0, sizeof(requests));
	}
	assert_int_equal(hang_up(), 0);
}

/* Sends SET_VRING_KICK, and SET_VRING_CALL without a descriptor, in one piece: the descriptor goes
 * with the first byte. */
static void send_kick_and_no_call(void)
{
	const uint32_t words[] = {VHOST_SET_VRING_KICK,
				  VHOST_FLAG_VERSION,
				  8,
				  0,
				  0,
				  VHOST_SET_VRING_CALL,
				  VHOST_FLAG_VERSION,
				  8,
				  VHOST_VRING_NO_FD,
				  0};

	assert_int_equal(fd_send(raw, words, sizeof(words), &machine.kick_fds[0], 1), 0);
}

/* The message that has a request served, and the one that takes the descriptor for its interrupt
 * away, come in one go. */
static void no_interrupt_is_lost_when_its_descriptor_changes(void **state)
{
	(void)state;
	start_device(0);
	for (unsigned int round = 0; round < 50; round++) {
		int old = fd_create_event();

		assert_true(accepts_fd(VHOST_SET_VRING_CALL, 0, old));
		assert_true(add_request(&machine, 0));
		ring_show(&machine.drivers[0]);
		send_kick_and_no_call();
		assert_true(ask_value(VHOST_GET_QUEUE_NUM) == TOY_QUEUES);
		assert_int_equal(collect(&machine, 0), 1);
		assert_int_equal(fd_drain_event(old), 1);
		fd_close(&old);
	}
	assert_int_equal(hang_up(), 0);
}

static void a_broken_ring_is_reported(void **state)
{
	(void)state;
	start_device(0);
	machine.drivers[0].available_index = 1000;
	ring_show(&machine.drivers[0]);
	kick(&machine, 0);
	for (unsigned int i = 0; i < 1000 && fd_drain_event(error_fd) == 0; i++)
		usleep(1000);
	ring_show(&machine.drivers[0]);
	kick(&machine, 0);
	usleep(10000);
	assert_int_equal(fd_drain_event(error_fd), 0); /* once */
	assert_int_equal(get_base(0), 0);
	prepare_queue(0, 0);
	assert_true(accepts_fd(VHOST_SET_VRING_KICK, 0, machine.kick_fds[0]));
	memset(requests, 0, sizeof(requests));
	add_and_kick(5);
	await_answers(5);
	assert_int_equal(hang_up(), 0);
}

static void a_busy_guest_does_not_lock_out_the_front_end(void **state)
{
	(void)state;
	start_device(0);
	add_and_kick(1);
	await_answers(1);
	__atomic_store_n(&machine.toy.flooded, true, __ATOMIC_RELAXED);
	add_and_kick(1);
	for (unsigned int i = 0; i < 100; i++) {
		assert_true(ask_value(VHOST_GET_QUEUE_NUM) == TOY_QUEUES);
		usleep(100);
	}
	assert_true(get_base(0) > 100);
	assert_int_equal(hang_up(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RAW_TEST(a_ring_is_served_while_enabled),
		RAW_TEST(an_old_front_end_needs_no_enable),
		RAW_TEST(descriptors_can_be_exchanged_while_running),
		RAW_TEST(a_kick_serves_the_rings_before_it),
		RAW_TEST(guest_memory_can_be_exchanged_while_running),
		cmocka_unit_test_setup_teardown(guest_memory_can_be_exchanged_while_running,
						connect_raw_deferred, disconnect_raw),
		cmocka_unit_test_setup_teardown(an_exchange_of_memory_keeps_all_queues_still,
						connect_raw_deferred, disconnect_raw),
		cmocka_unit_test_setup_teardown(answers_come_in_order, connect_raw_deferred,
						disconnect_raw),
		RAW_TEST(no_interrupt_is_lost_when_its_descriptor_changes),
		RAW_TEST(a_broken_ring_is_reported),
		RAW_TEST(a_busy_guest_does_not_lock_out_the_front_end),
	};

	log_set_level(LOG_QUIET); /* refusals are what is tested */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
