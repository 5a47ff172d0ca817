/* SPDX-License-Identifier: Apache-2.0 */
/* Between the sources of layer.h. */
#ifndef MVAGENT_FS_LAYER_INTERNAL_H
#define MVAGENT_FS_LAYER_INTERNAL_H

#include "vmm/fs/layer.h"
#include "vmm/review/layout.h"

struct layer {
	int base_fd;
	char path[LIMIT_REVIEW_PATH_BYTES];
	char line[REVIEW_LINE_BYTES];
};

/* --- layer.c --- */

/* The path of @name in @directory from the share's root; good until the next is asked for. NULL: it
 * is too long, or a directory on the way has lost its name. */
char *layer_path(struct fs_server *server, const struct inode *directory, const char *name);

/* The status of an object of the lower layer for its line of base: a later change of it shows in
 * the times. 0 or -errno. */
int layer_settle(int fd, struct statx *status);

/* Writes the line of base that an object of the lower layer gets before it is hidden. 0 or -errno.
 */
int layer_note_base(struct fs_server *server, const char *path, const struct statx *status);

/* A directory of the upper layer that is changed without the guest's doing: it must be writable for
 * that, and keep its times. */
struct layer_hold {
	int fd;
	struct statx status;
};

/* 0 or -errno. */
int layer_hold(const struct fs_server *server, int fd, struct layer_hold *hold);
int layer_release(const struct fs_server *server, const struct layer_hold *hold);

/* Sets an attribute of a file or directory that @fd, O_PATH, refers to. 0 or -errno. */
int layer_set_attribute(const struct fs_server *server, int fd, const char *name,
			const char *value);

/* The directory has no lower layer any more. */
void layer_detach(struct fs_server *server, struct inode *directory);

/* Makes a directory of the upper layer hide what the lower one has there, also for the guest. 0 or
 * -errno. */
int layer_make_opaque(struct fs_server *server, const struct path_entry *entry);

/* --- layer_copy.c --- */

/* An object of the lower layer that is to be copied. */
struct layer_source {
	int directory_fd; /* of the upper layer: where the copy goes; O_PATH */
	const char *name; /* there; NULL: the copy has none */
	const char *path; /* from the share's root */
	int fd;           /* the object, O_PATH */
	struct statx status;
};

/* Copies what the lower layer has as @name of a directory that is in the upper layer. @inode: what
 * the guest knows it as, or NULL for finding that out. 0 or -errno. */
int layer_copy_name(struct fs_server *server, struct inode *directory, const char *name,
		    struct inode *inode);

/* Copies an object, and makes @inode (NULL: the guest does not know it) be the copy. 0 or -errno.
 */
int layer_copy_for_inode(struct fs_server *server, struct layer_source *source,
			 struct inode *inode);

/* --- layer_tree.c --- */

/* Copies up everything below @name of @directory, which is a directory in the upper layer, and
 * makes it opaque. 0, -EXDEV (too much, or what cannot be moved along) or -errno. */
int layer_copy_tree(struct fs_server *server, struct inode *directory, const char *name);

/* --- layer_list.c --- */

/* Whether a directory is empty to the guest. 0, -ENOTEMPTY or -errno. */
int layer_check_empty(const struct fs_server *server, const struct path_entry *entry);

/* Removes the whiteouts in a directory of the upper layer. 0 or -errno. */
int layer_remove_whiteouts(const struct fs_server *server, int fd);

#endif
