/* SPDX-License-Identifier: Apache-2.0 */
/* The vhost-user front end against our own back end, on both loops. */
#include "vmm/virtio/vhost_frontend.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/vhost_machine.h"

static const enum loop_backend loop_backends[] = {LOOP_BACKEND_IO_URING, LOOP_BACKEND_EPOLL};

/* More requests than a 16-bit index counts, twice over the same connection. */
static void requests_are_answered(void **state)
{
	struct machine machine;

	(void)state;
	for (unsigned int variant = 0; variant < 8; variant++) {
		const bool event_idx = variant & 1, deferred = variant & 2;
		const unsigned int total = deferred ? 500 : 70000;

		machine_create(&machine, EFD_NONBLOCK);
		start_toy(&machine, loop_backends[variant / 4], deferred);
		for (unsigned int life = 0; life < 2; life++) {
			assert_int_equal(activate(&machine, event_idx), 0);
			exchange(&machine, total);
			reset(&machine);
		}
		stop_toy(&machine);
		assert_int_equal(machine.toy.served, 2 * total);
		assert_true(machine.toy.counters.interrupts <= 2 * total);
		assert_int_equal(machine.toy.drains, 2 * TOY_QUEUES);
		machine_destroy(&machine);
	}
}

/* Descriptors as another front end may make them: blocking ones, which stay so. */
static void blocking_eventfds_work(void **state)
{
	struct machine machine;

	(void)state;
	for (unsigned int variant = 0; variant < 2; variant++) {
		machine_create(&machine, 0);
		start_toy(&machine, loop_backends[variant], false);
		assert_int_equal(activate(&machine, true), 0);
		exchange(&machine, 2000);
		reset(&machine);
		stop_toy(&machine);
		assert_false(fcntl(machine.kick_fds[0], F_GETFL) & O_NONBLOCK);
		assert_false(fcntl(machine.interrupt_fd, F_GETFL) & O_NONBLOCK);
		machine_destroy(&machine);
	}
}

/* What was added before one kick is answered with one interrupt. */
static void a_batch_costs_one_kick_and_one_interrupt(void **state)
{
	struct machine machine;

	(void)state;
	for (unsigned int variant = 0; variant < 2; variant++) {
		machine_create(&machine, EFD_NONBLOCK);
		start_toy(&machine, loop_backends[variant], false);
		assert_int_equal(activate(&machine, true), 0);
		memset(requests, 0, sizeof(requests));
		for (unsigned int batch = 0; batch < 100; batch++) {
			for (unsigned int i = 0; i < 10; i++)
				assert_true(add_request(&machine, 1));
			assert_false(ring_want_interrupt(&machine.drivers[1]));
			assert_true(ring_show(&machine.drivers[1]));
			kick(&machine, 1);
			wait_for_interrupt(&machine);
			assert_int_equal(collect(&machine, 1), 10);
		}
		reset(&machine);
		stop_toy(&machine);
		assert_int_equal(machine.toy.counters.kicks, 100);
		assert_int_equal(machine.toy.counters.interrupts, 100);
		machine_destroy(&machine);
	}
}

/* A queue is taken back only when what the device had begun is done and shown. */
static void a_reset_waits_for_requests_in_flight(void **state)
{
	struct machine machine;

	(void)state;
	for (unsigned int variant = 0; variant < 2; variant++) {
		unsigned int taken = 0;

		machine_create(&machine, EFD_NONBLOCK);
		start_toy(&machine, loop_backends[variant], true);
		for (unsigned int life = 0; life < 100; life++) {
			unsigned int answered;

			assert_int_equal(activate(&machine, life % 2), 0);
			memset(requests, 0, sizeof(requests));
			for (unsigned int i = 0; i < 8; i++)
				assert_true(add_request(&machine, 0));
			ring_show(&machine.drivers[0]);
			kick(&machine, 0);
			if (life % 2)
				usleep(200);
			reset(&machine);
			answered = collect(&machine, 0);
			assert_true(answered <= 8);
			taken += answered;
			usleep(100);
			assert_int_equal(collect(&machine, 0), 0);
		}
		stop_toy(&machine);
		assert_int_equal(machine.toy.served, taken);
		machine_destroy(&machine);
	}
}

