/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "vmm/base/limits.h"
#include "vmm/image/merge_internal.h"
#include "vmm/root/erofs_format.h"

int merge_create(struct merge **merge)
{
	static const struct merge_attributes root = {.mode = 0755};
	struct merge *created = calloc(1, sizeof(*created));
	int64_t inode;
	uint32_t name;
	int error;

	if (!created)
		return -ENOMEM;
	if (getrandom(&created->seed, sizeof(created->seed), GRND_NONBLOCK) < 0)
		created->seed = 1; /* a host that has only just begun */
	inode = merge_add_inode(created, TREE_DIRECTORY, &root);
	error = inode < 0 ? (int)inode
			  : merge_names_add(created, MERGE_ROOT, "", 0, MERGE_ROOT, &name);
	if (error)
		merge_destroy(created);
	else
		*merge = created;
	return error;
}

void merge_destroy(struct merge *merge)
{
	if (!merge)
		return;
	tree_free(&merge->texts);
	free(merge->names);
	free(merge->inodes);
	free(merge->buckets);
	free(merge);
}

void merge_begin_layer(struct merge *merge)
{
	merge->layer++;
}

static int set_attributes(struct merge *merge, struct merge_inode *inode,
			  const struct merge_attributes *attributes)
{
	int64_t place = 0;

	if (attributes->xattr_bytes) {
		if (merge->texts.pool_bytes > LIMIT_IMAGE_POOL_BYTES)
			return -E2BIG;
		place = tree_add_text(&merge->texts, attributes->xattrs, attributes->xattr_bytes);
	}
	if (place < 0)
		return (int)place;
	inode->mode = attributes->mode;
	inode->uid = attributes->uid;
	inode->gid = attributes->gid;
	inode->mtime = attributes->mtime;
	inode->mtime_ns = attributes->mtime_ns;
	inode->xattrs = (uint32_t)place;
	inode->xattr_bytes = attributes->xattr_bytes;
	return 0;
}

