/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory with all it holds, copied up so that it can be moved. Twice through the tree: first
 * to see whether it may be done at all, then to do it. Directories wait in a list of their paths
 * and are opened anew, so that few descriptors are open whatever the depth.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/dirent.h"
#include "vmm/fs/layer_internal.h"
#include "vmm/fs/link_break.h"
#include "vmm/fs/operation.h"

/* A directory that is still to be looked through. */
struct tree_pending {
	struct tree_pending *next;
	uint64_t node_id; /* what the guest knows it as, or 0 */
	bool upper;       /* the upper layer has it, too */
	struct policy_state state;
	char path[]; /* from the top; the top itself is "." */
};

struct tree {
	struct fs_server *server;
	struct path_entry top;
	const char *top_path; /* from the share's root */
	bool copy;            /* the second time */
	unsigned int objects;
	uint64_t bytes;
	struct tree_pending *pending;
	char path[PATH_MAX];                      /* of the entry at work, from the top */
	char share_path[LIMIT_REVIEW_PATH_BYTES]; /* the same from the share's root */
};

static int tree_push(struct tree *tree, const char *path, uint64_t node_id, bool upper,
		     const struct policy_state *state)
{
	size_t size = strlen(path) + 1;
	struct tree_pending *pending = malloc(sizeof(*pending) + size);

	if (!pending)
		return -ENOMEM;
	*pending = (struct tree_pending){
		.next = tree->pending,
		.node_id = node_id,
		.upper = upper,
		.state = *state,
	};
	memcpy(pending->path, path, size);
	tree->pending = pending;
	return 0;
}

/* Puts the paths of an entry together; EXDEV: too long. */
static int tree_join(struct tree *tree, const struct tree_pending *directory, const char *name)
{
	bool top = strcmp(directory->path, ".") == 0;
	int length = snprintf(tree->path, sizeof(tree->path), "%s%s%s", top ? "" : directory->path,
			      top ? "" : "/", name);

	if (length < 0 || (size_t)length >= sizeof(tree->path))
		return -EXDEV;
	length = snprintf(tree->share_path, sizeof(tree->share_path), "%s/%s", tree->top_path,
			  tree->path);
	return length < 0 || (size_t)length >= sizeof(tree->share_path) ? -EXDEV : 0;
}

/* What the guest knows an object of the lower layer as, or NULL. */
static struct inode *tree_find(struct tree *tree, const struct tree_pending *directory,
			       const char *name, const struct statx *status)
{
	struct inode_table *inodes = &tree->server->inodes;
	const struct inode *parent = inode_find(inodes, directory->node_id);
	struct inode_identity identity = inode_identity_of(status);

	if (parent)
		identity = link_identity(tree->server, parent, name, status);
	return inode_find_identity(inodes, &identity);
}

static int tree_count(struct tree *tree, const struct statx *status)
{
	tree->bytes += S_ISREG(status->stx_mode) ? status->stx_blocks * 512 : 0;
	if (++tree->objects > LIMIT_LAYER_TREE_OBJECTS || tree->bytes > LIMIT_LAYER_TREE_BYTES)
		return -EXDEV;
	return 0;
}

/* Copies an object that only the lower layer has. */
static int tree_copy(struct tree *tree, const struct tree_pending *directory, int upper_fd,
		     int lower_fd, const char *name)
{
	FD_CLEANUP int fd = path_open_name(lower_fd, name);
	struct layer_source source = {
		.directory_fd = upper_fd,
		.name = name,
		.path = tree->share_path,
		.fd = fd,
	};
	int error = fd < 0 ? fd : path_status(fd, &source.status);

	if (error)
		return error == -ENOENT ? 0 : error;
	return layer_copy_for_inode(tree->server, &source,
				    tree_find(tree, directory, name, &source.status));
}

/* A directory of the lower layer, or one that both have. */
static int tree_enter(struct tree *tree, const struct tree_pending *directory, const char *name,
		      const struct statx *status, bool upper, const struct policy_state *state)
{
	const struct inode *inode = tree_find(tree, directory, name, status);

	return tree_push(tree, tree->path, inode ? inode->id : 0, upper, state);
}

enum tree_cover {
	TREE_COVERED, /* what hides the lower layer's, or is no directory */
	TREE_ABSENT,
	TREE_MERGED,
};

/* What the upper layer has by that name (enum tree_cover), or -errno. */
static int tree_look_upper(int upper_fd, const char *name, struct statx *status)
{
	FD_CLEANUP int fd = -1;
	int error = upper_fd < 0 ? -ENOENT : path_look(upper_fd, name, status);

	if (error)
		return error == -ENOENT ? TREE_ABSENT : error;
	if (!S_ISDIR(status->stx_mode))
		return TREE_COVERED;
	fd = path_open_name(upper_fd, name);
	if (fd < 0)
		return fd;
	return path_is_opaque(fd) ? TREE_COVERED : TREE_MERGED;
}

