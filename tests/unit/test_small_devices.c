/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/guest_ring.h"
#include "vmm/base/bytes.h"
#include "vmm/loop/loop.h"
#include "vmm/virtio/balloon.h"
#include "vmm/virtio/mmio.h"
#include "vmm/virtio/net.h"
#include "vmm/virtio/rng.h"

#define PAGE      4096U
#define RING_SIZE 16U
#define QUEUES    3U

/* A guest with one of the devices, driven through its registers. */
struct fixture {
	struct ring_memory memory;
	struct loop *loop;
	struct virtio_mmio *mmio;
	int interrupt_fd;
	struct rng_device *rng;
	struct net_device *net;
	unsigned int frames_told;
	struct frame_summary frame; /* the last of them */
	struct balloon_device *balloon;
	struct guest_ring rings[QUEUES];
	_Alignas(4096) uint8_t page[VIRTIO_MMIO_PAGE_SIZE];
};

static void set(struct fixture *f, uint64_t offset, uint32_t value)
{
	virtio_mmio_write(f->mmio, offset, &value, sizeof(value));
}

static uint32_t get(struct fixture *f, uint64_t offset)
{
	uint32_t value;

	virtio_mmio_read(f->mmio, offset, &value, sizeof(value));
	return value;
}

/* Takes the features of the low half that are in @features. */
static void bring_up(struct fixture *f, const struct virtio_device_description *description,
		     uint32_t features)
{
	assert_int_equal(virtio_mmio_create(&f->mmio, description, &f->memory.guest, f->loop,
					    f->page, f->interrupt_fd),
			 0);
	set(f, 0x70, 3);
	set(f, 0x24, 1);
	set(f, 0x20, 1);
	set(f, 0x24, 0);
	set(f, 0x20, features);
	set(f, 0x70, 11);
	for (unsigned int i = 0; i < description->queue_count; i++) {
		struct virtio_queue_setup setup;

		guest_ring_create(&f->rings[i], &f->memory, RING_SIZE,
				  features & (1U << VIRTIO_RING_F_EVENT_IDX), &setup);
		set(f, 0x30, i);
		set(f, 0x38, setup.size);
		set(f, 0x80, (uint32_t)setup.descriptor_gpa);
		set(f, 0x90, (uint32_t)setup.available_gpa);
		set(f, 0xa0, (uint32_t)setup.used_gpa);
		set(f, 0x44, 1);
	}
	set(f, 0x70, 15);
	assert_int_equal(get(f, 0x70), 15);
}

static int setup(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;

	memset(f, 0, sizeof(*f));
	ring_memory_create(&f->memory);
	assert_int_equal(loop_create(&f->loop, 16, LOOP_BACKEND_ANY), 0);
	assert_int_equal(loop_enable(f->loop), 0);
	f->interrupt_fd = fd_create_event();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	virtio_mmio_destroy(f->mmio);
	rng_device_destroy(f->rng);
	net_device_destroy(f->net);
	balloon_device_destroy(f->balloon);
	loop_destroy(f->loop);
	fd_close(&f->interrupt_fd);
	ring_memory_destroy(&f->memory);
	return 0;
}

/* Adds one chain and runs the device until it wants no more turns. */
static void submit(struct fixture *f, unsigned int queue, const struct ring_segment *segments,
		   unsigned int count)
{
	assert_true(guest_ring_add(&f->rings[queue], segments, count) >= 0);
	if (guest_ring_wants_kick(&f->rings[queue]))
		fd_signal_event(virtio_mmio_kick_fd(f->mmio, queue));
	while (loop_run_once(f->loop, 0) > 0)
		;
}

/* The one used chain that the device must have interrupted for. Returns its count of bytes. */
static uint32_t collect(struct fixture *f, unsigned int queue)
{
	uint32_t written = 0;
	uint16_t head;

	assert_int_not_equal(fd_drain_event(f->interrupt_fd), 0);
	assert_true(guest_ring_take(&f->rings[queue], &head, &written));
	assert_false(guest_ring_take(&f->rings[queue], &head, &(uint32_t){0}));
	return written;
}

static unsigned int distinct_bytes(const uint8_t *bytes, size_t length)
{
	bool seen[256] = {0};
	unsigned int count = 0;

	for (size_t i = 0; i < length; i++) {
		count += !seen[bytes[i]];
		seen[bytes[i]] = true;
	}
	return count;
}

