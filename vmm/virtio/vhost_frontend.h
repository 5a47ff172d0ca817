/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front end of vhost-user: a virtio device whose queues are served by another process. It
 * negotiates at start, hands over memory, rings, kick and interrupt descriptors at activation, and
 * takes the rings back at reset. The data path does not pass here.
 */
#ifndef MVAGENT_VIRTIO_VHOST_FRONTEND_H
#define MVAGENT_VIRTIO_VHOST_FRONTEND_H

#include "vmm/virtio/device.h"

struct vhost_frontend;

struct vhost_frontend_description {
	enum virtio_device_id id;
	int socket_fd;                     /* connected; taken over, also on failure */
	int memory_fd;                     /* the memfd behind guest memory; the caller's */
	const struct guest_memory *memory; /* region offsets in memory_fd follow in order from 0 */
	unsigned int queue_count;
	uint16_t queue_size;
	const void *config;   /* device configuration, or NULL to ask the back end (GET_CONFIG) */
	uint32_t config_size; /* bytes of config, or how many to ask for */
	unsigned int patience_ms; /* for all the answers at start, of an activation, of a reset; 0:
				     10 s */
};

/* Connects and negotiates features. Returns 0, -EPROTO when the back end cannot do what is needed,
 * or -errno; the sentence is printed. A back end that does
 * not answer in time is lost, then and later. */
int vhost_frontend_create(struct vhost_frontend **frontend,
			  const struct vhost_frontend_description *description);
void vhost_frontend_destroy(struct vhost_frontend *frontend);

/* The device to give to a transport. Stays valid until destroy. */
const struct virtio_device_description *
vhost_frontend_device(const struct vhost_frontend *frontend);

/* The socket, for a watcher that wants to know when the back end is lost (POLLHUP): it died, or did
 * not answer as it should. Not for reading. */
int vhost_frontend_socket(const struct vhost_frontend *frontend);

#endif
