/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

static void *connect_to(void *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		usleep(1000);
	if (stat(path, &status) == 0 && (status.st_mode & 0777) != 0600)
		log_fatal("the socket can be connected to by others");
	return (void *)(intptr_t)fd;
}

static void a_back_end_can_listen(void **state)
{
	char directory[] = "/tmp/mvagent-listen-XXXXXX", path[64], long_path[200];
	pthread_t thread;
	int fd, other;
	void *result;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	assert_int_equal(pthread_create(&thread, NULL, connect_to, path), 0);
	fd = vhost_backend_listen(path);
	assert_true(fd >= 0);
	pthread_join(thread, &result);
	other = (int)(intptr_t)result;
	assert_int_equal(write(other, "x", 1), 1);
	assert_int_equal(read(fd, path + 60, 1), 1);
	assert_int_equal(access(path, F_OK), -1); /* gone once connected */
	fd_close(&fd);
	fd_close(&other);

	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(vhost_backend_listen(path), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0); /* what was there is left alone */
	fd_close(&fd);
	unlink(path);
	assert_int_equal(rmdir(directory), 0);
	assert_int_equal(vhost_backend_listen(path), -ENOENT);
	memset(long_path, 'x', sizeof(long_path));
	long_path[108] = 0;
	assert_int_equal(vhost_backend_listen(long_path), -ENAMETOOLONG);
	assert_int_equal(vhost_backend_listen(""), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_back_end_can_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