static void rng_fills(void **state)
{
	struct fixture *f = *state;
	uint64_t gpa = ring_memory_take(&f->memory, 3 * (uint64_t)LIMIT_RNG_REQUEST_BYTES);
	uint8_t *bytes = ring_memory_at(&f->memory, gpa);
	struct ring_segment pieces[] = {{gpa, 8, false}, {gpa + 16, 32, true}, {gpa + 64, 5, true}};
	struct ring_segment large = {gpa, 3 * LIMIT_RNG_REQUEST_BYTES, true};

	assert_int_equal(rng_device_create(&f->rng, f->loop), 0);
	bring_up(f, rng_device_description(f->rng), 1U << VIRTIO_RING_F_EVENT_IDX);
	submit(f, 0, pieces, ARRAY_SIZE(pieces));
	assert_int_equal(collect(f, 0), 37);
	assert_int_equal(distinct_bytes(bytes, 16), 1); /* the readable part, and the gaps */
	assert_int_equal(distinct_bytes(bytes + 48, 16), 1);
	assert_in_range(distinct_bytes(bytes + 16, 32), 8, 32);
	submit(f, 0, &large, 1);
	assert_int_equal(collect(f, 0), LIMIT_RNG_REQUEST_BYTES);
	assert_int_equal(distinct_bytes(bytes, LIMIT_RNG_REQUEST_BYTES), 256);
	assert_int_equal(distinct_bytes(bytes + LIMIT_RNG_REQUEST_BYTES, LIMIT_RNG_REQUEST_BYTES),
			 1);
	submit(f, 0, pieces, 1); /* nothing to write to */
	assert_int_equal(collect(f, 0), 0);
}

static void broken_ring_stops_the_device(void **state)
{
	struct fixture *f = *state;
	struct ring_segment outside = {UINT64_C(1) << 40, 8, true};

	assert_int_equal(rng_device_create(&f->rng, f->loop), 0);
	bring_up(f, rng_device_description(f->rng), 0);
	submit(f, 0, &outside, 1);
	assert_int_equal(get(f, 0x70), 15 | 64);
}

/* A queue that always has more gives the loop back after each of its sizes. */
static void requests_in_a_row(void **state)
{
	struct fixture *f = *state;
	uint64_t gpa = ring_memory_take(&f->memory, PAGE);
	struct ring_segment segment = {gpa, 16, true};
	uint32_t written = 0;
	uint16_t head;

	assert_int_equal(rng_device_create(&f->rng, f->loop), 0);
	bring_up(f, rng_device_description(f->rng), 0);
	for (unsigned int round = 0; round < 100; round++) {
		for (unsigned int i = 0; i < RING_SIZE - 1; i++)
			assert_true(guest_ring_add(&f->rings[0], &segment, 1) >= 0);
		submit(f, 0, &segment, 1);
		for (unsigned int i = 0; i < RING_SIZE; i++)
			assert_true(guest_ring_take(&f->rings[0], &head, &written));
		assert_int_equal(written, 16);
	}
}

static void keep_frame(void *context, const struct frame_summary *summary)
{
	struct fixture *f = context;

	f->frames_told++;
	f->frame = *summary;
}

static void net_counts_and_drops(void **state)
{
	struct fixture *f = *state;
	uint64_t gpa = ring_memory_take(&f->memory, 2 * PAGE);
	struct ring_segment receive = {gpa + PAGE, 2048, true};
	struct ring_segment frame[] = {{gpa, 12, false}, {gpa + 12, 60, false}};
	struct ring_segment runt = {gpa, 12, false};
	uint32_t written = 0;
	uint16_t head;

	assert_int_equal(net_device_create(&f->net, f->loop, keep_frame, f), 0);
	bring_up(f, net_device_description(f->net), 1U << 5 | 1U << 16);
	assert_int_equal(f->page[0x100] & 3, 2);  /* locally administered, not a group */
	assert_int_equal(get(f, 0x104) >> 16, 1); /* status: link up */
	assert_int_equal(get(f, 0x34), 256);
	submit(f, 0, &receive, 1);
	for (unsigned int i = 1; i <= 40; i++) {
		submit(f, 1, frame, 2);
		assert_int_equal(collect(f, 1), 0);
		assert_int_equal(net_device_counters(f->net).frames, i);
		assert_int_equal(net_device_counters(f->net).bytes, 60 * i);
	}
	/* All forty were alike: one was told. */
	assert_int_equal(f->frames_told, 1);
	assert_int_equal(f->frame.frame_class, FRAME_OTHER);
	memcpy(ring_memory_at(&f->memory, gpa) + 12 + 12, "\x08\x06\0\1\x08\0\6\4\0\1", 10);
	submit(f, 1, frame, 2);
	assert_int_equal(collect(f, 1), 0);
	assert_int_equal(f->frames_told, 2);
	assert_int_equal(f->frame.frame_class, FRAME_ARP);
	submit(f, 1, &runt, 1);
	assert_int_equal(collect(f, 1), 0);
	assert_int_equal(net_device_counters(f->net).frames, 41);
	assert_int_equal(net_device_counters(f->net).missed, 0);
	assert_false(guest_ring_take(&f->rings[0], &head, &written)); /* nothing ever came in */
}

