/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of register accesses, kicks and failing devices against the MMIO transport. Each step
 * takes a few bytes of the input; after each, everything that the guest can read and everything
 * that the device was told is compared with what virtio 1.2, 4.2 allows.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/virtio/mmio.h"

#define VERSION_1   (UINT64_C(1) << 32)
#define FEATURES    (UINT64_C(1) << 5 | UINT64_C(1) << 29 | UINT64_C(1) << 40)
#define QUEUE_COUNT 3U
#define QUEUE_SIZE  64U

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The device, and what it saw. */
struct toy {
	bool begun; /* activation was tried, and no reset came since */
	bool active;
	bool fails_to_activate;
	bool breaks;
	const struct virtio_queue_setup *queues; /* the transport's */
	struct virtio_queue_setup frozen[QUEUE_COUNT];
};

struct input {
	const uint8_t *next;
	size_t left;
};

static const uint8_t config[6] = {9, 8, 7, 6, 5, 4};

static int toy_activate(void *device, const struct virtio_activation *activation)
{
	struct toy *toy = device;

	CHECK(!toy->begun);
	CHECK(!(activation->features & ~(FEATURES | VERSION_1)));
	CHECK(activation->features & VERSION_1);
	for (unsigned int i = 0; i < QUEUE_COUNT; i++)
		CHECK(activation->queues[i].size <= QUEUE_SIZE && activation->kick_fds[i] >= 0);
	toy->begun = true;
	if (toy->fails_to_activate)
		return -EINVAL;
	toy->active = true;
	toy->queues = activation->queues;
	memcpy(toy->frozen, activation->queues, sizeof(toy->frozen));
	return 0;
}

static void toy_reset(void *device)
{
	struct toy *toy = device;

	CHECK(toy->begun);
	toy->begun = toy->active = false;
}

static int toy_process_queue(void *device, unsigned int index)
{
	struct toy *toy = device;

	CHECK(toy->active && index < QUEUE_COUNT && toy->frozen[index].ready);
	return toy->breaks ? -EPROTO : 0;
}

static uint64_t take(struct input *input, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++) {
		value = value << 8 | (input->left ? *input->next : 0);
		if (input->left) {
			input->next++;
			input->left--;
		}
	}
	return value;
}

static uint32_t page_word(const uint8_t *page, unsigned int offset)
{
	uint32_t value;

	memcpy(&value, page + offset, sizeof(value));
	return value;
}

static void check_page(const uint8_t *page, const struct toy *toy)
{
	const uint32_t status = page_word(page, 0x70);
	const uint32_t size_max = page_word(page, 0x34);

	CHECK(memcmp(page, "virt", 4) == 0 && page_word(page, 0x04) == 2);
	CHECK(page_word(page, 0x08) == VIRTIO_DEVICE_RNG && memcmp(page + 0x0c, "MVAG", 4) == 0);
	CHECK(page_word(page, 0x60) == 1 && page_word(page, 0xfc) == 0);
	for (unsigned int offset = 0xb0; offset < 0xc0; offset += 4)
		CHECK(page_word(page, offset) == UINT32_MAX);
	CHECK(memcmp(page + 0x100, config, sizeof(config)) == 0 && page[0x106] == 0);
	CHECK(size_max == QUEUE_SIZE || (size_max == 0 && page_word(page, 0x44) == 0));
	CHECK(page_word(page, 0x44) <= 1);
	CHECK(!(status & ~(1U | 2U | 4U | 8U | 64U | 128U)));
	CHECK(!(status & 2) || (status & 1));
	CHECK(!(status & 8) || (status & 2));
	CHECK(!(status & 4) || (status & 8));
	CHECK(toy->begun == !!(status & 4));
	CHECK(toy->active || !(status & 4) || (status & 64));
	if (toy->active)
		CHECK(memcmp(toy->queues, toy->frozen, sizeof(toy->frozen)) == 0);
}

