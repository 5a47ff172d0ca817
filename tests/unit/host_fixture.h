/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that is laid out as a host, the image of it, and all bytes of the device that is made
 * of both. After cmocka.h and erofs_image.h.
 */
#ifndef MVAGENT_TESTS_HOST_FIXTURE_H
#define MVAGENT_TESTS_HOST_FIXTURE_H

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/root/blk.h"
#include "vmm/root/host_content.h"

struct host {
	char path[32];
	struct host_plan plan;
	struct host_image image;
	struct host_content *content;
};

/* Runs shell commands in the host's root directory. */
static inline void host_run(const struct host *host, const char *script)
{
	assert_int_equal(
		shell(NULL, "cd %s && set -e && umask 022 && { %s ; }", host->path, script), 0);
}

static inline void host_start(struct host *host, const char *script)
{
	*host = (struct host){.path = "/tmp/mvagent-host-XXXXXX"};
	assert_non_null(mkdtemp(host->path));
	assert_int_equal(chmod(host->path, 0755), 0);
	host_run(host, script);
	assert_int_equal(host_plan_create(&host->plan, host->path), 0);
}

static inline void host_build(struct host *host)
{
	assert_int_equal(host_image_build(&host->image, &host->plan, NULL), 0);
	assert_int_equal(host_content_create(&host->content, &host->plan, &host->image,
					     LIMIT_BLK_INFLIGHT + 1),
			 0);
}

static inline void host_forget(struct host *host)
{
	host_content_destroy(host->content);
	host_image_destroy(&host->image);
	host->content = NULL;
}

static inline void host_stop(struct host *host)
{
	host_forget(host);
	host_plan_destroy(&host->plan);
	assert_int_equal(shell(NULL, "chmod -R u+rwX %s; rm -rf %s", host->path, host->path), 0);
}

/* The node at a path without a first slash; 0: there is none. */
static inline uint32_t host_find(const struct host *host, const char *path)
{
	const struct tree *tree = &host->image.tree;
	char found[PATH_MAX];

	for (uint32_t i = 1; i < tree->node_count; i++) {
		if (tree_path(tree, i, 0, found) == 0 && strcmp(found, path) == 0)
			return i;
	}
	return 0;
}

static inline const struct tree_node *host_node(const struct host *host, const char *path)
{
	uint32_t index = host_find(host, path);

	if (!index)
		fail_msg("/%s is not there", path);
	return &host->image.tree.nodes[index];
}

/* Reads a range of the device as blk.c would. 0 or -EIO. */
static inline int host_read(struct host *host, uint64_t offset, uint8_t *bytes, uint64_t length)
{
	struct content content = host_content_of(host->content);

	while (length) {
		struct content_piece piece;
		int result = content.ops->begin(content.context, offset, length, &piece);

		if (result)
			return result;
		assert_in_range(piece.length, 1, length);
		if (piece.fd >= 0) {
			result = fd_pread_full(piece.fd, bytes, piece.length, (off_t)piece.offset);
		} else if (piece.memory) {
			memcpy(bytes, piece.memory, piece.length);
		} else {
			memset(bytes, 0, piece.length);
		}
		result = content.ops->end(content.context, &piece, result);
		if (result)
			return result;
		offset += piece.length;
		bytes += piece.length;
		length -= piece.length;
	}
	return 0;
}

static inline uint64_t host_device_bytes(const struct host *host)
{
	return host_content_of(host->content).sectors * BLK_SECTOR_BYTES;
}

/* All of the device; free it. */
static inline uint8_t *host_read_device(struct host *host)
{
	uint64_t length = host_device_bytes(host);
	uint8_t *bytes = malloc(length);

	assert_non_null(bytes);
	assert_int_equal(host_read(host, 0, bytes, length), 0);
	return bytes;
}

static inline bool host_device_has(struct host *host, const char *text)
{
	uint8_t *bytes = host_read_device(host);
	bool found = memmem(bytes, host_device_bytes(host), text, strlen(text)) != NULL;

	free(bytes);
	return found;
}

/* Reads the first bytes of a file through the device. 0 or -EIO. */
static inline int host_read_file(struct host *host, const char *path, char *bytes, size_t length)
{
	const struct tree_node *node = host_node(host, path);

	return host_read(host, (uint64_t)node->first_block * EROFS_BLOCK_BYTES, (uint8_t *)bytes,
			 length);
}

#endif