static uint64_t resident_bytes(struct fixture *f)
{
	struct stat status;

	assert_int_equal(fstat(f->memory.fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

static void create_balloon(struct fixture *f, uint32_t features)
{
	assert_int_equal(
		balloon_device_create(&f->balloon, f->loop, &f->memory.guest, f->memory.fd), 0);
	bring_up(f, balloon_device_description(f->balloon), features);
}

static void balloon_reports(void **state)
{
	struct fixture *f = *state;
	uint64_t gpa = ring_memory_take(&f->memory, 100 * PAGE);
	uint8_t *bytes = ring_memory_at(&f->memory, gpa);
	struct ring_segment pages[] = {
		{gpa, 10 * PAGE, true},
		{gpa + 20 * PAGE + 1, 2 * PAGE, true}, /* one whole page inside */
		{gpa + 30 * PAGE + 1, PAGE, true},     /* none */
		{gpa + 40 * PAGE, 3 * PAGE, true},
	};
	uint64_t before;

	create_balloon(f, 1U << VIRTIO_RING_F_EVENT_IDX | 1U << 5);
	assert_int_equal(get(f, 0x100), 0); /* num_pages: nothing is asked of the guest */
	memset(bytes, 0x55, 100 * PAGE);
	before = resident_bytes(f);
	submit(f, 2, pages, ARRAY_SIZE(pages));
	assert_int_equal(collect(f, 2), 0);
	assert_int_equal(before - resident_bytes(f), 14 * PAGE);
	for (unsigned int i = 0; i < 100; i++) {
		bool given = i < 10 || i == 21 || (i >= 40 && i < 43);

		assert_int_equal(bytes[i * PAGE], given ? 0 : 0x55);
		assert_int_equal(bytes[i * PAGE + PAGE - 1], given ? 0 : 0x55);
	}
}

static void balloon_inflates(void **state)
{
	struct fixture *f = *state;
	uint64_t gpa = ring_memory_take(&f->memory, 20 * PAGE);
	uint64_t list = ring_memory_take(&f->memory, PAGE);
	uint8_t *bytes = ring_memory_at(&f->memory, gpa);
	uint32_t *numbers = ring_memory_at(&f->memory, list);
	struct ring_segment request = {list, 7 * 4 + 3, false};
	uint32_t first = (uint32_t)(gpa / PAGE);
	uint64_t before;

	create_balloon(f, 0); /* without reporting there are two queues in use */
	memset(bytes, 0x55, 20 * PAGE);
	numbers[0] = first + 3;
	numbers[1] = first + 4;
	numbers[2] = first + 5;
	numbers[3] = first + 9;
	numbers[4] = UINT32_MAX; /* in no memory */
	numbers[5] = 0;
	numbers[6] = first + 8;
	before = resident_bytes(f);
	submit(f, 0, &request, 1);
	assert_int_equal(collect(f, 0), 0);
	assert_int_equal(before - resident_bytes(f), 5 * PAGE);
	for (unsigned int i = 0; i < 20; i++) {
		bool given = (i >= 3 && i <= 5) || i == 8 || i == 9;

		assert_int_equal(bytes[i * PAGE], given ? 0 : 0x55);
	}
	submit(f, 1, &request, 1); /* deflate: the pages are just used again */
	assert_int_equal(collect(f, 1), 0);
	assert_int_equal(bytes[0], 0x55);
}

/* Two regions in one memfd: the offset counts the region before. */
static void balloon_finds_the_region(void **state)
{
	struct fixture *f = *state;
	struct guest_memory two = {0};
	const uint64_t half = RING_MEMORY_BYTES / 2;
	struct guest_memory_region low = {
		.gpa = RING_MEMORY_GPA, .size = half, .host = f->memory.host};
	struct guest_memory_region high = {
		.gpa = UINT64_C(1) << 32, .size = half, .host = f->memory.host + half};
	struct ring_segment page = {(UINT64_C(1) << 32) + 5 * PAGE, PAGE, true};
	uint8_t *bytes = f->memory.host + half;

	/* In another place of this process than right behind the first. */
	high.host = mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_SHARED, f->memory.fd, (off_t)half);
	assert_ptr_not_equal(high.host, MAP_FAILED);
	assert_int_equal(guest_memory_add(&two, &low), 0);
	assert_int_equal(guest_memory_add(&two, &high), 0);
	f->memory.guest = two;
	create_balloon(f, 1U << 5);
	memset(bytes, 0x55, 10 * PAGE);
	submit(f, 2, &page, 1);
	assert_int_equal(collect(f, 2), 0);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(bytes[i * PAGE], i == 5 ? 0 : 0x55);
	munmap(high.host, half);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rng_fills, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_ring_stops_the_device, setup, teardown),
		cmocka_unit_test_setup_teardown(requests_in_a_row, setup, teardown),
		cmocka_unit_test_setup_teardown(net_counts_and_drops, setup, teardown),
		cmocka_unit_test_setup_teardown(balloon_reports, setup, teardown),
		cmocka_unit_test_setup_teardown(balloon_inflates, setup, teardown),
		cmocka_unit_test_setup_teardown(balloon_finds_the_region, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