static void features_and_configuration_come_through(void **state)
{
	const struct virtio_device_description *device;
	struct machine machine;

	(void)state;
	machine_create(&machine, EFD_NONBLOCK);
	start_toy(&machine, LOOP_BACKEND_ANY, false);
	device = vhost_frontend_device(machine.frontend);
	assert_true(device->features == TOY_FEATURES);
	assert_int_equal(device->id, VIRTIO_DEVICE_FS);
	assert_int_equal(device->queue_count, TOY_QUEUES);
	assert_int_equal(device->queue_size, SIZE);
	assert_int_equal(device->config_size, 20);
	assert_memory_equal(device->config, "configuration\0\0\0\0\0\0\0", 20);
	assert_int_equal(activate(&machine, false), 0);
	reset(&machine);
	stop_toy(&machine);
	assert_true(machine.toy.features == ((TOY_FEATURES & ~(1ULL << VIRTIO_RING_F_EVENT_IDX)) |
					     (1ULL << VIRTIO_F_VERSION_1)));
	machine_destroy(&machine);
}

/* What a driver may write into the registers, and what then must not reach the back end. */
static void a_useless_set_up_is_refused(void **state)
{
	const struct virtio_device_description *device;
	struct virtio_activation activation;
	struct machine machine;

	(void)state;
	machine_create(&machine, EFD_NONBLOCK);
	start_toy(&machine, LOOP_BACKEND_ANY, false);
	device = vhost_frontend_device(machine.frontend);
	activation = (struct virtio_activation){
		.memory = &machine.memory,
		.queues = machine.setups,
		.kick_fds = machine.kick_fds,
		.interrupt_fd = machine.interrupt_fd,
		.error_fd = machine.error_fd,
	};
	for (unsigned int variant = 0; variant < 6; variant++) {
		struct virtio_queue_setup *setup = &machine.setups[1];

		assert_int_equal(activate(&machine, false), 0);
		reset(&machine);
		setup->size = (uint16_t[]){0, 3, SIZE * 2, SIZE, SIZE, SIZE}[variant];
		if (variant == 3)
			setup->descriptor_gpa = LOW_BYTES - 16;
		if (variant == 4)
			setup->available_gpa += 1;
		if (variant == 5)
			setup->used_gpa = UINT64_MAX - 3;
		assert_int_equal(device->ops->activate(device->device, &activation), -EINVAL);
		setup->ready = false; /* then it does not matter */
		assert_int_equal(device->ops->activate(device->device, &activation), 0);
		reset(&machine);
	}
	assert_int_equal(activate(&machine, false), 0);
	exchange(&machine, 100);
	stop_toy(&machine);
	machine_destroy(&machine);
}

/* The guest breaks one queue: the other goes on, and after a reset both do. */
static void a_broken_queue_stops_alone(void **state)
{
	struct machine machine;

	(void)state;
	for (unsigned int variant = 0; variant < 2; variant++) {
		machine_create(&machine, EFD_NONBLOCK);
		start_toy(&machine, loop_backends[variant], variant);
		assert_int_equal(activate(&machine, true), 0);
		memset(requests, 0, sizeof(requests));
		assert_true(add_request(&machine, 0));
		machine.drivers[0].available_index += 1000;
		ring_show(&machine.drivers[0]);
		kick(&machine, 0);
		for (unsigned int i = 0; i < 20; i++) {
			assert_true(add_request(&machine, 1));
			ring_show(&machine.drivers[1]);
			kick(&machine, 1);
			kick(&machine, 0);
			ring_want_interrupt(&machine.drivers[1]);
			while (!collect(&machine, 1))
				wait_for_interrupt(&machine);
		}
		assert_int_equal(collect(&machine, 0), 0);
		assert_int_not_equal(fd_drain_event(machine.error_fd), 0); /* the driver is told */
		reset(&machine);
		assert_int_equal(activate(&machine, true), 0);
		exchange(&machine, 1000);
		assert_int_equal(fd_drain_event(machine.error_fd), 0);
		stop_toy(&machine);
		assert_int_equal(machine.toy.served, 1020);
		machine_destroy(&machine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_answered),
		cmocka_unit_test(blocking_eventfds_work),
		cmocka_unit_test(a_batch_costs_one_kick_and_one_interrupt),
		cmocka_unit_test(a_reset_waits_for_requests_in_flight),
		cmocka_unit_test(features_and_configuration_come_through),
		cmocka_unit_test(a_useless_set_up_is_refused),
		cmocka_unit_test(a_broken_queue_stops_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
