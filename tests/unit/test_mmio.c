/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/mmio.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

#define FEATURE_A         (UINT64_C(1) << 5)
#define FEATURE_B         (UINT64_C(1) << 40)
#define FEATURE_VERSION_1 (UINT64_C(1) << 32)
#define QUEUE_COUNT       2U
#define QUEUE_SIZE        64U

/* A device that notes what it was told. */
struct toy {
	int activate_result;
	int process_result;
	unsigned int activated;
	unsigned int resets;
	unsigned int processed[QUEUE_COUNT];
	struct virtio_activation activation;
	struct virtio_queue_setup queues[QUEUE_COUNT];
};

struct fixture {
	struct toy toy;
	struct virtio_device_ops ops;
	struct virtio_device_description description;
	struct guest_memory memory;
	struct loop *loop;
	struct virtio_mmio *mmio;
	int interrupt_fd;
	_Alignas(4096) uint8_t page[VIRTIO_MMIO_PAGE_SIZE];
};

static int toy_activate(void *device, const struct virtio_activation *activation)
{
	struct toy *toy = device;

	toy->activated++;
	toy->activation = *activation;
	memcpy(toy->queues, activation->queues, sizeof(toy->queues));
	return toy->activate_result;
}

static void toy_reset(void *device)
{
	((struct toy *)device)->resets++;
}

static int toy_process_queue(void *device, unsigned int index)
{
	struct toy *toy = device;

	toy->processed[index]++;
	return toy->process_result;
}

