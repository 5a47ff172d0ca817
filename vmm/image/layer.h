/* SPDX-License-Identifier: Apache-2.0 */
/* One layer: a tar archive, applied to what the layers below it have made. */
#ifndef MVAGENT_IMAGE_LAYER_H
#define MVAGENT_IMAGE_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/image/contents.h"
#include "vmm/image/merge.h"
#include "vmm/image/stream.h"

/* What of an image's files stays outside. */
struct layer_counts {
	uint64_t entries;
	uint64_t special;    /* devices, FIFOs, sockets */
	uint64_t attributes; /* that are too long together for one file */
};

struct layer_target {
	struct merge *merge;
	struct contents *contents;
	struct layer_counts *counts;
};

/* To be called once while files can still be opened: the C library reads some for conversions of
 * names, which libarchive tries. */
void layer_prepare(void);

/* Applies the archive that comes out of @stream, to its end. @whiteouts: names that begin with
 * ".wh." take away, as in layers of containers. 0 or -errno with the sentence printed. */
int layer_apply(const struct layer_target *target, struct stream *stream, bool whiteouts);

#endif
