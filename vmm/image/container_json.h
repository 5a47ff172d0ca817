/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptions in an archive of layers: those of the OCI image format (index.json, manifests,
 * configurations; https://specs.opencontainers.org/image-spec), and manifest.json as `docker save`
 * writes it. Each function takes the bytes of one; -EINVAL with the sentence printed when they are
 * not what they should be, -ENOMEM.
 */
#ifndef MVAGENT_IMAGE_CONTAINER_JSON_H
#define MVAGENT_IMAGE_CONTAINER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/base/digest.h"
#include "vmm/image/settings.h"

#define CONTAINER_NAME_BYTES 256U

/* A file of the archive; its digest, if the description says it. */
struct container_part {
	char name[CONTAINER_NAME_BYTES];
	bool has_digest;
	uint8_t digest[SHA256_BYTES];
};

/* What one image consists of. */
struct container_plan {
	struct container_part config;
	unsigned int layer_count;
	struct container_part layers[LIMIT_IMAGE_LAYERS];
	/* From the configuration: of the layers when they are unpacked. 0: it says none. */
	unsigned int unpacked_count;
	uint8_t unpacked[LIMIT_IMAGE_LAYERS][SHA256_BYTES];
	struct image_settings settings;
	char *user; /* as the configuration has it; allocated; NULL: none */
};

/* An index: the manifest (or further index) of the image for this machine. */
int container_parse_index(const char *text, size_t length, struct container_part *manifest);

/* Whether a description is an index, and no manifest. */
bool container_is_index(const char *text, size_t length);

/* Configuration and layers. */
int container_parse_manifest(const char *text, size_t length, struct container_plan *plan);

/* The same of `docker save`. */
int container_parse_docker(const char *text, size_t length, struct container_plan *plan);

/* How the command is run, and digests of the layers. */
int container_parse_config(const char *text, size_t length, struct container_plan *plan);

/* What images and their layers are called that this machine can run: "amd64". */
const char *container_architecture(void);

#endif
