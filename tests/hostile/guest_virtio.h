/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's half of virtio, which an attack uses rightly or wrongly. */
#ifndef MVAGENT_TESTS_GUEST_VIRTIO_H
#define MVAGENT_TESTS_GUEST_VIRTIO_H

#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>

#include "tests/hostile/guest.h"

#define ID_NET     1U
#define ID_BLK     2U
#define ID_RNG     4U
#define ID_BALLOON 5U
#define ID_VSOCK   19U
#define ID_FS      26U

#define STATUS_ACKNOWLEDGE 1U
#define STATUS_DRIVER      2U
#define STATUS_DRIVER_OK   4U
#define STATUS_FEATURES_OK 8U
#define STATUS_NEEDS_RESET 64U

#define FEATURE_INDIRECT  (1UL << 28)
#define FEATURE_EVENT_IDX (1UL << 29)
#define FEATURE_VERSION_1 (1UL << 32)

#define NEXT     VRING_DESC_F_NEXT
#define WRITE    VRING_DESC_F_WRITE
#define INDIRECT VRING_DESC_F_INDIRECT

/* One queue. Its parts are at fixed places for each device and index. */
struct ring {
	uint64_t device; /* the address of its register page */
	uint32_t index;
	uint16_t size;
	volatile struct vring_desc *descriptors;
	volatile struct vring_avail *available;
	volatile struct vring_used *used;
	uint16_t shown; /* the available index */
	uint16_t seen;  /* of the used index */
};

static inline uint32_t reg_read(uint64_t device, unsigned int offset)
{
	return read_32(device + offset);
}

static inline void reg_write(uint64_t device, unsigned int offset, uint32_t value)
{
	write_32(device + offset, value);
}

/* The queues that take any chain, readable or writable, as it comes. */
struct target {
	uint32_t id;
	uint32_t queue;
};
#define TARGET_COUNT 7U
extern const struct target targets[TARGET_COUNT];

/* The register page of the device with @id; ends the run when there is none. */
uint64_t find_device(uint32_t id);

/* How many queues the device has. */
uint32_t count_queues(uint64_t device);

/* Status 0, then up to FEATURES_OK with what is offered of @features; ends the run when the device
 * refuses these. */
void begin_device(uint64_t device, uint64_t features);

/* Lays out queue @index in cleared memory, tells the device, and makes it ready. */
void make_ring(struct ring *ring, uint64_t device, uint32_t index, uint16_t size);

/* DRIVER_OK. */
void go_device(uint64_t device);

/* begin_device, all queues of the device in @rings (16 entries each at most), go_device. Ends the
 * run when the device then needs a reset. */
void start_device(struct ring *rings, uint64_t device, uint64_t features);

/* Tells the device where a queue is, in any words. */
void place_queue(uint64_t device, uint32_t index, uint32_t size, uint64_t descriptors,
		 uint64_t available, uint64_t used);

void set_descriptor(struct ring *ring, uint16_t index, uint64_t address, uint32_t length,
		    uint16_t flags, uint16_t next);

/* Makes the chain at @head available; kick_ring tells the device. */
void show_chain(struct ring *ring, uint16_t head);
void kick_ring(const struct ring *ring);

/* Waits for the next used element; ends the run when none comes. Returns its length. */
uint32_t wait_used(struct ring *ring);

/* The same for a while only, of some microseconds @pauses times: whether one came. */
bool saw_used(struct ring *ring, unsigned int pauses);

/* Waits for NEEDS_RESET; ends the run when it does not come. */
void wait_needs_reset(uint64_t device);

/* Resets the device and uses it as a good driver does; ends the run when it does not work. */
void behave(uint64_t device);
void behave_all(void);

#endif
