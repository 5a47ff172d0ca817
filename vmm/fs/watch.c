/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"

/* CLOSE_WRITE: changes through a mapping make no other event, but the file is closed at last. */
#define WATCH_MASK                                                                           \
	(FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_MODIFY | FAN_ATTRIB | \
	 FAN_CLOSE_WRITE | FAN_ONDIR | FAN_EVENT_ON_CHILD)

#define WATCH_BUCKETS 16384U

/* The largest event: its head, and the directory's handle with the name. */
#define WATCH_EVENT_BYTES                                                  \
	(FAN_EVENT_METADATA_LEN + sizeof(struct fanotify_event_info_fid) + \
	 sizeof(struct file_handle) + MAX_HANDLE_SZ + LIMIT_FS_NAME_BYTES + 1 + 16)

#ifndef AT_HANDLE_FID /* Linux 6.6 */
#define AT_HANDLE_FID 0x200
#endif

/* Magic numbers that linux/magic.h of some distributions lacks. */
#define WATCH_XFS_MAGIC      0x58465342
#define WATCH_ZFS_MAGIC      0x2fc12fc1
#define WATCH_BCACHEFS_MAGIC 0xca451a4e

struct watch_handle {
	struct file_handle head;
	uint8_t bytes[MAX_HANDLE_SZ];
};

struct watch_place {
	struct watch_place *next; /* in the bucket */
	uint64_t node_id;
	int type;
	unsigned int size;
	uint8_t bytes[]; /* the file handle by which events name the directory */
};

struct watch {
	int fd;
	pid_t self;
	uint32_t count;
	struct watch_place *buckets[WATCH_BUCKETS];
	_Alignas(8) uint8_t events[16384];
};

bool watch_can(int fd)
{
	static const unsigned int local[] = {
		EXT4_SUPER_MAGIC, TMPFS_MAGIC,           BTRFS_SUPER_MAGIC, WATCH_XFS_MAGIC,
		F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, WATCH_ZFS_MAGIC,   WATCH_BCACHEFS_MAGIC,
	};
	struct statfs status;

	if (fstatfs(fd, &status))
		return false;
	for (unsigned int i = 0; i < ARRAY_SIZE(local); i++)
		if ((unsigned int)status.f_type == local[i])
			return true;
	return false;
}

int watch_create(struct watch **result)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	watch->self = getpid();
	watch->fd =
		fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_NONBLOCK | FAN_CLOEXEC,
			      O_RDONLY | O_CLOEXEC);
	if (watch->fd < 0) {
		int error = -errno;

		free(watch);
		return error;
	}
	*result = watch;
	return 0;
}

void watch_destroy(struct watch *watch)
{
	if (!watch)
		return;
	for (unsigned int i = 0; i < WATCH_BUCKETS; i++) {
		while (watch->buckets[i]) {
			struct watch_place *place = watch->buckets[i];

			watch->buckets[i] = place->next;
			free(place);
		}
	}
	fd_close(&watch->fd);
	free(watch);
}

int watch_fd(const struct watch *watch)
{
	return watch->fd;
}

static struct watch_place **watch_bucket(struct watch *watch, const uint8_t *bytes,
					 unsigned int size)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (unsigned int i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	return &watch->buckets[(hash >> 32) % WATCH_BUCKETS];
}

static int watch_handle_of(int fd, struct watch_handle *handle)
{
	int mount_id;

	handle->head.handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(fd, "", &handle->head, &mount_id, AT_EMPTY_PATH) == 0)
		return 0;
	/* File systems that cannot open by a handle may still have one to tell inodes apart. */
	handle->head.handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(fd, "", &handle->head, &mount_id, AT_EMPTY_PATH | AT_HANDLE_FID) == 0)
		return 0;
	return -errno;
}

