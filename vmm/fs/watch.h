/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notice of what the host changes in directories that the guest knows, by fanotify(7). Not inotify:
 * that one does not say who made a change, and every change here but a few is the guest's own, made
 * by this process. An unprivileged fanotify group (Linux 5.13) marks those as its own, and never
 * merges them with others.
 *
 * A file system that does not see all changes itself (9p, NFS, FUSE) is not watched.
 */
#ifndef MVAGENT_FS_WATCH_H
#define MVAGENT_FS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch;
struct watch_place; /* one directory that is watched */

struct watch_event {
	bool overflow;    /* events were lost: anything may have changed; nothing else is set */
	uint64_t node_id; /* of the directory */
	const char *name; /* of the entry in it, or NULL: the directory itself */
	uint64_t mask;    /* FAN_CREATE, FAN_DELETE... and FAN_ONDIR */
};

typedef void watch_callback(void *context, const struct watch_event *event);

/* Makes a group. 0, or -errno: the kernel has none for this user. */
int watch_create(struct watch **watch);
void watch_destroy(struct watch *watch);

/* Readable when there are events. */
int watch_fd(const struct watch *watch);

/* Whether the file system of @fd tells all its changes. */
bool watch_can(int fd);

/* Watches the directory behind @fd (O_PATH is enough) from now on; @place is the caller's to give
 * back. 0, -ENOSPC (too many), -EOPNOTSUPP, -errno. */
int watch_add(struct watch *watch, int fd, uint64_t node_id, struct watch_place **place);

/* No more; @fd is the directory's, or -1 when it is not open: its events are ignored then. */
void watch_remove(struct watch *watch, struct watch_place *place, int fd);

/* Calls @callback for changes that are not this process's own: as many as fit into one read, since
 * a host that never rests must not keep the guest waiting. 1: there may be more, 0: no, -errno. */
int watch_read(struct watch *watch, watch_callback *callback, void *context);

#endif
