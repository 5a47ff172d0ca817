/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request code of a read-only block device (virtio 1.2, 5.2): one queue in, one content behind
 * it. Reads go straight from files to guest memory; those that must wait for the disk are
 * finished by the loop, in whatever order they become ready.
 */
#ifndef MVAGENT_ROOT_BLK_H
#define MVAGENT_ROOT_BLK_H

#include <stdint.h>

#include <linux/virtio_blk.h>

#include "vmm/loop/loop.h"
#include "vmm/root/content.h"
#include "vmm/virtio/queue.h"

#define BLK_SECTOR_BYTES 512U /* of the protocol, whatever blk_size says (5.2.4) */
#define BLK_QUEUES       1U

struct blk;

struct blk_description {
	struct loop *loop; /* has room for LIMIT_BLK_INFLIGHT operations */
	struct content content;
	/* Requests were finished outside blk_process_queue: publish them. */
	void (*finish_batch)(void *context);
	void *context;
};

struct blk_counters {
	uint64_t requests;
	uint64_t waited;  /* that went through the loop */
	uint64_t refused; /* answered with an error, or not at all */
};

/* Makes the device, idle. 0 or -ENOMEM. */
int blk_create(struct blk **blk, const struct blk_description *description);

/* Frees it. No request may be in flight: see blk_drain. NULL is ignored. */
void blk_destroy(struct blk *blk);

/* The features that the device itself offers (5.2.3), and its configuration space (5.2.4). */
uint64_t blk_features(void);
struct virtio_blk_config blk_config(const struct blk *blk);

/* Takes and serves what is in @queue, at most until LIMIT_BLK_INFLIGHT requests wait for a file;
 * then it is to be called again after the next finish_batch. 0, or -EPROTO when the ring is broken.
 */
int blk_process_queue(struct blk *blk, struct virtqueue *queue);

/* Runs the loop until no request is in flight: then nothing holds guest memory any more. */
void blk_drain(struct blk *blk);

struct blk_counters blk_counters(const struct blk *blk);

#endif