int watch_add(struct watch *watch, int fd, uint64_t node_id, struct watch_place **result)
{
	struct watch_handle handle;
	struct watch_place *place, **bucket;
	int error;

	if (watch->count >= LIMIT_FS_WATCHES)
		return -ENOSPC;
	error = watch_handle_of(fd, &handle);
	if (error)
		return error;
	/* The path "." and not none, because @fd may be an O_PATH one. */
	if (fanotify_mark(watch->fd, FAN_MARK_ADD | FAN_MARK_ONLYDIR, WATCH_MASK, fd, "."))
		return -errno;
	place = malloc(sizeof(*place) + handle.head.handle_bytes);
	if (!place) {
		fanotify_mark(watch->fd, FAN_MARK_REMOVE, WATCH_MASK, fd, ".");
		return -ENOMEM;
	}
	place->node_id = node_id;
	place->type = handle.head.handle_type;
	place->size = handle.head.handle_bytes;
	memcpy(place->bytes, handle.head.f_handle, place->size);
	bucket = watch_bucket(watch, place->bytes, place->size);
	place->next = *bucket;
	*bucket = place;
	watch->count++;
	*result = place;
	return 0;
}

void watch_remove(struct watch *watch, struct watch_place *place, int fd)
{
	struct watch_place **link = watch_bucket(watch, place->bytes, place->size);

	while (*link != place)
		link = &(*link)->next;
	*link = place->next;
	watch->count--;
	if (fd >= 0)
		fanotify_mark(watch->fd, FAN_MARK_REMOVE, WATCH_MASK, fd, ".");
	free(place);
}

static const struct watch_place *watch_find(struct watch *watch, const struct file_handle *handle)
{
	const struct watch_place *place =
		*watch_bucket(watch, handle->f_handle, handle->handle_bytes);

	while (place &&
	       (place->type != handle->handle_type || place->size != handle->handle_bytes ||
		memcmp(place->bytes, handle->f_handle, place->size) != 0))
		place = place->next;
	return place;
}

/* The records after an event's head say where it was: the first of a directory with a name counts.
 * @at: the first of them, @end: behind the last. */
static void watch_report(struct watch *watch, uint64_t mask, const uint8_t *at, const uint8_t *end,
			 watch_callback *callback, void *context)
{
	struct watch_event report = {.mask = mask};

	while (at + sizeof(struct fanotify_event_info_fid) <= end) {
		const struct fanotify_event_info_fid *info = (const void *)at;
		const struct file_handle *handle = (const void *)info->handle;
		const struct watch_place *place;
		const char *name;

		at += info->hdr.len;
		if (info->hdr.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME)
			continue;
		place = watch_find(watch, handle);
		if (!place)
			return; /* a directory that the guest has forgotten */
		name = (const char *)handle->f_handle + handle->handle_bytes;
		report.node_id = place->node_id;
		report.name = strcmp(name, ".") == 0 ? NULL : name;
		callback(context, &report);
		return;
	}
}

/* Events follow each other at multiples of four bytes: their heads are copied out. */
static void watch_report_all(struct watch *watch, const uint8_t *at, const uint8_t *end,
			     watch_callback *callback, void *context)
{
	struct watch_event lost = {.overflow = true};
	struct fanotify_event_metadata head;

	for (; (size_t)(end - at) >= sizeof(head); at += head.event_len) {
		memcpy(&head, at, sizeof(head));
		if (head.event_len < sizeof(head) || head.event_len > (size_t)(end - at))
			return;
		if (head.mask & FAN_Q_OVERFLOW)
			callback(context, &lost);
		else if (head.pid != watch->self)
			watch_report(watch, head.mask, at + head.metadata_len, at + head.event_len,
				     callback, context);
	}
}

int watch_read(struct watch *watch, watch_callback *callback, void *context)
{
	ssize_t length;

	do {
		length = read(watch->fd, watch->events, sizeof(watch->events));
	} while (length < 0 && errno == EINTR);
	if (length <= 0)
		return length < 0 && errno != EAGAIN ? -errno : 0;
	watch_report_all(watch, watch->events, watch->events + length, callback, context);
	/* Room was left, so there was no other. What came since wakes us again. */
	return (size_t)length > sizeof(watch->events) - WATCH_EVENT_BYTES;
}
