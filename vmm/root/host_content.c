/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_content.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/root/blk.h"
#include "vmm/root/erofs_format.h"

/* An open file; [0] is not used. */
struct slot {
	int fd;
	uint32_t extent;
	unsigned int reads; /* in progress: it must stay open */
	uint64_t last_use;
};

/* What is known of the file of an extent. */
struct file_state {
	uint16_t slot; /* 0: not open */
	bool refused;  /* it changed */
	bool told;
};

struct host_content {
	const struct host_plan *plan;
	const struct host_image *image;
	struct host_content_counters counters;
	bool no_nowait[LIMIT_ROOT_SOURCES]; /* of what each source is on */
	struct file_state *files;           /* one for each extent */
	unsigned int told;
	uint64_t now; /* counts uses */
	unsigned int slot_count;
	struct slot slots[];
};

int host_content_create(struct host_content **content, const struct host_plan *plan,
			const struct host_image *image, unsigned int descriptors)
{
	struct host_content *created;

	assert(descriptors > LIMIT_BLK_INFLIGHT && descriptors < UINT16_MAX);
	created = calloc(1, sizeof(*created) + (descriptors + 1) * sizeof(struct slot));
	if (created)
		created->files = calloc(image->extent_count + 1U, sizeof(*created->files));
	if (!created || !created->files) {
		free(created);
		return log_errno(-ENOMEM, "cannot serve the host's directories");
	}
	created->plan = plan;
	created->image = image;
	created->slot_count = descriptors + 1;
	for (unsigned int i = 0; i < created->slot_count; i++)
		created->slots[i].fd = -1;
	*content = created;
	return 0;
}

void host_content_destroy(struct host_content *content)
{
	if (!content)
		return;
	for (unsigned int i = 1; i < content->slot_count; i++)
		fd_close(&content->slots[i].fd);
	free(content->files);
	free(content);
}

struct host_content_counters host_content_counters(const struct host_content *content)
{
	return content->counters;
}

static const struct tree_node *node_of(const struct host_content *content, uint32_t extent)
{
	return &content->image->tree.nodes[content->image->extents[extent].node];
}

/* Refuses a file and says so, once: why, or that it changed (@error is 0), which is for good. */
static int refuse(struct host_content *content, uint32_t extent, int error)
{
	const struct tree *tree = &content->image->tree;
	struct file_state *file = &content->files[extent];
	char path[PATH_MAX];

	content->counters.changed += !error && !file->refused;
	file->refused |= !error;
	if (file->told)
		return -EIO;
	file->told = true;
	if (content->told == LIMIT_ROOT_TOLD)
		log_error("more files changed on the host; they are not named any more");
	if (content->told++ >= LIMIT_ROOT_TOLD ||
	    tree_path(tree, content->image->extents[extent].node, 0, path))
		return -EIO;
	if (error)
		log_errno(error, "cannot read /%s for the guest", path);
	else
		log_error("/%s changed on the host since the guest's root was put together: the "
			  "guest cannot read it in this run",
			  path);
	return -EIO;
}

/* Whether the open file is what the metadata was made from. */
static bool is_unchanged(const struct host_content *content, const struct slot *slot)
{
	const struct tree_node *node = node_of(content, slot->extent);
	struct statx status;

	return statx(slot->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) == 0 &&
	       S_ISREG(status.stx_mode) && (status.stx_mode & S_IROTH) &&
	       status.stx_ino == node->host_inode && status.stx_size == node->size &&
	       status.stx_mtime.tv_sec == node->mtime &&
	       status.stx_mtime.tv_nsec == node->mtime_ns &&
	       status.stx_ctime.tv_sec == node->ctime && status.stx_ctime.tv_nsec == node->ctime_ns;
}

/* A free slot: what was not used for longest is closed. There is one, as each request that is in
 * flight holds one at most. */
static uint16_t take_slot(struct host_content *content)
{
	unsigned int found = 0;

	for (unsigned int i = 1; i < content->slot_count; i++) {
		const struct slot *slot = &content->slots[i];

		if (slot->fd < 0)
			return (uint16_t)i;
		if (!slot->reads && (!found || slot->last_use < content->slots[found].last_use))
			found = i;
	}
	assert(found);
	content->files[content->slots[found].extent].slot = 0;
	fd_close(&content->slots[found].fd);
	return (uint16_t)found;
}

