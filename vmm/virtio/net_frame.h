/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a frame is about that the guest sent to a card that leads nowhere. Pure: bytes in, a summary
 * out, and the summaries that were new in a table of fixed size.
 */
#ifndef MVAGENT_VIRTIO_NET_FRAME_H
#define MVAGENT_VIRTIO_NET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/wire/frame.h"

/* As much of a frame as is looked at: headers, and a question behind them. */
#define NET_FRAME_BYTES 512U

/* Any bytes have a summary: of what is missing or makes no sense, less is said. */
void net_frame_summarize(struct frame_summary *summary, const uint8_t *frame, size_t length);

/* The first frames of each kind. Zero before use. */
struct net_frames_seen {
	uint64_t moment_ns; /* when @burst last fell */
	unsigned int burst; /* records made at once of late */
	unsigned int counts[FRAME_CLASSES];
	struct frame_summary kinds[FRAME_CLASSES][LIMIT_FRAMES_OF_A_CLASS];
};

enum net_frame_news {
	NET_FRAME_KNOWN,  /* one like it was recorded before */
	NET_FRAME_NEW,    /* the first of its kind: recorded now */
	NET_FRAME_MISSED, /* new, but there is no room, or too many came at once */
};

/* Two frames are of one kind when they go to the same place for the same purpose, whatever address
 * and port they come from. @now_ns: CLOCK_MONOTONIC. */
enum net_frame_news net_frames_add(struct net_frames_seen *seen,
				   const struct frame_summary *summary, uint64_t now_ns);

#endif
