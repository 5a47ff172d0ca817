/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/coherence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/link_break.h"
#include "vmm/fs/operation.h"
#include "vmm/fs/watch.h"
#include "vmm/wire/notify.h"

#define VALID_UNWATCHED 1U /* seconds */
#define VALID_WATCHED   600U
#define VALID_EXCLUSIVE 86400U

static int64_t coherence_change_ns(const struct statx *status)
{
	return status->stx_ctime.tv_sec * 1000000000 + (int64_t)status->stx_ctime.tv_nsec;
}

static const char *const cache_names[] = {
	[FS_CACHE_SHARED] = "shared",
	[FS_CACHE_EXCLUSIVE] = "exclusive",
	[FS_CACHE_NONE] = "none",
};

int fs_cache_parse(const char *text)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(cache_names); i++)
		if (strcmp(text, cache_names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

const char *fs_cache_name(enum fs_cache cache)
{
	return cache_names[cache];
}

int coherence_create(struct coherence *coherence, enum fs_cache cache, int notify_fd, int root_fd)
{
	*coherence = (struct coherence){.cache = cache, .notify_fd = notify_fd};
	if (cache != FS_CACHE_SHARED || notify_fd < 0)
		return 0;
	coherence->bytes = malloc(LIMIT_FS_NOTIFY_BYTES);
	if (!coherence->bytes)
		return -ENOMEM;
	if (!watch_can(root_fd)) {
		log_info("this file system does not tell of its changes: the guest caches for %u s",
			 VALID_UNWATCHED);
	} else if (watch_create(&coherence->watch)) {
		coherence->watch = NULL;
		log_info("changes of the host cannot be watched here: the guest caches for %u s",
			 VALID_UNWATCHED);
	}
	return fd_set_nonblocking(notify_fd, 1);
}

void coherence_destroy(struct coherence *coherence)
{
	watch_destroy(coherence->watch);
	fd_close(&coherence->notify_fd);
	free(coherence->bytes);
	coherence->bytes = NULL;
	coherence->watch = NULL;
}

void coherence_watch(struct fs_server *server, struct inode *directory)
{
	struct coherence *coherence = &server->coherence;
	int error, fd;

	/* The upper layer of a review changes by the guest alone. */
	if (!coherence->ready || !coherence->watch || directory->watch ||
	    directory->layers == INODE_UPPER)
		return;
	fd = path_inode_fd(&server->inodes, directory);
	if (fd < 0)
		return;
	if (directory->layers == INODE_MERGED)
		fd = directory->lower_fd;
	error = watch_add(coherence->watch, fd, directory->id, &directory->watch);
	if (error != -ENOSPC || coherence->full)
		return;
	coherence->full = true;
	log_warning("too many directories to watch (see fs.fanotify.max_user_marks): what you "
		    "change in some of them is seen in the guest after %u s",
		    VALID_UNWATCHED);
}

void coherence_forget(struct fs_server *server, struct inode *inode)
{
	if (!inode->watch)
		return;
	/* The mark goes by the open directory; without it the kernel would keep it. */
	path_inode_fd(&server->inodes, inode);
	watch_remove(server->coherence.watch, inode->watch, layer_lower_fd(inode));
	inode->watch = NULL;
}

static bool coherence_watches(const struct fs_server *server, const struct inode *directory)
{
	return directory && server->coherence.ready &&
	       (directory->watch || directory->layers == INODE_UPPER);
}

void coherence_lose(struct fs_server *server)
{
	server->coherence.lost = server->coherence.ready;
}

bool coherence_covers(struct fs_server *server, const struct inode *inode,
		      const struct statx *status)
{
	/* A file's changes are seen where the name is that it is changed by. */
	if (inode->identity.type == S_IFDIR)
		return coherence_watches(server, inode);
	return inode->name && status->stx_nlink < 2 &&
	       coherence_watches(server, inode_find(&server->inodes, inode->parent));
}

bool coherence_caches_listing(const struct fs_server *server, const struct inode *directory)
{
	return server->coherence.cache == FS_CACHE_EXCLUSIVE ||
	       coherence_watches(server, directory);
}

struct validity coherence_validity(struct fs_server *server, const struct inode *directory,
				   const struct inode *inode, const struct statx *status)
{
	struct validity validity = {VALID_UNWATCHED, VALID_UNWATCHED};

	switch (server->coherence.cache) {
	case FS_CACHE_EXCLUSIVE:
		return (struct validity){VALID_EXCLUSIVE, VALID_EXCLUSIVE};
	case FS_CACHE_NONE:
		return (struct validity){0, 0};
	case FS_CACHE_SHARED:
		break;
	}
	if (coherence_watches(server, directory))
		validity.entry = VALID_WATCHED;
	if (inode && coherence_covers(server, inode, status))
		validity.attributes = VALID_WATCHED;
	/* A name of a file with several may come to stand for another: see link_break.h. */
	if (inode && inode->identity.alias)
		validity.entry = VALID_UNWATCHED;
	return validity;
}

void coherence_told(struct fs_server *server, struct inode *inode, const struct statx *status)
{
	if (!server->coherence.ready)
		return;
	inode->told = (struct inode_told){
		.known = true,
		.change_ns = coherence_change_ns(status),
		.size = status->stx_size,
	};
}

void coherence_changed_by_guest(struct fs_server *server, uint64_t node_id)
{
	struct inode *inode = server->coherence.ready ? inode_find(&server->inodes, node_id) : NULL;

	if (inode)
		inode->told.by_guest = true;
}

bool coherence_is_stale(const struct fs_server *server, const struct inode *inode,
			const struct statx *status)
{
	const struct inode_told *told = &inode->told;

	if (!server->coherence.ready || !told->known || told->by_guest)
		return false;
	return told->size != status->stx_size || told->change_ns != coherence_change_ns(status);
}

/* --- notes to the guest --- */

static void coherence_flush(struct coherence *coherence)
{
	while (coherence->start < coherence->end) {
		ssize_t sent = send(coherence->notify_fd, coherence->bytes + coherence->start,
				    coherence->end - coherence->start, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0) {
			coherence->ready = false; /* coherence_receive sees the end */
			coherence->start = coherence->end = 0;
			return;
		}
		coherence->start += (uint32_t)sent;
	}
	coherence->start = coherence->end = 0;
}

static void coherence_put(struct coherence *coherence, const struct notify_record *record)
{
	size_t length;

	if (coherence->end + NOTIFY_RECORD_BYTES > LIMIT_FS_NOTIFY_BYTES) {
		memmove(coherence->bytes, coherence->bytes + coherence->start,
			coherence->end - coherence->start);
		coherence->end -= coherence->start;
		coherence->start = 0;
	}
	/* Room is kept for the one record that says so. */
	if (coherence->end + 2 * NOTIFY_RECORD_BYTES > LIMIT_FS_NOTIFY_BYTES &&
	    record->kind != NOTIFY_INVAL_ALL) {
		coherence->lost = true;
		return;
	}
	if (notify_encode(record, coherence->bytes + coherence->end, &length))
		return;
	coherence->end += (uint32_t)length;
	coherence->notes++;
}

static void coherence_put_entry(struct coherence *coherence, enum notify_kind kind, uint64_t parent,
				uint64_t child, const char *name, uint32_t mask)
{
	struct notify_record record = {
		.kind = kind,
		.parent = parent,
		.child = child,
		.mask = mask,
		.name_length = (uint32_t)strnlen(name, NOTIFY_NAME_BYTES),
	};

	memcpy(record.name, name, record.name_length);
	coherence_put(coherence, &record);
}

static void coherence_put_inode(struct coherence *coherence, uint64_t node_id)
{
	const struct notify_record record = {.kind = NOTIFY_INVAL_INODE, .child = node_id};

	coherence_put(coherence, &record);
}

/* The node that the guest knows @name of @directory as, or 0. */
static uint64_t coherence_child(struct fs_server *server, struct inode *directory, const char *name)
{
	int fd = path_inode_fd(&server->inodes, directory);
	struct inode_identity identity;
	struct statx status;
	struct inode *inode;

	if (fd < 0 || layer_look(server, directory, fd, name, &status))
		return 0;
	identity = link_identity(server, directory, name, &status);
	inode = inode_find_identity(&server->inodes, &identity);
	return inode ? inode->id : 0;
}

/* Whether the guest sees something of its own by that name, in a share under review. */
static bool coherence_is_hidden(struct fs_server *server, struct inode *directory, const char *name)
{
	struct layer_view view;

	if (directory->layers != INODE_MERGED || path_inode_fd(&server->inodes, directory) < 0 ||
	    layer_view(directory, name, &view))
		return false;
	return (view.upper && !S_ISDIR(view.status.stx_mode)) || view.whiteout;
}

/* fanotify's bits as inotify's. Of a file made and removed again both are told, in that order. */
static uint32_t coherence_inotify_mask(uint64_t mask)
{
	static const struct {
		uint64_t fanotify;
		uint32_t inotify;
	} bits[] = {
		{FAN_CREATE, IN_CREATE},           {FAN_DELETE, IN_DELETE},
		{FAN_MOVED_FROM, IN_MOVED_FROM},   {FAN_MOVED_TO, IN_MOVED_TO},
		{FAN_MODIFY, IN_MODIFY},           {FAN_ATTRIB, IN_ATTRIB},
		{FAN_CLOSE_WRITE, IN_CLOSE_WRITE},
	};
	uint32_t result = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(bits); i++)
		if (mask & bits[i].fanotify)
			result |= bits[i].inotify;
	return result && (mask & FAN_ONDIR) ? result | IN_ISDIR : result;
}

/* The order of what is put: see vmm/wire/notify.h. */
static void coherence_event(void *context, const struct watch_event *event)
{
	const uint64_t entry_changes = FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO;
	struct fs_server *server = context;
	struct coherence *coherence = &server->coherence;
	struct inode *directory;
	uint64_t child;
	uint32_t mask;

	if (!coherence->ready)
		return;
	if (event->overflow)
		coherence->lost = true;
	directory = event->overflow ? NULL : inode_find(&server->inodes, event->node_id);
	if (!directory || coherence->lost)
		return;
	if (!event->name) {
		coherence_put_inode(coherence, directory->id);
		return;
	}
	if (guard_hides(server, directory, event->name))
		return;
	child = coherence_child(server, directory, event->name);
	if (coherence_is_hidden(server, directory, event->name)) {
		/* The change may be older than the guest's copy, and its cache older than that. */
		if (child)
			coherence_put_inode(coherence, child);
		return;
	}
	if (event->mask & entry_changes) {
		coherence_put_entry(coherence, NOTIFY_EXPIRE_ENTRY, directory->id, 0, event->name,
				    0);
		coherence_put_inode(coherence, directory->id);
	}
	if (child)
		coherence_put_inode(coherence, child);
	mask = coherence_inotify_mask(event->mask);
	if (mask)
		coherence_put_entry(coherence, NOTIFY_EVENT, directory->id, child, event->name,
				    mask);
}

/* READY, or the end of the stream. */
static void coherence_receive(struct coherence *coherence)
{
	uint8_t bytes[NOTIFY_READY_BYTES];
	ssize_t length;

	if (coherence->notify_fd < 0)
		return;
	do {
		length = recv(coherence->notify_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (length < 0 && errno == EINTR);
	if (length < 0 && errno == EAGAIN)
		return;
	coherence->ready = length == (ssize_t)sizeof(bytes) && !coherence->ready &&
			   notify_decode_ready(bytes) == 0;
}

/* Sends what there are notes of, and when that is not all, that it is not. */
static void coherence_send(struct coherence *coherence)
{
	const struct notify_record all = {.kind = NOTIFY_INVAL_ALL};

	if (!coherence->ready)
		return;
	coherence_flush(coherence);
	if (coherence->lost && coherence->start == coherence->end) {
		coherence->lost = false;
		coherence_put(coherence, &all);
		coherence_flush(coherence);
	}
}

void coherence_serve_notify(struct fs_server *server)
{
	coherence_receive(&server->coherence);
	coherence_send(&server->coherence);
}

bool coherence_serve_watch(struct fs_server *server)
{
	struct coherence *coherence = &server->coherence;
	int more = coherence->watch ? watch_read(coherence->watch, coherence_event, server) : 0;

	if (more < 0)
		coherence->lost = true;
	coherence_send(coherence);
	return more > 0;
}
