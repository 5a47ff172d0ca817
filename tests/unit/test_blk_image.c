/* SPDX-License-Identifier: Apache-2.0 */
/* What mvagent-blk takes as an image. */
#include "vmm/root/image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/fd.h"

static void only_whole_images_are_taken(void **state)
{
	uint64_t sectors = 0;
	int pipe_fds[2];
	int fd = memfd_create("image", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 5 * 512), 0);
	assert_int_equal(image_measure(fd, &sectors), 0);
	assert_int_equal(sectors, 5);
	assert_int_equal(ftruncate(fd, UINT64_C(1) << 40), 0);
	assert_int_equal(image_measure(fd, &sectors), 0);
	assert_int_equal(sectors, UINT64_C(1) << 31);
	assert_int_equal(ftruncate(fd, 513), 0);
	assert_int_equal(image_measure(fd, &sectors), -EINVAL);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(image_measure(fd, &sectors), -EINVAL);
	fd_close(&fd);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(image_measure(pipe_fds[0], &sectors), -EINVAL);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
	fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	assert_int_equal(image_measure(fd, &sectors), -EBADF);
	fd_close(&fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_measure(fd, &sectors), -EINVAL);
	fd_close(&fd);
	assert_int_equal(image_measure(-1, &sectors), -EBADF);
}

/* Reads must wait for the disk, however the image was opened. */
static void image_is_made_blocking(void **state)
{
	uint64_t sectors = 0;
	int fd = memfd_create("image", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 512), 0);
	assert_int_equal(fd_set_nonblocking(fd, 1), 0);
	assert_int_equal(image_measure(fd, &sectors), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	fd_close(&fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_whole_images_are_taken),
		cmocka_unit_test(image_is_made_blocking),
	};

	return cmocka_run_group_tests_name("blk image", tests, NULL, NULL);
}
