/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_backend.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

/* Binds and listens. Returns the fd or -errno, with the sentence printed. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	FD_CLEANUP int fd = -1;
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(address.sun_path))
		return log_errno(-ENAMETOOLONG,
				 "cannot listen at '%s': a socket path has 1 to %zu bytes", path,
				 sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, length);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return log_errno(-errno, "cannot make a socket");
	/* Whoever can connect gets at the device: the file is made for its owner alone. */
	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0)
		return log_errno(-errno, "cannot make a socket");
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return log_errno(-errno,
				 errno == EADDRINUSE
					 ? "'%s' exists: remove it or choose another path"
					 : "cannot listen at '%s'",
				 path);
	if (listen(fd, 1) < 0) {
		int error = -errno;

		unlink(path);
		return log_errno(error, "cannot listen at '%s'", path);
	}
	return fd_take(&fd);
}

int vhost_backend_listen(const char *path)
{
	FD_CLEANUP int listener = listen_at(path);
	int fd;

	if (listener < 0)
		return listener;
	do {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		fd = log_errno(-errno, "cannot accept a connection at '%s'", path);
	unlink(path);
	return fd;
}
