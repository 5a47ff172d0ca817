/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in a merged tree, over its symbolic links, as chroot(2) would have them: the root is the
 * end of all "..". */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/image/merge_internal.h"
#include "vmm/root/erofs_format.h"

static const struct merge_attributes made = {.mode = 0755};

/* What is left of a path, and of the links that led into it. */
struct way {
	char *left; /* of 2 * PATH_MAX bytes: a link's target, a slash and what came after it */
	unsigned int links;
	bool make;
};

static bool is_dots(const char *text, size_t length, size_t dots)
{
	return length == dots && memcmp(text, "..", dots) == 0;
}

/* Puts a link's target before what is left of the way. */
static int enter_link(const struct merge *merge, struct way *way, const struct merge_inode *link,
		      const char *rest)
{
	size_t rest_length = strlen(rest);

	if (++way->links > LIMIT_IMAGE_LINKS_FOLLOWED)
		return -ELOOP;
	if (link->size + 1 + rest_length >= PATH_MAX)
		return -ENAMETOOLONG;
	memmove(way->left + link->size + 1, rest, rest_length + 1);
	memcpy(way->left, merge_text(merge, link->text), link->size);
	way->left[link->size] = '/';
	return 0;
}

static int make_missing(struct merge *merge, uint32_t parent, const char *text, size_t length,
			uint32_t *name)
{
	int64_t inode = merge_add_inode(merge, TREE_DIRECTORY, &made);

	return inode < 0 ? (int)inode
			 : merge_names_add(merge, parent, text, length, (uint32_t)inode, name);
}

/* Goes from @directory to the name of @length at the beginning of the way; @rest is behind it. */
static int step(struct merge *merge, struct way *way, uint32_t *directory, size_t length)
{
	const char *rest = way->left + length + strspn(way->left + length, "/");
	const char *text = way->left;
	uint32_t name;
	int error = 0;

	if (is_dots(text, length, 1)) {
		name = *directory;
	} else if (is_dots(text, length, 2)) {
		name = merge->names[*directory].parent;
	} else {
		if (length > EROFS_NAME_MAXIMUM)
			return -ENAMETOOLONG;
		name = merge_names_find(merge, *directory, text, length);
		if (name == MERGE_NONE && !way->make)
			return -ENOENT;
		if (name == MERGE_NONE)
			error = make_missing(merge, *directory, text, length, &name);
	}
	if (error)
		return error;
	if (merge_inode_of(merge, name)->kind == TREE_SYMLINK) {
		bool absolute = merge_text(merge, merge_inode_of(merge, name)->text)[0] == '/';

		error = enter_link(merge, way, merge_inode_of(merge, name), rest);
		*directory = absolute ? MERGE_ROOT : *directory;
		return error;
	}
	*directory = name;
	memmove(way->left, rest, strlen(rest) + 1);
	return 0;
}

/* Marks what this layer has something below. */
static void touch(struct merge *merge, uint32_t name)
{
	for (; name != MERGE_ROOT; name = merge->names[name].parent)
		merge->names[name].layer = merge->layer;
}

/* Follows the first @length bytes of a path from the root on. */
static int walk(struct merge *merge, const char *path, size_t length, bool make, uint32_t *name)
{
	struct way way = {.left = malloc(2 * (size_t)PATH_MAX), .make = make};
	int error = way.left ? 0 : -ENOMEM;

	if (!error && length >= PATH_MAX)
		error = -ENAMETOOLONG;
	*name = MERGE_ROOT;
	if (!error)
		snprintf(way.left, PATH_MAX, "%.*s", (int)length, path);
	while (!error) {
		size_t slashes = strspn(way.left, "/");
		size_t next;

		memmove(way.left, way.left + slashes, strlen(way.left + slashes) + 1);
		next = strcspn(way.left, "/");
		if (!next)
			break;
		if (merge_inode_of(merge, *name)->kind != TREE_DIRECTORY)
			error = -ENOTDIR;
		else
			error = step(merge, &way, name, next);
	}
	free(way.left);
	return error;
}

/* Whether one of the path's names is "..", which no honest archive has. */
static bool climbs(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (is_dots(path, length, 2))
			return true;
		path += length + (path[length] == '/');
	}
	return false;
}

static unsigned int depth_of(const struct merge *merge, uint32_t name)
{
	unsigned int depth = 0;

	for (; name != MERGE_ROOT; name = merge->names[name].parent)
		depth++;
	return depth;
}

int merge_find_parent(struct merge *merge, const char *path, bool make, uint32_t *parent,
		      struct merge_last *last)
{
	size_t length = strlen(path), begin;
	int error;

	if (length >= PATH_MAX)
		return -ENAMETOOLONG;
	if (climbs(path))
		return -EINVAL;
	/* "a/./" is "a". */
	while (length && (path[length - 1] == '/' ||
			  (path[length - 1] == '.' && (length == 1 || path[length - 2] == '/'))))
		length--;
	if (!length)
		return -EINVAL;
	for (begin = length; begin && path[begin - 1] != '/'; begin--)
		;
	*last = (struct merge_last){path + begin, length - begin};
	if (last->length > EROFS_NAME_MAXIMUM)
		return -ENAMETOOLONG;
	error = walk(merge, path, begin, make, parent);
	if (error)
		return error;
	if (merge_inode_of(merge, *parent)->kind != TREE_DIRECTORY)
		return -ENOTDIR;
	if (make && depth_of(merge, *parent) >= LIMIT_IMAGE_DEPTH)
		return -ENAMETOOLONG;
	if (make)
		touch(merge, *parent);
	return 0;
}

int merge_follow(struct merge *merge, const char *path, uint32_t *name)
{
	return walk(merge, path, strlen(path), false, name);
}
