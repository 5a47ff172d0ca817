/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio over MMIO (virtio 1.2, 4.2). The 4 KiB register page is memory that the machine may map
 * into the guest read-only, so that reads of registers never leave the guest; every write comes to
 * virtio_mmio_write, which brings the page up to date before it returns. QueueNotify and
 * InterruptACK are meant to be given ioeventfds by the machine; when it does not, virtio_mmio_write
 * does their work.
 *
 * The used-buffer bit of InterruptStatus is always set and the interrupt is an edge: the driver
 * needs no acknowledge. This departs from the letter of 4.2.2.1 (the bit does not clear on
 * acknowledge); Linux is content, and it saves two exits an interrupt.
 */
#ifndef MVAGENT_VIRTIO_MMIO_H
#define MVAGENT_VIRTIO_MMIO_H

#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"

#define VIRTIO_MMIO_PAGE_SIZE 4096U

struct virtio_mmio;

/* Makes the transport of one device. @page: VIRTIO_MMIO_PAGE_SIZE bytes, zeroed, the caller's, that
 * outlive it.
 * @interrupt_fd: eventfd that interrupts the guest, the caller's. Kicks are served on @loop. 0 or
 * -errno. */
int virtio_mmio_create(struct virtio_mmio **mmio, const struct virtio_device_description *device,
		       const struct guest_memory *memory, struct loop *loop, void *page,
		       int interrupt_fd);

/* Resets the device and frees the transport; the device itself stays its owner's. */
void virtio_mmio_destroy(struct virtio_mmio *mmio);

/* The eventfd that kicks queue @index (an ioeventfd with that value as datamatch), the transport's.
 */
int virtio_mmio_kick_fd(const struct virtio_mmio *mmio, unsigned int index);
unsigned int virtio_mmio_queue_count(const struct virtio_mmio *mmio);

/* A guest access at @offset in the page, from any vCPU thread. Accesses that are not aligned 32-bit
 * ones, outside the configuration space, are ignored (writes) or read as zero. */
void virtio_mmio_write(struct virtio_mmio *mmio, uint64_t offset, const void *data,
		       unsigned int length);
void virtio_mmio_read(const struct virtio_mmio *mmio, uint64_t offset, void *data,
		      unsigned int length);

/* A stretch of the register page. */
struct virtio_mmio_register_range {
	uint32_t offset;
	uint32_t length;
};

/* The registers whose writes the machine may hold back (KVM's coalesced MMIO), as long as it
 * delivers them, in the order in which they were made, before the next write that is not held back.
 * No such write changes what the driver reads before it writes to another register; the one
 * exception is a QueueReady that the driver clears on its error path and reads back (4.2.2.2),
 * which may still show 1 then. */
const struct virtio_mmio_register_range *virtio_mmio_postponable(unsigned int *count);

#endif
