/* SPDX-License-Identifier: Apache-2.0 */
/* The server as a virtio device (virtio 1.2, 5.11) behind vhost-user. */
#ifndef MVAGENT_FS_DEVICE_H
#define MVAGENT_FS_DEVICE_H

#include "vmm/fs/server.h"
#include "vmm/virtio/vhost_backend.h"

/* Queue 0 takes requests of high priority (FORGET), queue 1 all others (5.11.2). */
#define FS_DEVICE_QUEUES 2U

struct fs_device {
	struct fs_server *server; /* the caller's */
	struct descriptor_chain chain;
};

/* What to give to vhost_backend_create; @device must outlive the back end. */
struct vhost_backend_description fs_device_describe(struct fs_device *device,
						    struct fs_server *server);

#endif
