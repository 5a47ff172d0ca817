/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/vsock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* After the two above: it needs sa_family_t and struct timeval. */
#include <linux/vm_sockets.h>

#include "vmm/base/fd.h"

/* The default of two seconds is too short for an emulated or crowded host. */
#define CONNECT_SECONDS 60

int vsock_connect_begin(unsigned int port)
{
	const struct timeval patience = {.tv_sec = CONNECT_SECONDS};
	const struct sockaddr_vm address = {
		.svm_family = AF_VSOCK,
		.svm_cid = VMADDR_CID_HOST,
		.svm_port = port,
	};
	FD_CLEANUP int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &patience, sizeof(patience)))
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	return fd_take(&fd);
}

int vsock_connect_finish(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int error;

	while (poll(&wait, 1, -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		return -errno;
	return -error;
}
