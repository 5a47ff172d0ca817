/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of any of the three kinds: of OCI, of `docker save`, or of a root file system. */
#ifndef MVAGENT_IMAGE_CONTAINER_H
#define MVAGENT_IMAGE_CONTAINER_H

#include "vmm/image/layer.h"
#include "vmm/image/settings.h"

struct container_input {
	int fd;         /* a plain tar archive */
	uint64_t bytes; /* of it */
	uint64_t *left; /* how many bytes may be unpacked: stream_open */
};

/* Reads the layers into @target, and what the archive says of the command into @settings. *@user:
 * whom it says to run it, in its own words (allocated), or NULL. 0 or -errno with the sentence
 * printed. */
int container_apply(const struct container_input *input, const struct layer_target *target,
		    struct image_settings *settings, char **user);

#endif
