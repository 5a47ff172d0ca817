/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_check.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/root/erofs_format.h"

/* An open and a close cost as much as the longer ways of so many. */
#define DIRECTORIES_TO_OPEN 6U

/* Times of files go by the kernel's tick, some file systems' by the second or two. */
#define SETTLED_SECONDS 2

static bool node_is_sound(const struct tree *tree, uint32_t index, unsigned int sources)
{
	const struct tree_node *node = &tree->nodes[index];

	return node->kind <= TREE_SYMLINK && node->parent <= index &&
	       (index == 0 || node->parent < index) && node->same_as <= index &&
	       (uint64_t)node->name + node->name_length < tree->pool_bytes &&
	       (node->source < sources || node->source == TREE_NO_SOURCE);
}

/* The extents are the blocks from the metadata to the end, each a file with as many bytes. */
static bool extents_are_sound(const struct host_image *image)
{
	uint64_t next = image->layout.metadata_bytes / EROFS_BLOCK_BYTES;

	for (uint32_t i = 0; i < image->extent_count; i++) {
		const struct host_extent *extent = &image->extents[i];
		const struct tree_node *node;

		if (extent->node >= image->tree.node_count || extent->first_block != next)
			return false;
		node = &image->tree.nodes[extent->node];
		if (node->kind != TREE_FILE || node->size == 0 || node->source == TREE_NO_SOURCE)
			return false;
		next += erofs_blocks_of(node->size);
		if (next > image->layout.block_count)
			return false;
	}
	return next == image->layout.block_count;
}

bool host_check_numbers(const struct host_image *image, const struct host_plan *plan)
{
	const struct tree *tree = &image->tree;

	return tree->node_count && tree->pool_bytes && node_is_sound(tree, 0, plan->source_count) &&
	       extents_are_sound(image);
}

/* From where paths are looked up: an open directory, to which the first bytes of a path lead. */
struct base {
	uint16_t source;
	int fd;
	size_t skip;
};

struct check {
	const struct tree *tree;
	const struct host_plan *plan;
	uint32_t seen;       /* nodes, which are all in the end */
	char path[PATH_MAX]; /* of the node at hand, without "/" before it */
};

/* Whether a directory, or a file, is as it was. */
static bool is_unchanged(const struct check *check, const struct tree_node *node,
			 const struct base *base)
{
	const struct plan_source *source = &check->plan->sources[node->source];
	bool by_base = base->source == node->source;
	struct statx status;

	/* Links in the path would be found in the directory that has them. */
	if (statx(by_base ? base->fd : source->fd,
		  by_base ? check->path + base->skip : host_plan_below(source, check->path),
		  AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_INO | STATX_MTIME | STATX_CTIME | STATX_SIZE, &status))
		return false;
	return status.stx_ino == node->host_inode && status.stx_mtime.tv_sec == node->mtime &&
	       status.stx_mtime.tv_nsec == node->mtime_ns &&
	       status.stx_ctime.tv_sec == node->ctime &&
	       status.stx_ctime.tv_nsec == node->ctime_ns &&
	       (node->kind == TREE_DIRECTORY || status.stx_size == node->size);
}

/* Directories with many others in them are opened: the way to each of these is one name then. */
static void choose_base(const struct check *check, const struct tree_node *node, size_t length,
			const struct base *above, struct base *base)
{
	unsigned int directories = 0;

	*base = *above;
	if (node->source == TREE_NO_SOURCE)
		return;
	if (node->source != above->source) {
		const struct plan_source *source = &check->plan->sources[node->source];

		*base = (struct base){node->source, source->fd, strlen(source->path)};
		return;
	}
	for (uint32_t i = 0; i < node->child_count && directories < DIRECTORIES_TO_OPEN; i++)
		directories += check->tree->nodes[node->first_child + i].kind == TREE_DIRECTORY;
	if (directories < DIRECTORIES_TO_OPEN)
		return;
	base->fd = openat(above->fd, check->path + above->skip,
			  O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	base->skip = length + 1;
	/* Then by the longer way. */
	if (base->fd < 0)
		*base = *above;
}

static bool check_children(struct check *check, uint32_t index, size_t length,
			   const struct base *base);

/* A directory, whose path is there, with all below it. As deep as paths can be long. */
static bool check_directory(struct check *check, uint32_t index, size_t length,
			    const struct base *above)
{
	const struct tree_node *node = &check->tree->nodes[index];
	struct base base;
	bool good;

	if (node->source != TREE_NO_SOURCE && !is_unchanged(check, node, above))
		return false;
	if (!bytes_range_fits(node->first_child, node->child_count, check->tree->node_count) ||
	    (node->child_count && node->first_child <= index))
		return false;
	choose_base(check, node, length, above, &base);
	good = check_children(check, index, length, &base);
	if (base.fd != above->fd && base.source == above->source)
		fd_close(&base.fd);
	return good;
}

static bool check_child(struct check *check, uint32_t index, size_t length, const struct base *base)
{
	const struct tree_node *node = &check->tree->nodes[index];
	size_t place = length + (length != 0);

	if (node->kind != TREE_DIRECTORY &&
	    (node->kind != TREE_FILE || node->source == TREE_NO_SOURCE ||
	     !check->plan->sources[node->source].checked))
		return true;
	if (place + node->name_length >= sizeof(check->path))
		return false;
	check->path[length] = '/';
	memcpy(check->path + place, tree_name(check->tree, node), node->name_length);
	check->path[place + node->name_length] = '\0';
	return node->kind == TREE_DIRECTORY
		       ? check_directory(check, index, place + node->name_length, base)
		       : is_unchanged(check, node, base);
}

static bool check_children(struct check *check, uint32_t index, size_t length,
			   const struct base *base)
{
	const struct tree *tree = check->tree;
	const struct tree_node *directory = &tree->nodes[index];

	for (uint32_t i = 0; i < directory->child_count; i++) {
		uint32_t child = directory->first_child + i;

		if (!node_is_sound(tree, child, check->plan->source_count) ||
		    tree->nodes[child].parent != index || !check_child(check, child, length, base))
			return false;
	}
	check->seen += directory->child_count;
	return true;
}

bool host_check_directories(const struct host_image *image, const struct host_plan *plan)
{
	const struct base none = {.source = TREE_NO_SOURCE, .fd = -1};
	struct check check = {.tree = &image->tree, .plan = plan, .seen = 1};

	return check_directory(&check, 0, 0, &none) && check.seen == image->tree.node_count;
}

bool host_check_is_settled(const struct host_image *image, int64_t second)
{
	const struct tree *tree = &image->tree;

	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->source != TREE_NO_SOURCE && node->kind <= TREE_FILE &&
		    node->ctime >= second - SETTLED_SECONDS)
			return false;
	}
	return true;
}
