/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int fd_read_full(int fd, void *buffer, size_t length)
{
	char *next = buffer;

	while (length) {
		ssize_t count = read(fd, next, length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return -ENODATA;
		next += count;
		length -= (size_t)count;
	}
	return 0;
}

int fd_pread_full(int fd, void *buffer, size_t length, off_t offset)
{
	char *next = buffer;

	while (length) {
		ssize_t count = pread(fd, next, length, offset);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return -ENODATA;
		next += count;
		offset += count;
		length -= (size_t)count;
	}
	return 0;
}

int fd_write_full(int fd, const void *buffer, size_t length)
{
	const char *next = buffer;

	while (length) {
		ssize_t count = write(fd, next, length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		next += count;
		length -= (size_t)count;
	}
	return 0;
}

int fd_set_nonblocking(int fd, int nonblocking)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_create_event(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

bool fd_is_event(int fd)
{
	const uint64_t none = 0;
	struct stat status;

	/* Anonymous inodes have no type; of these, only an eventfd can be written to in eights.
	 * That zero is added changes nothing, and never waits (eventfd(2)). */
	return fstat(fd, &status) == 0 && !(status.st_mode & S_IFMT) &&
	       write(fd, &none, sizeof(none)) == sizeof(none);
}

void fd_signal_event(int fd)
{
	const uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

unsigned long long fd_drain_event(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0) {
		if (errno != EINTR)
			return 0;
	}
	return count;
}

int fd_create_socket_pair(int type, int pair[2])
{
	return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
}

int fd_send(int socket_fd, const void *buffer, size_t length, const int *fds, unsigned int count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * FD_SEND_MAX)];
	} control = {0};
	struct iovec vector = {.iov_base = (void *)(uintptr_t)buffer, .iov_len = length};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

	assert(count <= FD_SEND_MAX);
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * count);
	}
	while (vector.iov_len) {
		/* NOSIGNAL: a peer that is gone is an error of this call, not a SIGPIPE. */
		ssize_t sent = sendmsg(socket_fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		vector.iov_base = (char *)vector.iov_base + sent;
		vector.iov_len -= (size_t)sent;
		message.msg_control = NULL; /* they went with the first byte */
		message.msg_controllen = 0;
	}
	return 0;
}
