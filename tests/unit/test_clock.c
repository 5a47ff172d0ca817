/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, on a host that stands still meanwhile: what is waited for stood still as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/cli/supervisor_events.h"

#define BEFORE_MS 200
#define PAUSE_MS  3000

/* What a child tells: how long it waited, and how long of that after it was continued. */
struct told {
	uint64_t whole_ms;
	uint64_t after_ms;
};

static uint64_t now_ms(void)
{
	return clock_monotonic_ns() / CLOCK_NS_PER_MS;
}

/* Runs @wait in a child, which stands still for a while. */
static void wait_with_pause(struct told *told, void (*wait)(void), bool pause)
{
	struct told *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t continued;
	pid_t child;
	int status;

	assert_ptr_not_equal(shared, MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const uint64_t begin = now_ms();

		wait();
		shared->whole_ms = now_ms() - begin;
		_exit(0);
	}
	poll(NULL, 0, BEFORE_MS);
	if (pause) {
		assert_int_equal(kill(child, SIGSTOP), 0);
		poll(NULL, 0, PAUSE_MS);
		assert_int_equal(kill(child, SIGCONT), 0);
	}
	continued = now_ms();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	*told = *shared;
	told->after_ms = now_ms() - continued;
	munmap(shared, sizeof(*shared));
}

static void wait_by_patience(void)
{
	struct patience patience = patience_begin(1700);
	int slice;

	while ((slice = patience_slice_ms(&patience)))
		poll(NULL, 0, slice);
}

/* The limit for the guest to ask for its command, as the supervisor has it. */
static void wait_as_supervisor(void)
{
	struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
	struct report report = {0};

	supervisor->report = &report;
	supervisor->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	supervisor_set_timer(supervisor, 2);
	while (report.outcome.kind == OUTCOME_NONE) {
		struct pollfd ready = {.fd = supervisor->timer_fd, .events = POLLIN};

		poll(&ready, 1, -1);
		supervisor_read_timer(supervisor);
	}
	if (!strstr(report.outcome.sentence, "did not start the command in time"))
		_exit(1);
	fd_close(&supervisor->timer_fd);
	free(supervisor);
}

static void expect_limit(void (*wait)(void), uint64_t limit_ms)
{
	struct told told;

	wait_with_pause(&told, wait, false);
	assert_in_range(told.whole_ms, limit_ms, limit_ms + 1000);
	wait_with_pause(&told, wait, true);
	assert_true(told.whole_ms >= PAUSE_MS);
	/* Of the pause no more than PATIENCE_LATE_MS counts. */
	assert_in_range(told.after_ms, limit_ms - BEFORE_MS - PATIENCE_LATE_MS - 100, limit_ms);
}

static void test_patience(void **state)
{
	(void)state;
	expect_limit(wait_by_patience, 1700);
}

static void test_supervisor(void **state)
{
	(void)state;
	expect_limit(wait_as_supervisor, 2000);
}

/* A clock that is read late all the time goes on, if slower. */
static void test_it_ends(void **state)
{
	struct patience patience = patience_begin(2500);
	unsigned int slices = 0;

	(void)state;
	while (patience_slice_ms(&patience)) {
		patience.seen_ns -= 10000UL * CLOCK_NS_PER_MS; /* ten seconds have gone by */
		slices++;
	}
	assert_int_equal(slices, 3);
	assert_int_equal(patience_slice_ms(&patience), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_supervisor),
		cmocka_unit_test(test_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
