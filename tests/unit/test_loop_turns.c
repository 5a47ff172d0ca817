/* SPDX-License-Identifier: Apache-2.0 */
/* When callbacks run, and in what order: every test runs on both back ends. */
#include "vmm/loop/loop.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/loop_probe.h"
#include "vmm/loop/loop_internal.h"

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static void timers_fire_in_order(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	static const uint64_t delays[] = {60, 5, 40, 20, 0};
	static const int expected[] = {5, 2, 4, 3, 1};
	struct probe probes[5] = {0}, cancelled = {0};
	int64_t begin = now_ms();
	int counter = 0;

	for (int i = 0; i < 5; i++) {
		probes[i].counter = &counter;
		assert_int_equal(loop_timer(loop, &probes[i].operation, delays[i], probe_callback),
				 0);
	}
	assert_int_equal(loop_timer(loop, &cancelled.operation, 30, probe_callback), 0);
	loop_cancel(loop, &cancelled.operation);
	run_until(loop, &probes[0], 1);
	assert_true(now_ms() - begin >= 60);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(probes[i].calls, 1);
		assert_int_equal(probes[i].result, 0);
		assert_int_equal(probes[i].order, expected[i]);
	}
	assert_int_equal(cancelled.calls, 1);
	assert_int_equal(cancelled.result, -ECANCELED);
	assert_int_equal(loop_timer(loop, &cancelled.operation, UINT64_MAX, probe_callback),
			 -EINVAL);
	loop_destroy(loop);
}

static void timers_are_never_early(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);

	for (int i = 0; i < 20; i++) {
		struct probe probe = {0};
		int64_t begin = now_ns();

		assert_int_equal(loop_timer(loop, &probe.operation, 2, probe_callback), 0);
		run_until(loop, &probe, 1);
		assert_true(now_ns() - begin >= 2000000);
	}
	loop_destroy(loop);
}

static void run_once_waits_as_long_as_it_says(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	int64_t begin = now_ms();
	int64_t waited = 0;

	assert_int_equal(loop_run_once(loop, 0), 0);
	assert_true(now_ms() - begin < 500);
	/* The kernel's work for a ring that another test destroyed can interrupt a wait. */
	for (int attempt = 0; attempt < 5 && waited < 49; attempt++) {
		begin = now_ms();
		assert_int_equal(loop_run_once(loop, 50), 0);
		waited = now_ms() - begin;
	}
	assert_true(waited >= 49);
	loop_destroy(loop);
}