int64_t merge_add_inode(struct merge *merge, enum tree_kind kind,
			const struct merge_attributes *attributes)
{
	uint32_t index = merge->inode_count;
	int error;

	if (index == merge->inode_capacity) {
		uint32_t capacity = index ? index * 2 : 1024;
		struct merge_inode *grown = reallocarray(merge->inodes, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		merge->inodes = grown;
		merge->inode_capacity = capacity;
	}
	if (index == LIMIT_IMAGE_ENTRIES)
		return -E2BIG;
	merge->inodes[index] = (struct merge_inode){.kind = (uint8_t)kind};
	error = set_attributes(merge, &merge->inodes[index], attributes);
	if (error)
		return error;
	merge->inode_count++;
	return index;
}

/* Gives a path to a file: what has that name is replaced. */
static int put_inode(struct merge *merge, const char *path, uint32_t inode)
{
	struct merge_last last;
	uint32_t parent, name;
	int error = merge_find_parent(merge, path, true, &parent, &last);

	if (error)
		return error;
	name = merge_names_find(merge, parent, last.text, last.length);
	if (name != MERGE_NONE)
		merge_names_remove(merge, name);
	return merge_names_add(merge, parent, last.text, last.length, inode, &name);
}

static bool is_root(const char *path)
{
	return *path && path[strspn(path, "./")] == '\0' && !strstr(path, "..");
}

int merge_put_directory(struct merge *merge, const char *path,
			const struct merge_attributes *attributes)
{
	struct merge_last last;
	uint32_t parent, name;
	int64_t inode;
	int error;

	if (is_root(path))
		return set_attributes(merge, merge_inode_of(merge, MERGE_ROOT), attributes);
	error = merge_find_parent(merge, path, true, &parent, &last);
	if (error)
		return error;
	name = merge_names_find(merge, parent, last.text, last.length);
	if (name != MERGE_NONE && merge_inode_of(merge, name)->kind == TREE_DIRECTORY) {
		merge->names[name].layer = merge->layer;
		return set_attributes(merge, merge_inode_of(merge, name), attributes);
	}
	inode = merge_add_inode(merge, TREE_DIRECTORY, attributes);
	return inode < 0 ? (int)inode : put_inode(merge, path, (uint32_t)inode);
}

int merge_put_file(struct merge *merge, const char *path, const struct merge_attributes *attributes,
		   uint64_t size, uint64_t contents)
{
	int64_t inode = merge_add_inode(merge, TREE_FILE, attributes);

	if (inode < 0)
		return (int)inode;
	merge->inodes[inode].size = size;
	merge->inodes[inode].contents = contents;
	return put_inode(merge, path, (uint32_t)inode);
}

int merge_put_symlink(struct merge *merge, const char *path,
		      const struct merge_attributes *attributes, const char *target)
{
	size_t length = strlen(target);
	int64_t text, inode;

	if (!length)
		return -EINVAL;
	if (length > EROFS_SYMLINK_MAX)
		return -ENAMETOOLONG;
	if (merge->texts.pool_bytes > LIMIT_IMAGE_POOL_BYTES)
		return -E2BIG;
	text = tree_add_text(&merge->texts, target, length);
	if (text < 0)
		return (int)text;
	inode = merge_add_inode(merge, TREE_SYMLINK, attributes);
	if (inode < 0)
		return (int)inode;
	merge->inodes[inode].text = (uint32_t)text;
	merge->inodes[inode].size = length;
	merge->inodes[inode].mode = 0777;
	return put_inode(merge, path, (uint32_t)inode);
}

int merge_put_link(struct merge *merge, const char *path, const char *target_path)
{
	struct merge_last last;
	uint32_t parent, target, name;
	int error = merge_find_parent(merge, target_path, false, &parent, &last);

	if (error)
		return error;
	target = merge_names_find(merge, parent, last.text, last.length);
	if (target == MERGE_NONE)
		return -ENOENT;
	if (merge_inode_of(merge, target)->kind == TREE_DIRECTORY)
		return -EISDIR;
	error = merge_find_parent(merge, path, true, &parent, &last);
	if (error)
		return error;
	name = merge_names_find(merge, parent, last.text, last.length);
	/* A link to itself, as some archives have it. */
	if (name == target)
		return 0;
	return put_inode(merge, path, merge->names[target].inode);
}

static bool is_lower(const struct merge *merge, uint32_t name)
{
	return merge->names[name].layer != merge->layer;
}

/* Removes what is not of this layer from a directory that is. */
static void remove_lower(struct merge *merge, uint32_t directory)
{
	uint32_t name = merge->names[directory].first_child;

	while (name != MERGE_NONE) {
		uint32_t next = merge->names[name].next;

		if (is_lower(merge, name))
			merge_names_remove(merge, name);
		else /* as deep as LIMIT_IMAGE_DEPTH at most */
			remove_lower(merge, name);
		name = next;
	}
}

int merge_remove(struct merge *merge, const char *path)
{
	struct merge_last last;
	uint32_t parent, name;
	int error = merge_find_parent(merge, path, false, &parent, &last);

	if (error == -ENOENT || error == -ENOTDIR)
		return 0;
	if (error)
		return error;
	name = merge_names_find(merge, parent, last.text, last.length);
	if (name == MERGE_NONE)
		return 0;
	if (is_lower(merge, name))
		merge_names_remove(merge, name);
	else
		remove_lower(merge, name);
	return 0;
}

int merge_remove_around(struct merge *merge, const char *path)
{
	struct merge_last last;
	uint32_t parent;
	int error = merge_find_parent(merge, path, false, &parent, &last);

	if (!error)
		remove_lower(merge, parent);
	return error == -ENOENT || error == -ENOTDIR ? 0 : error;
}

int merge_find_file(struct merge *merge, const char *path, uint64_t *size, uint64_t *contents)
{
	const struct merge_inode *inode;
	uint32_t name;
	int error = merge_follow(merge, path, &name);

	if (error)
		return error;
	inode = merge_inode_of(merge, name);
	if (inode->kind != TREE_FILE)
		return -EISDIR;
	*size = inode->size;
	*contents = inode->contents;
	return 0;
}

int merge_make_directories(struct merge *merge, const char *path)
{
	static const struct merge_attributes made = {.mode = 0755};
	struct merge_last last;
	uint32_t parent, name;
	int error;

	if (merge_follow(merge, path, &name) == 0)
		return 0;
	error = merge_find_parent(merge, path, true, &parent, &last);
	if (error)
		return error;
	/* A link that leads nowhere stays one. */
	if (merge_names_find(merge, parent, last.text, last.length) != MERGE_NONE)
		return 0;
	return merge_put_directory(merge, path, &made);
}