/* A register of the driver's, or any offset at all. */
static uint64_t take_offset(struct input *input)
{
	static const uint16_t registers[] = {0x70, 0x70, 0x14, 0x20, 0x24, 0x30, 0x38, 0x44, 0x50,
					     0x64, 0x80, 0x84, 0x90, 0x94, 0xa0, 0xa4, 0xac};
	uint64_t choice = take(input, 1);

	if (choice < sizeof(registers) / sizeof(registers[0]))
		return registers[choice];
	return choice < 0xf0 ? take(input, 2) : take(input, 8);
}

static void write_some(struct virtio_mmio *mmio, const uint8_t *page, struct input *input)
{
	const uint32_t before = page_word(page, 0x70);
	uint64_t offset = take_offset(input);
	uint64_t kind = take(input, 1);
	/* Small values, single bits and anything; now and then another length. */
	uint64_t value = kind < 0x80   ? kind & 0xf
			 : kind < 0xc0 ? UINT64_C(1) << (kind & 31)
				       : take(input, 4);
	unsigned int length = kind == 0xff ? 1U << take(input, 1) % 4 : 4;

	virtio_mmio_write(mmio, offset, &value, length);
	/* Status bits go only by a reset. */
	if (offset != 0x70 || length != 4 || (uint32_t)value != 0)
		CHECK((page_word(page, 0x70) & before) == before);
	else
		CHECK(page_word(page, 0x70) == 0);
	if (offset == 0x30 && length == 4)
		CHECK(page_word(page, 0x34) == ((uint32_t)value < QUEUE_COUNT ? QUEUE_SIZE : 0));
}

static void read_some(struct virtio_mmio *mmio, const uint8_t *page, struct input *input)
{
	uint64_t offset = take_offset(input);
	unsigned int length = 1U << take(input, 1) % 4;
	uint8_t bytes[8];

	virtio_mmio_read(mmio, offset, bytes, length);
	if (offset < 0x100 && (length != 4 || offset % 4))
		CHECK(bytes[0] == 0);
	else if (offset <= VIRTIO_MMIO_PAGE_SIZE - length)
		CHECK(memcmp(bytes, page + offset, length) == 0);
}

static void step(struct virtio_mmio *mmio, struct loop *loop, const uint8_t *page, struct toy *toy,
		 struct input *input)
{
	switch (take(input, 1) % 16) {
	case 0:
		fd_signal_event(
			virtio_mmio_kick_fd(mmio, (unsigned int)take(input, 1) % QUEUE_COUNT));
		break;
	case 1:
		CHECK(loop_run_once(loop, 0) >= 0);
		break;
	case 2:
		read_some(mmio, page, input);
		break;
	case 3:
		toy->fails_to_activate = take(input, 1) & 1;
		toy->breaks = take(input, 1) & 1;
		break;
	default:
		write_some(mmio, page, input);
		break;
	}
	check_page(page, toy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct virtio_device_ops ops = {toy_activate, toy_reset, toy_process_queue};
	static _Alignas(4096) uint8_t page[VIRTIO_MMIO_PAGE_SIZE];
	struct guest_memory memory = {0};
	struct toy toy = {0};
	const struct virtio_device_description description = {
		.ops = &ops,
		.device = &toy,
		.id = VIRTIO_DEVICE_RNG,
		.features = FEATURES,
		.queue_count = QUEUE_COUNT,
		.queue_size = QUEUE_SIZE,
		.config = config,
		.config_size = sizeof(config),
	};
	struct input input = {data, size};
	struct virtio_mmio *mmio;
	struct loop *loop;

	memset(page, 0, sizeof(page));
	CHECK(loop_create(&loop, 8, LOOP_BACKEND_EPOLL) == 0);
	CHECK(loop_enable(loop) == 0);
	CHECK(virtio_mmio_create(&mmio, &description, &memory, loop, page, -1) == 0);
	check_page(page, &toy);
	while (input.left)
		step(mmio, loop, page, &toy, &input);
	virtio_mmio_destroy(mmio);
	CHECK(!toy.begun);
	loop_destroy(loop);
	return 0;
}
