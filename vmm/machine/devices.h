/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's devices: made in written order, each on its own register page and interrupt. The
 * order is part of the guest's view: the root device is first, shares follow as they were given.
 */
#ifndef MVAGENT_MACHINE_DEVICES_H
#define MVAGENT_MACHINE_DEVICES_H

#include <stdint.h>

#include "vmm/machine/bus.h"
#include "vmm/machine/options.h"
#include "vmm/machine/ram.h"
#include "vmm/machine/vm.h"
#include "vmm/virtio/vhost_frontend.h"

/* The root and each share. */
#define DEVICES_FRONTENDS (LIMIT_SHARES + 1)

struct vsock_device;
struct net_device;
struct rng_device;
struct balloon_device;

struct devices {
	void *pages;        /* register pages of all devices and the panic device's page */
	int acknowledge_fd; /* where writes to InterruptACK end; nobody reads it */
	unsigned int count;
	struct virtio_mmio *transports[LIMIT_MMIO_DEVICES];
	int interrupt_fds[LIMIT_MMIO_DEVICES];

	/* Devices served by other processes, and who they are. */
	unsigned int frontend_count;
	struct vhost_frontend *frontends[DEVICES_FRONTENDS];
	char frontend_names[DEVICES_FRONTENDS][64];

	struct vsock_device *vsock;
	struct net_device *net;
	struct rng_device *rng;
	struct balloon_device *balloon;
};

/* Makes what @options ask for and attaches it to @vm and @bus. Takes over the device descriptors in
 * @options. 0 or -errno with the sentence printed; destroy in every case. */
int devices_create(struct devices *devices, struct options *options, const struct ram *ram,
		   struct loop *loop, struct vm *vm, struct bus *bus);

/* Stops and frees all. The vCPUs must have ended. */
void devices_destroy(struct devices *devices);

#endif