static const uint8_t config[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void create(struct fixture *f, enum loop_backend backend, bool takes_kicks_itself)
{
	memset(f, 0, sizeof(*f));
	f->ops = (struct virtio_device_ops){toy_activate, toy_reset, toy_process_queue};
	if (takes_kicks_itself)
		f->ops.process_queue = NULL;
	f->description = (struct virtio_device_description){
		.ops = &f->ops,
		.device = &f->toy,
		.id = VIRTIO_DEVICE_RNG,
		.features = FEATURE_A | FEATURE_B,
		.queue_count = QUEUE_COUNT,
		.queue_size = QUEUE_SIZE,
		.config = config,
		.config_size = sizeof(config),
	};
	assert_int_equal(loop_create(&f->loop, 16, backend), 0);
	assert_int_equal(loop_enable(f->loop), 0);
	f->interrupt_fd = fd_create_event();
	assert_int_equal(virtio_mmio_create(&f->mmio, &f->description, &f->memory, f->loop, f->page,
					    f->interrupt_fd),
			 0);
}

static void destroy(struct fixture *f)
{
	virtio_mmio_destroy(f->mmio);
	loop_destroy(f->loop);
	fd_close(&f->interrupt_fd);
}

static int setup_any(void **state)
{
	static struct fixture fixture;

	create(&fixture, LOOP_BACKEND_ANY, false);
	*state = &fixture;
	return 0;
}

static int setup_epoll(void **state)
{
	static struct fixture fixture;

	create(&fixture, LOOP_BACKEND_EPOLL, false);
	*state = &fixture;
	return 0;
}

static int setup_own_kicks(void **state)
{
	static struct fixture fixture;

	create(&fixture, LOOP_BACKEND_ANY, true);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	destroy(*state);
	return 0;
}

static uint32_t get(struct fixture *f, uint64_t offset)
{
	uint32_t read, mapped;

	/* The guest reads the page or traps: both must give the same. */
	virtio_mmio_read(f->mmio, offset, &read, sizeof(read));
	memcpy(&mapped, f->page + offset, sizeof(mapped));
	assert_int_equal(read, mapped);
	return read;
}

static void set(struct fixture *f, uint64_t offset, uint32_t value)
{
	virtio_mmio_write(f->mmio, offset, &value, sizeof(value));
}

static void write_features(struct fixture *f, uint64_t features)
{
	set(f, 0x24, 1);
	set(f, 0x20, (uint32_t)(features >> 32));
	set(f, 0x24, 0);
	set(f, 0x20, (uint32_t)features);
}

static void write_queue(struct fixture *f, uint32_t index)
{
	set(f, 0x30, index);
	set(f, 0x38, 16);
	set(f, 0x80, 0x1000 + index);
	set(f, 0x84, 0x11);
	set(f, 0x90, 0x2000 + index);
	set(f, 0x94, 0x22);
	set(f, 0xa0, 0x3000 + index);
	set(f, 0xa4, 0x33);
	set(f, 0x44, 1);
}

/* As Linux's driver does it */
static void bring_up(struct fixture *f)
{
	set(f, 0x70, 0);
	set(f, 0x70, 1);
	set(f, 0x70, 3);
	write_features(f, FEATURE_VERSION_1 | FEATURE_A);
	set(f, 0x70, 11);
	assert_int_equal(get(f, 0x70), 11);
	write_queue(f, 0);
	write_queue(f, 1);
	set(f, 0x70, 15);
}

static void settle_loop(struct fixture *f)
{
	while (loop_run_once(f->loop, 0) > 0)
		;
}

static void identity(void **state)
{
	struct fixture *f = *state;

	assert_memory_equal(f->page, "virt", 4);
	assert_int_equal(get(f, 0x04), 2);
	assert_int_equal(get(f, 0x08), VIRTIO_DEVICE_RNG);
	assert_memory_equal(f->page + 0x0c, "MVAG", 4);
	assert_int_equal(get(f, 0x60), 1);
	assert_int_equal(get(f, 0x70), 0);
	for (uint64_t offset = 0xb0; offset < 0xc0; offset += 4)
		assert_int_equal(get(f, offset), UINT32_MAX);
	assert_int_equal(get(f, 0xfc), 0);
	assert_int_equal(virtio_mmio_queue_count(f->mmio), QUEUE_COUNT);
}

static void offered_features(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(get(f, 0x10), FEATURE_A);
	set(f, 0x14, 1);
	assert_int_equal(get(f, 0x10), (FEATURE_B | FEATURE_VERSION_1) >> 32);
	set(f, 0x14, 2);
	assert_int_equal(get(f, 0x10), 0);
	set(f, 0x14, UINT32_MAX);
	assert_int_equal(get(f, 0x10), 0);
	set(f, 0x14, 0);
	assert_int_equal(get(f, 0x10), FEATURE_A);
}

static void bring_up_activates(void **state)
{
	struct fixture *f = *state;

	bring_up(f);
	assert_int_equal(get(f, 0x70), 15);
	assert_int_equal(f->toy.activated, 1);
	assert_int_equal(f->toy.activation.features, FEATURE_VERSION_1 | FEATURE_A);
	assert_int_equal(f->toy.activation.interrupt_fd, f->interrupt_fd);
	for (unsigned int i = 0; i < QUEUE_COUNT; i++) {
		assert_true(f->toy.queues[i].ready);
		assert_int_equal(f->toy.queues[i].size, 16);
		assert_int_equal(f->toy.queues[i].descriptor_gpa, UINT64_C(0x1100001000) + i);
		assert_int_equal(f->toy.queues[i].available_gpa, UINT64_C(0x2200002000) + i);
		assert_int_equal(f->toy.queues[i].used_gpa, UINT64_C(0x3300003000) + i);
		assert_int_equal(f->toy.activation.kick_fds[i], virtio_mmio_kick_fd(f->mmio, i));
	}
	set(f, 0x70, 15); /* once is enough */
	assert_int_equal(f->toy.activated, 1);
}

static void features_not_offered(void **state)
{
	struct fixture *f = *state;

	set(f, 0x70, 3);
	assert_int_equal(get(f, 0x70), 3);
	write_features(f, FEATURE_VERSION_1 | (UINT64_C(1) << 6));
	set(f, 0x70, 11);
	assert_int_equal(get(f, 0x70), 3);
	write_features(f, FEATURE_A); /* without VERSION_1 */
	set(f, 0x70, 11);
	assert_int_equal(get(f, 0x70), 3);
	set(f, 0x70, 15); /* DRIVER_OK without FEATURES_OK, or with a refused one */
	assert_int_equal(get(f, 0x70), 3);
	set(f, 0x70, 7);
	assert_int_equal(get(f, 0x70), 3);
	assert_int_equal(f->toy.activated, 0);
	write_features(f, FEATURE_VERSION_1);
	set(f, 0x24, 2); /* no such half: must not touch the others */
	set(f, 0x20, UINT32_MAX);
	set(f, 0x70, 11);
	assert_int_equal(get(f, 0x70), 11);
	write_features(f, FEATURE_VERSION_1 | FEATURE_A); /* too late */
	set(f, 0x70, 15);
	assert_int_equal(f->toy.activation.features, FEATURE_VERSION_1);
}

static void status_order(void **state)
{
	struct fixture *f = *state;

	set(f, 0x70, 2); /* DRIVER before ACKNOWLEDGE */
	assert_int_equal(get(f, 0x70), 0);
	write_features(f, FEATURE_VERSION_1);
	set(f, 0x70, 9); /* FEATURES_OK before DRIVER */
	assert_int_equal(get(f, 0x70), 1);
	set(f, 0x70, 2); /* clears ACKNOWLEDGE: ignored as a whole */
	assert_int_equal(get(f, 0x70), 1);
	set(f, 0x70, 1 | 64); /* DEVICE_NEEDS_RESET is ours */
	assert_int_equal(get(f, 0x70), 1);
	set(f, 0x70, 3 | 128); /* FAILED: no way on */
	set(f, 0x70, 15 | 128);
	assert_int_equal(get(f, 0x70), 11 | 128);
	assert_int_equal(f->toy.activated, 0);
	set(f, 0x70, 0);
	assert_int_equal(get(f, 0x70), 0);
	assert_int_equal(f->toy.resets, 0); /* it was never active */
}

static void queue_registers(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(get(f, 0x34), QUEUE_SIZE);
	set(f, 0x30, QUEUE_COUNT);
	assert_int_equal(get(f, 0x34), 0);
	set(f, 0x44, 1);
	assert_int_equal(get(f, 0x44), 0);
	set(f, 0x30, UINT32_MAX);
	assert_int_equal(get(f, 0x34), 0);
	write_queue(f, 1);
	assert_int_equal(get(f, 0x44), 1);
	set(f, 0x80, 0xdead0000); /* ready: frozen */
	set(f, 0x30, 0);
	assert_int_equal(get(f, 0x44), 0);
	set(f, 0x38, QUEUE_SIZE + 1); /* larger than QueueNumMax */
	set(f, 0x44, 1);
	set(f, 0x70, 3);
	write_features(f, FEATURE_VERSION_1);
	set(f, 0x70, 11);
	set(f, 0x70, 15);
	assert_int_equal(f->toy.queues[0].size, 0);
	assert_int_equal(f->toy.queues[1].descriptor_gpa, UINT64_C(0x1100001001));
}

static void frozen_after_driver_ok(void **state)
{
	struct fixture *f = *state;
	const struct virtio_queue_setup *queue;

	bring_up(f);
	queue = &f->toy.activation.queues[1];
	set(f, 0x30, 1);
	set(f, 0x44, 0);
	assert_int_equal(get(f, 0x44), 1);
	set(f, 0x38, 2);
	set(f, 0x80, 0);
	set(f, 0xa4, 0xffffffff);
	assert_true(queue->ready);
	assert_int_equal(queue->size, 16);
	assert_int_equal(queue->descriptor_gpa, UINT64_C(0x1100001001));
	assert_int_equal(queue->used_gpa, UINT64_C(0x3300003001));
	set(f, 0x70, 0);
	assert_int_equal(f->toy.resets, 1);
	assert_int_equal(get(f, 0x44), 0);
	set(f, 0x30, 1);
	assert_int_equal(get(f, 0x44), 0);
	bring_up(f);
	assert_int_equal(f->toy.activated, 2);
	assert_int_equal(get(f, 0x70), 15);
}

static void activation_failure(void **state)
{
	struct fixture *f = *state;

	f->toy.activate_result = -EINVAL;
	bring_up(f);
	assert_int_equal(get(f, 0x70), 15 | 64);
	set(f, 0x50, 0);
	settle_loop(f);
	assert_int_equal(f->toy.processed[0], 0);
	set(f, 0x70, 0);
	assert_int_equal(get(f, 0x70), 0);
	assert_int_equal(f->toy.resets, 1); /* what had begun before it failed must end */
	f->toy.activate_result = 0;
	bring_up(f);
	assert_int_equal(f->toy.activated, 2);
	assert_int_equal(get(f, 0x70), 15);
}

static void kicks(void **state)
{
	struct fixture *f = *state;

	fd_signal_event(virtio_mmio_kick_fd(f->mmio, 0));
	settle_loop(f);
	assert_int_equal(f->toy.processed[0], 0);
	bring_up(f);
	for (unsigned int i = 1; i <= 3; i++) {
		fd_signal_event(virtio_mmio_kick_fd(f->mmio, 1));
		assert_int_equal(loop_run_once(f->loop, 1000), 1);
		assert_int_equal(f->toy.processed[1], i);
	}
	set(f, 0x50, 0); /* the trapping path */
	assert_int_equal(loop_run_once(f->loop, 1000), 1);
	assert_int_equal(f->toy.processed[0], 1);
	set(f, 0x50, QUEUE_COUNT);
	set(f, 0x50, UINT32_MAX);
	settle_loop(f);
	set(f, 0x50, 0);
	set(f, 0x70, 0); /* a kick that the reset overtook */
	settle_loop(f);
	assert_int_equal(f->toy.processed[0], 1);
	assert_int_equal(f->toy.processed[1], 3);
}

static void broken_ring(void **state)
{
	struct fixture *f = *state;

	f->toy.process_result = -EPROTO;
	bring_up(f);
	set(f, 0x50, 0);
	assert_int_equal(loop_run_once(f->loop, 1000), 1);
	assert_int_equal(get(f, 0x70), 15 | 64);
	set(f, 0x50, 0);
	settle_loop(f);
	assert_int_equal(f->toy.processed[0], 1);
	f->toy.process_result = 0;
	set(f, 0x70, 0);
	assert_int_equal(f->toy.resets, 1);
	bring_up(f);
	assert_int_equal(get(f, 0x70), 15);
	set(f, 0x50, 0);
	assert_int_equal(loop_run_once(f->loop, 1000), 1);
	assert_int_equal(f->toy.processed[0], 2);
}

static void kicks_are_the_devices(void **state)
{
	struct fixture *f = *state;

	bring_up(f);
	set(f, 0x50, 1);
	set(f, 0x50, 1);
	assert_int_equal(loop_run_once(f->loop, 0), 0);
	assert_int_equal(fd_drain_event(virtio_mmio_kick_fd(f->mmio, 1)), 2);
	assert_int_equal(f->toy.processed[1], 0);
}

static void configuration_space(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[16];
	uint32_t value = UINT32_MAX;

	for (unsigned int length = 1; length <= 8; length *= 2) {
		for (unsigned int offset = 0; offset + length <= sizeof(config); offset++) {
			virtio_mmio_read(f->mmio, 0x100 + offset, bytes, length);
			assert_memory_equal(bytes, config + offset, length);
		}
	}
	virtio_mmio_write(f->mmio, 0x100, &value, sizeof(value));
	assert_memory_equal(f->page + 0x100, config, sizeof(config));
	virtio_mmio_read(f->mmio, VIRTIO_MMIO_PAGE_SIZE - 4, bytes, 8);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(bytes[i], 0);
	virtio_mmio_read(f->mmio, UINT64_MAX - 2, bytes, 8);
	assert_int_equal(bytes[0], 0);
}

static void odd_accesses(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[8] = {1, 0, 0, 0, 0, 0, 0, 0};

	virtio_mmio_write(f->mmio, 0x70, bytes, 1);
	virtio_mmio_write(f->mmio, 0x70, bytes, 2);
	virtio_mmio_write(f->mmio, 0x70, bytes, 8);
	virtio_mmio_write(f->mmio, 0x6f, bytes, 4);
	virtio_mmio_write(f->mmio, 0x10070, bytes, 4);
	assert_int_equal(get(f, 0x70), 0);
	virtio_mmio_read(f->mmio, 0x00, bytes, 1);
	assert_int_equal(bytes[0], 0);
	virtio_mmio_read(f->mmio, 0x02, bytes, 4);
	assert_int_equal(bytes[0], 0);
	virtio_mmio_read(f->mmio, 0x00, bytes, 8);
	assert_int_equal(bytes[0], 0);
}

static bool is_postponable(uint64_t offset)
{
	unsigned int count;
	const struct virtio_mmio_register_range *ranges = virtio_mmio_postponable(&count);

	for (unsigned int i = 0; i < count; i++) {
		if (offset >= ranges[i].offset && offset - ranges[i].offset < ranges[i].length)
			return true;
	}
	return false;
}

/* A whole bring-up in which every write that may be held back is, as long as it may. */
static void postponed_writes(void **state)
{
	static const struct {
		uint32_t offset, value;
	} writes[] = {
		{0x70, 0},      {0x70, 1},      {0x70, 3},      {0x24, 1},      {0x20, 1},
		{0x24, 0},      {0x20, 0x20},   {0x70, 11},     {0x30, 0},      {0x38, 16},
		{0x80, 0x1000}, {0x84, 0x11},   {0x90, 0x2000}, {0x94, 0x22},   {0xa0, 0x3000},
		{0xa4, 0x33},   {0x44, 1},      {0x30, 1},      {0x38, 16},     {0x80, 0x1001},
		{0x84, 0x11},   {0x90, 0x2001}, {0x94, 0x22},   {0xa0, 0x3001}, {0xa4, 0x33},
		{0x44, 1},      {0x70, 15},
	};
	static const uint32_t synchronous[] = {0x14, 0x30, 0x50, 0x64, 0x70, 0xac, 0x100};
	struct fixture *f = *state;
	unsigned int delivered = 0;
	unsigned int held_back = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(synchronous); i++)
		assert_false(is_postponable(synchronous[i]));
	for (unsigned int i = 0; i < ARRAY_SIZE(writes); i++) {
		if (is_postponable(writes[i].offset)) {
			held_back++;
			continue;
		}
		for (; delivered <= i; delivered++)
			set(f, writes[delivered].offset, writes[delivered].value);
		if (writes[i].offset == 0x30) {
			assert_int_equal(get(f, 0x34), QUEUE_SIZE);
			assert_int_equal(get(f, 0x44), 0);
		}
	}
	assert_int_equal(held_back, 20);
	assert_int_equal(get(f, 0x70), 15);
	assert_int_equal(f->toy.activation.features, FEATURE_VERSION_1 | FEATURE_A);
	assert_int_equal(f->toy.queues[1].descriptor_gpa, UINT64_C(0x1100001001));
	assert_int_equal(f->toy.queues[0].used_gpa, UINT64_C(0x3300003000));
}