static void signals_reach_once_a_round(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	int fds[LOOP_SIGNALS + 4];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = fd_create_event();
	loop_signal(loop, fds[0]);
	loop_signal(loop, fds[0]);
	loop_signal(loop, fds[1]);
	assert_int_equal(loop_run_once(loop, 0), 0);
	assert_int_equal(fd_drain_event(fds[0]), 1);
	assert_int_equal(fd_drain_event(fds[1]), 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		loop_signal(loop, fds[i]);
	loop_flush_signals(loop);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(fd_drain_event(fds[i]), 1);
	assert_int_equal(loop_run_once(loop, 0), 0);
	assert_int_equal(fd_drain_event(fds[0]), 0);
	loop_signal(loop, fds[2]);
	loop_destroy(loop);
	assert_int_equal(fd_drain_event(fds[2]), 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(&fds[i]);
}

static void stop_callback(struct loop_operation *operation, int result)
{
	struct probe *probe = CONTAINER_OF(operation, struct probe, operation);

	probe_callback(operation, result);
	loop_stop(probe->loop, 42);
}

static void signal_callback(struct loop_operation *operation, int result)
{
	struct probe *probe = CONTAINER_OF(operation, struct probe, operation);

	probe_callback(operation, result);
	loop_signal(probe->loop, probe->order);
}

/* What a callback signals is not kept while the loop sleeps. */
static void signals_go_out_before_the_loop_sleeps(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	int fd = fd_create_event();
	struct probe signaller = {.loop = loop, .order = fd};
	struct probe watcher = {.loop = loop}, limit = {.loop = loop};

	assert_int_equal(loop_watch(loop, &watcher.operation, fd, POLLIN, stop_callback), 0);
	assert_int_equal(loop_timer(loop, &signaller.operation, 1, signal_callback), 0);
	assert_int_equal(loop_timer(loop, &limit.operation, 5000, stop_callback), 0);
	assert_int_equal(loop_run(loop), 42);
	assert_int_equal(watcher.calls, 1);
	assert_int_equal(limit.calls, 0);
	loop_destroy(loop);
	fd_close(&fd);
}

/* Each cancels the other, whichever comes first. */
static void cancel_other_callback(struct loop_operation *operation, int result)
{
	struct probe *probe = CONTAINER_OF(operation, struct probe, operation);
	struct probe *first = probe - probe->order;

	probe_callback(operation, result);
	loop_cancel(probe->loop, &first[!probe->order].operation);
}

static void events_of_before_a_cancel_are_not_reported(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probes[2] = {{.loop = loop, .order = 0}, {.loop = loop, .order = 1}};
	struct probe *cancelled, *canceller;
	int fds[2];

	for (int i = 0; i < 2; i++) {
		fds[i] = fd_create_event();
		assert_int_equal(loop_watch(loop, &probes[i].operation, fds[i], POLLIN,
					    cancel_other_callback),
				 0);
	}
	assert_int_equal(loop_run_once(loop, 0), 0);
	fd_signal_event(fds[0]);
	fd_signal_event(fds[1]);
	/* Both are due in this turn; only the first is told of its event. */
	assert_true(loop_run_once(loop, 2000) > 0);
	canceller = probes[0].result == POLLIN ? &probes[0] : &probes[1];
	cancelled = canceller == &probes[0] ? &probes[1] : &probes[0];
	assert_int_equal(canceller->result, POLLIN);
	for (int i = 0; i < 10 && cancelled->calls == 0; i++)
		loop_run_once(loop, 100);
	assert_int_equal(cancelled->calls, 1);
	assert_int_equal(cancelled->result, -ECANCELED);
	loop_destroy(loop);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

static void what_has_ended_is_at_rest(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe ended = {0}, other = {0};
	int fd = fd_create_event();

	loop_end(loop, &ended.operation); /* never begun */
	for (int round = 1; round <= 2; round++) {
		assert_int_equal(loop_watch(loop, &ended.operation, fd, POLLIN, probe_callback), 0);
		assert_int_equal(loop_timer(loop, &other.operation, 0, probe_callback), 0);
		loop_end(loop, &ended.operation);
		assert_true(loop_operation_idle(&ended.operation));
		assert_int_equal(ended.calls, round);
		assert_int_equal(ended.result, -ECANCELED);
		run_until(loop, &other, round);
	}
	loop_destroy(loop);
	fd_close(&fd);
}

static void stop_ends_run_after_the_callback(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe first = {.loop = loop}, second = {.loop = loop};

	assert_int_equal(loop_timer(loop, &first.operation, 0, stop_callback), 0);
	assert_int_equal(loop_timer(loop, &second.operation, 0, stop_callback), 0);
	assert_int_equal(loop_run(loop), 42);
	assert_int_equal(first.calls + second.calls, 1);
	assert_int_equal(loop_run(loop), 42);
	assert_int_equal(first.calls + second.calls, 2);
	loop_destroy(loop);
}

/* What a device does when its queue stops: wait inside a callback for another operation. */
static void drain_callback(struct loop_operation *operation, int result)
{
	struct probe *probe = CONTAINER_OF(operation, struct probe, operation);
	struct probe *awaited = probe + 1;

	probe_callback(operation, result);
	while (!loop_operation_idle(&awaited->operation))
		assert_true(loop_run_once(probe->loop, 2000) >= 0);
	assert_int_equal(awaited->calls, 1);
	loop_stop(probe->loop, 0);
}

static void a_callback_may_wait_for_other_operations(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probes[2] = {{.loop = loop}, {.loop = loop}};
	struct iovec vector = {&(char){0}, 1};
	int file = make_file("x", 1);

	/* Both complete in one turn; the second is due already when the first waits for it. */
	assert_int_equal(loop_read(loop, &probes[0].operation, file, &vector, 1, 0, drain_callback),
			 0);
	assert_int_equal(loop_read(loop, &probes[1].operation, file, &vector, 1, 0, probe_callback),
			 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(probes[0].calls, 1);
	assert_int_equal(probes[1].calls, 1);
	/* And one that comes later. */
	assert_int_equal(loop_timer(loop, &probes[1].operation, 20, probe_callback), 0);
	probes[1].calls = 0;
	assert_int_equal(loop_read(loop, &probes[0].operation, file, &vector, 1, 0, drain_callback),
			 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(probes[1].calls, 1);
	loop_destroy(loop);
	fd_close(&file);
}

static void restart_callback(struct loop_operation *operation, int result)
{
	static char byte;
	static struct iovec vector = {&byte, 1};
	struct probe *probe = CONTAINER_OF(operation, struct probe, operation);

	probe_callback(operation, result);
	if (probe->calls < 100)
		assert_int_equal(loop_read(probe->loop, operation, probe->order, &vector, 1, 0,
					   restart_callback),
				 0);
}

static void a_callback_that_starts_again_does_not_starve_others(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	int file = make_file("x", 1);
	struct probe reader = {.loop = loop, .order = file}, watcher = {0};
	struct iovec vector = {&(char){0}, 1};
	int event = fd_create_event();

	assert_int_equal(loop_watch(loop, &watcher.operation, event, POLLIN, probe_callback), 0);
	assert_int_equal(loop_read(loop, &reader.operation, file, &vector, 1, 0, restart_callback),
			 0);
	fd_signal_event(event);
	run_until(loop, &watcher, 1);
	assert_true(reader.calls < 10);
	run_until(loop, &reader, 100);
	loop_destroy(loop);
	fd_close(&file);
	fd_close(&event);
}

/* A slot is used again at once, while a completion for its last user may still be on its way: it
 * must not reach the new one. */
static void stale_completions_do_not_reach_the_next_operation(void **state)
{
	struct loop *loop = make_loop(state, 1);
	int noisy = fd_create_event();
	int quiet = fd_create_event();

	for (int i = 0; i < 500; i++) {
		struct probe first = {0}, second = {0};

		assert_int_equal(loop_watch(loop, &first.operation, noisy, POLLIN, probe_callback),
				 0);
		loop_run_once(loop, 0);
		fd_signal_event(noisy);
		loop_cancel(loop, &first.operation);
		fd_signal_event(noisy);
		while (!loop_operation_idle(&first.operation))
			assert_true(loop_run_once(loop, 2000) >= 0);
		assert_int_equal(first.result, -ECANCELED);
		assert_int_equal(loop_watch(loop, &second.operation, quiet, POLLIN, probe_callback),
				 0);
		fd_signal_event(noisy);
		assert_int_equal(loop_run_once(loop, 0), 0);
		assert_int_equal(second.calls, 0);
		loop_cancel(loop, &second.operation);
		run_until(loop, &second, 1);
		assert_int_equal(second.result, -ECANCELED);
	}
	loop_destroy(loop);
	fd_close(&noisy);
	fd_close(&quiet);
}

static void a_completion_with_an_old_name_is_dropped(void **state)
{
	struct loop *loop = make_loop(state, 1);
	struct probe probe = {0};
	uint64_t name;

	assert_int_equal(loop_timer(loop, &probe.operation, 0, probe_callback), 0);
	name = loop_name(loop, &probe.operation);
	assert_ptr_equal(loop_find(loop, name), &probe.operation);
	run_until(loop, &probe, 1);
	assert_null(loop_find(loop, name));
	assert_int_equal(loop_timer(loop, &probe.operation, 0, probe_callback), 0);
	assert_null(loop_find(loop, name));
	assert_null(loop_find(loop, name + 1));
	assert_null(loop_find(loop, LOOP_NAME_NONE));
	assert_true(loop_name(loop, &probe.operation) != name);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(timers_fire_in_order),
		ON_BOTH(timers_are_never_early),
		ON_BOTH(run_once_waits_as_long_as_it_says),
		ON_BOTH(signals_reach_once_a_round),
		ON_BOTH(signals_go_out_before_the_loop_sleeps),
		ON_BOTH(events_of_before_a_cancel_are_not_reported),
		ON_BOTH(what_has_ended_is_at_rest),
		ON_BOTH(stop_ends_run_after_the_callback),
		ON_BOTH(a_callback_may_wait_for_other_operations),
		ON_BOTH(a_callback_that_starts_again_does_not_starve_others),
		ON_BOTH(stale_completions_do_not_reach_the_next_operation),
		ON_BOTH(a_completion_with_an_old_name_is_dropped),
	};

	return cmocka_run_group_tests_name("loop turns", tests, NULL, NULL);
}
