/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/queue_fixture.h"

static void a_set_up_that_cannot_be_is_refused(void **state)
{
	struct virtqueue queue = {0};
	const uint64_t end = MEMORY_BYTES;

	(void)state;
	assert_int_equal(virtqueue_start(&queue, &memory, 0, 0, 0x1000, 0x2000, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 3, 0, 0x1000, 0x2000, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 2048, 0, 0x10000, 0x20000, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 8, 0x1000, 0x2000, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 0, 0x1001, 0x2000, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 0, 0x1000, 0x2002, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, end - 112, 0x1000, 0x2000, 0),
			 -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 0, end - 20, 0x2000, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 0, 0x1000, end - 68, 0), -EINVAL);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, UINT64_MAX - 15, 0x1000, 0x2000, 0),
			 -EINVAL);
	assert_int_equal(queue.size, 0);
	assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
	assert_int_equal(virtqueue_push(&queue, 0, 0), -EPROTO);
	assert_false(virtqueue_publish(&queue));
	assert_false(virtqueue_enable_kicks(&queue));

	/* each part may end exactly where memory does */
	assert_int_equal(virtqueue_start(&queue, &memory, 8, end - 128, 0x1000, 0x2000, 0), 0);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 0, end - 22, 0x2000, 0), 0);
	assert_int_equal(virtqueue_start(&queue, &memory, 8, 0, 0x1000, end - 72, 7), 0);
	assert_int_equal(queue.size, 8);
	assert_int_equal(queue.next_available, 7);
	assert_int_equal(queue.next_used, 7);
}

/* Every distance of the available index from what was taken and shown. */
static void the_available_index_may_lead_by_the_size_only(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	for (uint32_t size = 1; size <= 8; size *= 2) {
		for (uint32_t lead = 0; lead <= UINT16_MAX; lead++) {
			unsigned int count = 0;
			int result;

			start_queue(&queue, &driver, (uint16_t)size, 65533, false);
			*ring_word(&driver, driver.available_gpa, 1) = (uint16_t)(65533 + lead);
			while ((result = virtqueue_pop(&queue, &chain)) == 1)
				count++;
			assert_int_equal(result, lead <= size ? 0 : -EPROTO);
			assert_int_equal(count, lead <= size ? lead : 0);
		}
	}
}

static void the_available_index_does_not_go_back(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	start_queue(&queue, &driver, 8, 65534, false);
	for (unsigned int i = 0; i < 4; i++)
		show_one(&driver, 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(virtqueue_pop(&queue, &chain), 1);
	for (unsigned int i = 0; i < 4; i++) {
		driver.available_index--;
		ring_show(&driver);
		assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
	}
}

/* A guest that goes on adding while nothing is shown as used cannot keep the device in its loop. */
static void a_racing_guest_gets_one_ring_full_between_publications(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	start_queue(&queue, &driver, 8, 65530, false);
	for (unsigned int round = 0; round < 3; round++) {
		int result = 1;
		unsigned int count;

		for (count = 0; count < 8; count++) {
			show_one(&driver, 0);
			result = virtqueue_pop(&queue, &chain);
			assert_int_equal(result, 1);
			if (count % 2) /* pushed or not makes no difference */
				assert_int_equal(virtqueue_push(&queue, 0, 0), 0);
		}
		show_one(&driver, 0);
		assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
		driver.available_index--;
		ring_show(&driver);
		for (count = 0; count < 4; count++)
			assert_int_equal(virtqueue_push(&queue, 0, 0), 0);
		virtqueue_publish(&queue);
	}
}

static void what_is_pushed_is_shown_at_once(void **state)
{
	const struct ring_buffer buffers[] = {{DATA_GPA, 10, false}, {DATA_GPA + 64, 20, true}};
	struct ring_driver driver;
	struct virtqueue queue;
	uint16_t head;
	uint32_t written;

	(void)state;
	start_queue(&queue, &driver, 8, 65534, false);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ring_add(&driver, buffers, 2, 0), 2 * i);
	ring_show(&driver);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(virtqueue_pop(&queue, &chain), 1);
		assert_int_equal(virtqueue_push(&queue, chain.head, 5 + i), 0);
		assert_false(ring_take_used(&driver, &head, &written));
	}
	assert_int_equal(virtqueue_pop(&queue, &chain), 0);
	assert_true(virtqueue_publish(&queue));
	assert_false(virtqueue_publish(&queue)); /* nothing new, no interrupt */
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(ring_take_used(&driver, &head, &written));
		assert_int_equal(head, 2 * i);
		assert_int_equal(written, 5 + i);
	}
	assert_false(ring_take_used(&driver, &head, &written));
	assert_int_equal(driver.used_index, 2);
	assert_int_equal(virtqueue_push(&queue, 8, 0), -EPROTO);
}

/* The rule of 2.7.7.2 by counting: is used_event among the entries just shown? */
static void interrupts_follow_used_event(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	start_queue(&queue, &driver, 8, 65531, true);
	*ring_used_event(&driver) = 100;
	assert_int_equal(virtqueue_push(&queue, 0, 0), 0);
	assert_true(virtqueue_publish(&queue)); /* the first time, always */
	for (uint32_t event = 65520; event < 65536 + 16; event++) {
		for (uint16_t count = 1; count <= 8; count++) {
			uint16_t old = queue.next_used;
			bool wanted = false;

			*ring_used_event(&driver) = (uint16_t)event;
			for (uint16_t i = 0; i < count; i++) {
				wanted |= (uint16_t)(old + i) == (uint16_t)event;
				assert_int_equal(virtqueue_push(&queue, 0, 0), 0);
			}
			assert_int_equal(virtqueue_publish(&queue), wanted);
			queue.next_used = queue.signalled_used = old; /* once more from here */
		}
		queue.next_used = queue.signalled_used = (uint16_t)(queue.next_used + event % 2);
	}
}