static int tree_entry(struct tree *tree, const struct tree_pending *directory, int upper_fd,
		      int lower_fd, const char *name)
{
	const struct fs_server *server = tree->server;
	struct policy_verdict verdict;
	struct statx lower, upper;
	int cover, error = path_look(lower_fd, name, &lower);

	if (error)
		return error == -ENOENT ? 0 : error;
	cover = tree_look_upper(upper_fd, name, &upper);
	if (cover < 0 || cover == TREE_COVERED ||
	    (cover == TREE_MERGED && !S_ISDIR(lower.stx_mode)))
		return cover < 0 ? cover : 0;
	policy_examine(server->guard.policy, &directory->state, name, &verdict);
	/* What the guest does not see cannot move with the rest; nor can what no copy is made of.
	 */
	if (verdict.hidden || (lower.stx_attributes & STATX_ATTR_MOUNT_ROOT) ||
	    guard_hides_number(server, inode_number_of(&lower).device, lower.stx_ino) ||
	    S_ISCHR(lower.stx_mode) || S_ISBLK(lower.stx_mode))
		return -EXDEV;
	error = tree_join(tree, directory, name);
	if (!error)
		error = tree_count(tree, &lower);
	if (!error && tree->copy && cover == TREE_ABSENT)
		error = tree_copy(tree, directory, upper_fd, lower_fd, name);
	if (error || !S_ISDIR(lower.stx_mode))
		return error;
	/* The copy, by which the guest knows it now. */
	if (tree->copy && cover == TREE_ABSENT)
		cover = tree_look_upper(upper_fd, name, &upper);
	if (cover < 0)
		return cover;
	return tree_enter(tree, directory, name, cover == TREE_MERGED ? &upper : &lower,
			  cover == TREE_MERGED, &verdict.state);
}

static int tree_open(int fd, const char *path)
{
	return strcmp(path, ".") == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : path_open_name(fd, path);
}

static int tree_directory(struct tree *tree, const struct tree_pending *directory)
{
	FD_CLEANUP int upper = directory->upper ? tree_open(tree->top.fd, directory->path) : -1;
	FD_CLEANUP int lower = tree_open(tree->top.lower_fd, directory->path);
	int opened = lower < 0 ? lower
			       : path_reopen(tree->server->proc_fd, lower, O_RDONLY | O_DIRECTORY);
	const struct dirent *entry;
	DIR *listing;
	int error = 0;

	if (directory->upper && upper < 0)
		error = upper;
	if (error || opened < 0) {
		fd_close(&opened);
		return error ? error : opened;
	}
	listing = fdopendir(opened);
	if (!listing) {
		fd_close(&opened);
		return -ENOMEM;
	}
	while (!error && (errno = 0, entry = readdir(listing))) {
		if (!dirent_is_dot(entry->d_name))
			error = tree_entry(tree, directory, upper, lower, entry->d_name);
	}
	if (!error && !entry)
		error = -errno;
	closedir(listing);
	return error;
}

/* Goes through the tree once. Directories that are done have no lower layer for the guest. */
static int tree_walk(struct tree *tree, uint64_t node_id, const struct policy_state *state)
{
	int error = tree_push(tree, ".", node_id, true, state);

	tree->objects = 0;
	tree->bytes = 0;
	while (tree->pending) {
		struct tree_pending *directory = tree->pending;
		struct inode *inode;

		tree->pending = directory->next;
		if (!error)
			error = tree_directory(tree, directory);
		inode = inode_find(&tree->server->inodes, directory->node_id);
		if (!error && tree->copy && inode)
			layer_detach(tree->server, inode);
		free(directory);
	}
	return error;
}

int layer_copy_tree(struct fs_server *server, struct inode *directory, const char *name)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct inode_identity identity;
	struct policy_verdict verdict;
	char *top_path = NULL;
	const char *path;
	struct inode *inode;
	int error;

	if (!tree)
		return -ENOMEM;
	tree->server = server;
	error = path_open_entry(directory, name, &tree->top);
	if (error)
		goto out;
	path = layer_path(server, directory, name);
	top_path = path ? strdup(path) : NULL;
	error = path ? top_path ? 0 : -ENOMEM : -EXDEV;
	if (error)
		goto out_entry;
	tree->top_path = top_path;
	identity = inode_identity_of(&tree->top.status);
	inode = inode_find_identity(&server->inodes, &identity);
	policy_examine(server->guard.policy, directory->policy.state, name, &verdict);
	error = tree_walk(tree, inode ? inode->id : 0, &verdict.state);
	tree->copy = true;
	if (!error)
		error = tree_walk(tree, inode ? inode->id : 0, &verdict.state);
	if (!error)
		error = layer_make_opaque(server, &tree->top);
	free(top_path);
out_entry:
	path_close_entry(&tree->top);
out:
	free(tree);
	return error;
}
