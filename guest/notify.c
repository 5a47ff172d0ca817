/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest/files.h"
#include "guest/vsock.h"
#include "vmm/base/fd.h"
#include "vmm/wire/notify.h"

/* The kernel's side of it: VIRTIO_FS_IOC_NOTIFY of kernel-config/patches. The kinds are those of
 * the wire, and 0 for a record that says nothing. */
struct kernel_record {
	uint32_t kind;
	uint32_t mask;
	uint64_t parent;
	uint64_t child;
	uint32_t cookie;
	uint32_t name_length;
	char name[NOTIFY_NAME_BYTES + 1];
};
#define KERNEL_NOTIFY _IOW(0xe5, 0x40, struct kernel_record)

/* Many records a read, as a checkout on the host makes them. */
#define BUFFER_BYTES 16384

/* The kernel says -ENOENT for what it does not know, and that is most of what comes. */
static void feed_record(int share, const struct notify_record *record)
{
	struct kernel_record told = {
		.kind = record->kind,
		.mask = record->mask,
		.parent = record->parent,
		.child = record->child,
		.cookie = record->cookie,
		.name_length = record->name_length,
	};

	memcpy(told.name, record->name, record->name_length);
	ioctl(share, KERNEL_NOTIFY, &told);
}

static int can_feed(int share)
{
	const struct kernel_record nothing = {0};

	return ioctl(share, KERNEL_NOTIFY, &nothing) < 0 ? -errno : 0;
}

/* Feeds the complete records in the buffer and moves the rest to its start. */
static int feed_buffer(int share, uint8_t *buffer, size_t *filled)
{
	struct notify_record record;
	size_t done = 0;
	int size;

	while ((size = notify_decode(buffer + done, *filled - done, &record)) > 0) {
		feed_record(share, &record);
		done += (size_t)size;
	}
	*filled -= done;
	memmove(buffer, buffer + done, *filled);
	return size;
}

int notify_feed(int stream, int share)
{
	const struct notify_record everything = {.kind = NOTIFY_INVAL_ALL};
	uint8_t buffer[BUFFER_BYTES], ready[NOTIFY_READY_BYTES];
	size_t filled = 0;
	ssize_t count;
	int error;

	notify_encode_ready(ready);
	error = fd_write_full(stream, ready, sizeof(ready));
	while (!error) {
		count = read(stream, buffer + filled, sizeof(buffer) - filled);
		if (count == 0)
			break;
		if (count > 0) {
			filled += (size_t)count;
			error = feed_buffer(share, buffer, &filled);
		} else if (errno != EINTR) {
			error = -errno;
		}
	}
	feed_record(share, &everything);
	return error;
}

/* A feeder has these two descriptors besides the standard ones: the others' ends must not stay
 * open in it. */
static void close_others(int stream, int share)
{
	unsigned int low = (unsigned int)(stream < share ? stream : share);
	unsigned int high = (unsigned int)(stream < share ? share : stream);

	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

static void run_feeder(int stream, int share)
{
	int error;

	close_others(stream, share);
	prctl(PR_SET_NAME, "share-notify");
	/* It is small, and the files are stale without it. */
	error = files_write("/proc/self/oom_score_adj", "-1000");
	if (error)
		message("cannot protect the share's notifications: errno %d", -error);
	error = vsock_connect_finish(stream);
	if (!error)
		error = fd_set_nonblocking(stream, 0);
	if (!error)
		error = notify_feed(stream, share);
	/* A host that does not watch has no such port, one that ends just closes. */
	if (error && error != -ECONNRESET && error != -ECONNREFUSED)
		message("the share's notifications ended: errno %d", -error);
}

void notify_start(const struct shares *shares)
{
	for (unsigned int index = 0; index < shares->count; index++) {
		FD_CLEANUP int share =
			openat(shares->roots[index], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		FD_CLEANUP int stream = -1;
		pid_t feeder;

		if (share < 0 || can_feed(share) < 0)
			continue;
		stream = vsock_connect_begin(SESSION_PORT_NOTIFY + index);
		if (stream < 0) {
			message("cannot ask for the notifications of share %u: errno %d", index,
				-stream);
			continue;
		}
		feeder = fork();
		if (feeder < 0)
			message("cannot feed share %u: errno %d", index, errno);
		if (feeder == 0) {
			run_feeder(stream, share);
			_exit(0);
		}
	}
}