/* Opens a file by its path below its source. Descriptor or -errno. */
static int open_file(const struct host_content *content, uint32_t extent)
{
	const struct tree *tree = &content->image->tree;
	const struct tree_node *node = node_of(content, extent);
	const struct plan_source *source = &content->plan->sources[node->source];
	char path[PATH_MAX];
	int error, fd, flags;

	error = tree_path(tree, content->image->extents[extent].node, 0, path);
	if (error)
		return error;
	/* Not blocking: by now it may be a FIFO. */
	fd = host_open(source->fd, host_plan_below(source, path), O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	/* A read that may not wait fails where a file system cannot do that: see image_measure. */
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		fd_close(&fd);
	return fd;
}

/* The slot of the file, opened if it is not; 0: it cannot be had, which was told. */
static uint16_t need_file(struct host_content *content, uint32_t extent)
{
	struct file_state *file = &content->files[extent];
	struct slot *slot;
	uint16_t index;
	int fd;

	if (file->slot)
		return file->slot;
	fd = open_file(content, extent);
	if (fd < 0) {
		/* That it is not there any more, or that a link is in its place, is a change. */
		bool gone = fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR || fd == -EXDEV;

		refuse(content, extent, gone ? 0 : fd);
		return 0;
	}
	index = take_slot(content);
	slot = &content->slots[index];
	*slot = (struct slot){.fd = fd, .extent = extent};
	file->slot = index;
	content->counters.opened++;
	return index;
}

/* A range of a file, which is checked before it is read. */
static int begin_file(struct host_content *content, uint32_t extent, uint64_t offset,
		      uint64_t length, struct content_piece *piece)
{
	uint16_t index;
	struct slot *slot;

	if (content->files[extent].refused)
		return -EIO;
	index = need_file(content, extent);
	if (!index)
		return -EIO;
	slot = &content->slots[index];
	if (!is_unchanged(content, slot))
		return refuse(content, extent, 0);
	content->counters.contents++;
	slot->reads++;
	slot->last_use = ++content->now;
	*piece = (struct content_piece){
		.fd = slot->fd,
		.token = index,
		.offset = offset,
		.length = length,
		.no_nowait = &content->no_nowait[node_of(content, extent)->source],
	};
	return 0;
}

/* The extent that has @block; the blocks from the metadata to the end are all in one. */
static uint32_t find_extent(const struct host_image *image, uint32_t block)
{
	uint32_t low = 0, high = image->extent_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (image->extents[middle].first_block <= block)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int begin(void *context, uint64_t offset, uint64_t length, struct content_piece *piece)
{
	struct host_content *content = context;
	const struct host_image *image = content->image;
	uint64_t metadata = image->layout.metadata_bytes, start, size, end;
	uint32_t extent;

	*piece = (struct content_piece){.fd = -1};
	if (offset < metadata) {
		content->counters.metadata++;
		piece->memory = image->metadata + offset;
		piece->length = bytes_minimum(length, metadata - offset);
		return 0;
	}
	extent = find_extent(image, (uint32_t)(offset / EROFS_BLOCK_BYTES));
	start = (uint64_t)image->extents[extent].first_block * EROFS_BLOCK_BYTES;
	size = node_of(content, extent)->size;
	end = bytes_align_up(size, EROFS_BLOCK_BYTES);
	if (offset - start >= end)
		return -EIO;
	if (offset - start < size)
		return begin_file(content, extent, offset - start,
				  bytes_minimum(length, size - (offset - start)), piece);
	/* What is behind the end of the file in its last block. */
	piece->length = bytes_minimum(length, end - (offset - start));
	return 0;
}

static int end(void *context, const struct content_piece *piece, int result)
{
	struct host_content *content = context;
	struct slot *slot;

	if (piece->fd < 0)
		return 0;
	slot = &content->slots[piece->token];
	slot->reads--;
	if (result)
		return refuse(content, slot->extent, result == -ENODATA ? 0 : result);
	return is_unchanged(content, slot) ? 0 : refuse(content, slot->extent, 0);
}

struct content host_content_of(struct host_content *content)
{
	static const struct content_ops ops = {.begin = begin, .end = end};

	return (struct content){
		.ops = &ops,
		.context = content,
		.sectors = (uint64_t)content->image->layout.block_count *
			   (EROFS_BLOCK_BYTES / BLK_SECTOR_BYTES),
	};
}
