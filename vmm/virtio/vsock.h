/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vsock device (virtio 1.2, 5.10): byte streams between the guest and sockets that this process
 * was given. The guest connects to (CID 2, port); nothing else is there for it to reach, and the
 * host never connects to the guest.
 */
#ifndef MVAGENT_VIRTIO_VSOCK_H
#define MVAGENT_VIRTIO_VSOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"

struct vsock_device;

/* Makes the device of the guest with @guest_cid (at least 3, below 2^32 - 1). Its descriptors are
 * served on @loop; it takes one operation for itself, one for each port, and with a
 * lender one more and one for each connection. 0 or -errno. */
int vsock_device_create(struct vsock_device **device, struct loop *loop, uint32_t guest_cid);

/* From the loop's thread. Closes every port, whatever is still on its way. NULL is ignored. */
void vsock_device_destroy(struct vsock_device *device);

/* Lets the guest connect to @port, once in the life of the device, and be connected with @fd: a
 * connected AF_UNIX stream socket that is the device's from then on. An end of file is a half-close
 * in both directions. A peer that will read no more should close its socket, or shut down its
 * reading end and read what is left: as long as the socket is full, the kernel does not tell of a
 * shut reading end.
 * Before the loop runs. 0, -EEXIST, -ENOSPC (LIMIT_VSOCK_PORTS), -EINVAL (no stream), -errno; on
 * failure @fd stays the caller's. */
int vsock_device_add_port(struct vsock_device *device, uint32_t port, int fd);

/* Lets the guest connect to @port again and again: for each connection a descriptor is asked for on
 * @lender_fd (vmm/wire/lend.h), which is the device's from then on. Before the loop runs. 0 or
 * -errno; on failure it stays the caller's. */
int vsock_device_set_lender(struct vsock_device *device, uint32_t port, int lender_fd);

/* For virtio_mmio_create; valid as long as the device. */
const struct virtio_device_description *vsock_device_description(const struct vsock_device *device);

/* For the end of the guest, before its reset, on the loop's thread: takes in what the guest sent,
 * and runs the loop until all of it was written to the ports, for at most @milliseconds. 0,
 * -ETIMEDOUT when a reader was too slow, -errno. */
int vsock_device_finish(struct vsock_device *device, unsigned int milliseconds);

#endif
