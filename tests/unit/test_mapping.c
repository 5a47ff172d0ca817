/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beside guest memory in a process of the host: nothing. */
#include "vmm/virtio/mapping.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/fd.h"
#include "vmm/machine/ram.h"

#define BYTES 0x5000UL /* no multiple of a large page */

/* Whether a process that touches @address lives on. */
static bool can_touch(volatile uint8_t *address, bool write)
{
	const struct rlimit none = {0, 0};
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		if (write)
			*address = 1;
		_exit(*address & 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGSEGV);
	return WIFEXITED(status);
}

static void check_edges(uint8_t *host, size_t length)
{
	const size_t distances[] = {1, 4096, 65536, MAPPING_GUARD_BYTES};

	assert_int_equal((uintptr_t)host % MAPPING_GUARD_BYTES, 0);
	assert_true(can_touch(host, true) && can_touch(host + length - 1, true));
	for (unsigned int i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
		for (unsigned int write = 0; write < 2; write++) {
			assert_false(can_touch(host - distances[i], write));
			assert_false(can_touch(host + length - 1 + distances[i], write));
		}
	}
}

static void nothing_lies_beside_it(void **state)
{
	int file = memfd_create("memory", MFD_CLOEXEC);
	struct mapping mapping;
	uint8_t *host;

	(void)state;
	assert_int_equal(ftruncate(file, BYTES + 4096), 0);
	assert_int_equal(mapping_create(&mapping, file, 4096, BYTES, 4096), 0);
	host = mapping.host;
	host[0] = 7;
	check_edges(host, BYTES);
	mapping_destroy(&mapping);
	assert_null(mapping.host);
	assert_false(can_touch(host, false));
	mapping_destroy(&mapping);
	fd_close(&file);
}

static void what_cannot_be_mapped_is_an_error(void **state)
{
	struct mapping mapping;
	int file = memfd_create("memory", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(mapping_create(&mapping, file, 0, 0, 4096), -EINVAL);
	assert_int_equal(mapping_create(&mapping, file, 0, SIZE_MAX, 4096), -EINVAL);
	assert_int_equal(mapping_create(&mapping, file, 1, 4096, 4096), -EINVAL);
	assert_int_equal(mapping_create(&mapping, -1, 0, 4096, 4096), -EBADF);
	assert_null(mapping.host);
	fd_close(&file);
}

static void nothing_lies_beside_guest_ram(void **state)
{
	struct ram ram;

	(void)state;
	assert_int_equal(ram_create(&ram, 64UL << 20), 0);
	check_edges(ram.host, ram.size);
	ram_destroy(&ram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_lies_beside_it),
		cmocka_unit_test(what_cannot_be_mapped_is_an_error),
		cmocka_unit_test(nothing_lies_beside_guest_ram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