static void interrupts_follow_the_flag(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	start_queue(&queue, &driver, 8, 0, false);
	for (uint16_t i = 0; i < 8; i++) {
		*ring_word(&driver, driver.available_gpa, 0) = i % 2;
		*ring_used_event(&driver) = i; /* means nothing */
		assert_int_equal(virtqueue_push(&queue, 0, 0), 0);
		assert_int_equal(virtqueue_publish(&queue), i % 2 == 0);
	}
}

static void kicks_are_asked_for(void **state)
{
	const struct ring_buffer buffer = {DATA_GPA, 10, false};
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		start_queue(&queue, &driver, 8, 65534, event_idx);
		assert_false(virtqueue_enable_kicks(&queue));
		ring_add(&driver, &buffer, 1, 0);
		assert_true(ring_show(&driver));
		virtqueue_disable_kicks(&queue);
		for (int i = 0; i < 5; i++) {
			ring_add(&driver, &buffer, 1, 0);
			assert_false(ring_show(&driver));
		}
		assert_int_equal(*ring_word(&driver, driver.used_gpa, 0), event_idx ? 0 : 1);
		assert_true(virtqueue_enable_kicks(&queue)); /* there is more: no waiting */
		for (int i = 0; i < 6; i++)
			assert_int_equal(virtqueue_pop(&queue, &chain), 1);
		assert_false(virtqueue_enable_kicks(&queue));
		ring_add(&driver, &buffer, 1, 0);
		assert_true(ring_show(&driver));
		assert_int_equal(*ring_word(&driver, driver.used_gpa, 0), 0);
	}
}

/* Both sides, twice around the 16-bit indices, batches of all sizes, kicks and interrupts counted.
 */
static void both_sides_twice_around(void **state)
{
	(void)state;
	for (unsigned int variant = 0; variant < 8; variant++) {
		const uint16_t size = (uint16_t)(1U << variant);
		const bool event_idx = variant % 2;
		unsigned int interrupts = 0, batches = 0, done = 0;
		uint16_t head, expected[256];
		struct ring_driver driver;
		struct virtqueue queue;
		uint32_t written;

		start_queue(&queue, &driver, size, 65530, event_idx);
		while (done < 140000) {
			unsigned int added = 0, want = 1 + random_below(size);
			bool kick;

			for (; added < want; added++) {
				const struct ring_buffer buffers[] = {
					{DATA_GPA, 1 + random_below(100), false},
					{DATA_GPA + 4096, 1 + random_below(100), true}};
				int result = ring_add(&driver, buffers, random_below(2) + 1,
						      random_below(3) ? 0 : 0x8000 + 32 * added);

				if (result < 0)
					break;
				expected[added] = (uint16_t)result;
			}
			ring_want_interrupt(&driver);
			kick = ring_show(&driver);
			assert_true(kick || !added);
			virtqueue_disable_kicks(&queue);
			for (unsigned int i = 0; i < added; i++) {
				assert_int_equal(virtqueue_pop(&queue, &chain), 1);
				assert_int_equal(chain.head, expected[i]);
				assert_int_equal(virtqueue_push(&queue, chain.head, i), 0);
			}
			assert_int_equal(virtqueue_pop(&queue, &chain), 0);
			interrupts += virtqueue_publish(&queue);
			batches += added > 0;
			assert_false(virtqueue_enable_kicks(&queue));
			for (unsigned int i = 0; i < added; i++, done++) {
				assert_true(ring_take_used(&driver, &head, &written));
				assert_int_equal(head, expected[i]);
				assert_int_equal(written, i);
			}
		}
		assert_int_equal(interrupts, batches);
		assert_int_equal(driver.free_count, size);
	}
}

static void a_ring_that_vanishes_is_noticed(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;
	struct guest_memory empty = {0};

	(void)state;
	start_queue(&queue, &driver, 8, 0, true);
	show_one(&driver, 0);
	queue.memory = &empty;
	assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
	assert_int_equal(virtqueue_push(&queue, 0, 0), -EPROTO);
	assert_false(virtqueue_publish(&queue));
	assert_false(virtqueue_enable_kicks(&queue));
	virtqueue_disable_kicks(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_up_that_cannot_be_is_refused),
		cmocka_unit_test(the_available_index_may_lead_by_the_size_only),
		cmocka_unit_test(the_available_index_does_not_go_back),
		cmocka_unit_test(a_racing_guest_gets_one_ring_full_between_publications),
		cmocka_unit_test(what_is_pushed_is_shown_at_once),
		cmocka_unit_test(interrupts_follow_used_event),
		cmocka_unit_test(interrupts_follow_the_flag),
		cmocka_unit_test(kicks_are_asked_for),
		cmocka_unit_test(both_sides_twice_around),
		cmocka_unit_test(a_ring_that_vanishes_is_noticed),
	};

	return cmocka_run_group_tests(tests, make_memory, free_memory);
}