static void too_large(void **state)
{
	struct fixture *f = *state;
	struct virtio_device_description bad = f->description;
	struct virtio_mmio *mmio;

	bad.queue_count = LIMIT_DEVICE_QUEUES + 1;
	assert_int_equal(virtio_mmio_create(&mmio, &bad, &f->memory, f->loop, f->page, -1),
			 -EINVAL);
	bad = f->description;
	bad.config_size = VIRTIO_MMIO_PAGE_SIZE - 0x100 + 1;
	assert_int_equal(virtio_mmio_create(&mmio, &bad, &f->memory, f->loop, f->page, -1),
			 -EINVAL);
}

static void destroy_resets(void **state)
{
	struct fixture fixture;

	(void)state;
	create(&fixture, LOOP_BACKEND_ANY, false);
	bring_up(&fixture);
	destroy(&fixture);
	assert_int_equal(fixture.toy.resets, 1);
	virtio_mmio_destroy(NULL);
}

/* A device process gives up a queue: the driver sees it, until it resets the device. */
static void a_queue_broken_elsewhere_is_shown(void **state)
{
	struct fixture *f = *state;

	bring_up(f);
	assert_int_equal(get(f, 0x70), 15);
	fd_signal_event(f->toy.activation.error_fd);
	assert_int_equal(loop_run_once(f->loop, 1000), 1);
	assert_int_equal(get(f, 0x70), 15 | 64);
	bring_up(f);
	assert_int_equal(get(f, 0x70), 15);
	/* What is said of queues that were taken back meanwhile is not said of the next. */
	fd_signal_event(f->toy.activation.error_fd);
	bring_up(f);
	loop_run_once(f->loop, 0);
	assert_int_equal(get(f, 0x70), 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(identity, setup_any, teardown),
		cmocka_unit_test_setup_teardown(offered_features, setup_any, teardown),
		cmocka_unit_test_setup_teardown(bring_up_activates, setup_any, teardown),
		cmocka_unit_test_setup_teardown(features_not_offered, setup_any, teardown),
		cmocka_unit_test_setup_teardown(status_order, setup_any, teardown),
		cmocka_unit_test_setup_teardown(queue_registers, setup_any, teardown),
		cmocka_unit_test_setup_teardown(frozen_after_driver_ok, setup_any, teardown),
		cmocka_unit_test_setup_teardown(activation_failure, setup_any, teardown),
		cmocka_unit_test_setup_teardown(kicks, setup_any, teardown),
		cmocka_unit_test_setup_teardown(kicks, setup_epoll, teardown),
		cmocka_unit_test_setup_teardown(broken_ring, setup_any, teardown),
		cmocka_unit_test_setup_teardown(broken_ring, setup_epoll, teardown),
		cmocka_unit_test_setup_teardown(kicks_are_the_devices, setup_own_kicks, teardown),
		cmocka_unit_test_setup_teardown(a_queue_broken_elsewhere_is_shown, setup_own_kicks,
						teardown),
		cmocka_unit_test_setup_teardown(configuration_space, setup_any, teardown),
		cmocka_unit_test_setup_teardown(odd_accesses, setup_any, teardown),
		cmocka_unit_test_setup_teardown(postponed_writes, setup_any, teardown),
		cmocka_unit_test_setup_teardown(too_large, setup_any, teardown),
		cmocka_unit_test(destroy_resets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
