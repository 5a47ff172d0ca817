/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the guest's accesses go that leave it: ports, and device addresses. The map is fixed by the
 * layout; an address that is nobody's reads as ones and swallows writes, as on a PC.
 */
#ifndef MVAGENT_MACHINE_BUS_H
#define MVAGENT_MACHINE_BUS_H

#include <pthread.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/machine/console.h"
#include "vmm/machine/ending.h"
#include "vmm/machine/exits.h"
#include "vmm/virtio/mmio.h"

struct kvm_coalesced_mmio_ring;

struct bus {
	struct exits *exits;
	struct console *console;
	struct ending *ending;
	unsigned int device_count;
	struct virtio_mmio *devices[LIMIT_MMIO_DEVICES];
	/* Postponed writes of all vCPUs, in order; NULL when KVM postpones none. */
	pthread_mutex_t postponed_lock;
	struct kvm_coalesced_mmio_ring *postponed;
	unsigned int postponed_capacity;
};

/* One access of @length bytes (1, 2, 4, 8), from a vCPU thread. */
void bus_port_write(struct bus *bus, uint16_t port, const void *data, unsigned int length);
void bus_port_read(struct bus *bus, uint16_t port, void *data, unsigned int length);
void bus_write(struct bus *bus, uint64_t gpa, const void *data, unsigned int length);
void bus_read(struct bus *bus, uint64_t gpa, void *data, unsigned int length);

#endif
