/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the server: its state, and one function for each operation. An operation takes its
 * arguments from the request, puts its payload into the reply, and returns the payload's size or
 * the negative errno that the guest gets. For what an operation means see fuse(4) and linux/fuse.h.
 */
#ifndef MVAGENT_FS_OPERATION_H
#define MVAGENT_FS_OPERATION_H

#include "vmm/fs/attr.h"
#include "vmm/fs/coherence.h"
#include "vmm/fs/guard.h"
#include "vmm/fs/handle.h"
#include "vmm/fs/inode.h"
#include "vmm/fs/journal.h"
#include "vmm/fs/layer.h"
#include "vmm/fs/path.h"
#include "vmm/fs/scan.h"
#include "vmm/fs/server.h"
#include "vmm/fs/wire.h"

struct fs_server {
	int proc_fd; /* /proc/self/fd */
	int root_fd; /* the root inode's descriptor; the inode table's */
	uint64_t root_device;
	bool read_only;
	bool initialized; /* INIT was answered, DESTROY was not */
	struct attr_owner owner;
	struct inode_table inodes;
	struct handle_table handles;
	struct coherence coherence;
	struct guard guard;
	bool scan_failed;  /* not all names of hidden files are known: nothing is served */
	struct scan *scan; /* until the first INIT */
	struct identity_set own_links; /* how many names of a file are in the share: link_break.c */
	struct layer *layer;           /* a share under review; NULL: none */
	struct journal *journal;       /* of changes, for the record; NULL: none */
	struct fs_counters counters;
	uint8_t arguments[WIRE_ARGUMENTS_MAX];
	uint8_t scratch[65536]; /* a reply in the making */
};

/* Forgets all inodes and handles: a new session begins, or the last one ended. */
void fs_server_reset(struct fs_server *server);

/* Waits until the share has been looked through for hidden files. 0 or -errno: not all is known. */
int fs_server_finish_scan(struct fs_server *server);

/* dispatch.c */
int fs_dispatch(struct fs_server *server, const struct wire_request *request);
const char *fs_operation_name(uint32_t opcode);
bool fs_operation_replies(uint32_t opcode);

/* lookup.c: shared by all that answer with an entry */

/* The O_PATH descriptor of the node id, which must be of @type (S_IFDIR, S_IFREG, S_IFLNK; 0: any).
 * Returns fd (the table's), or -ESTALE, -ENOTDIR, -EISDIR, -EINVAL, -errno. */
int fs_node_fd(struct fs_server *server, uint64_t node_id, mode_t type, struct inode **inode);

/* Looks up @name, adds the inode to the table or finds it there. It has no lookup counted yet: the
 * caller counts one once the reply is out, or calls fs_release_inode. 0 or -errno. */
int fs_find_entry(struct fs_server *server, struct inode *directory, const char *name,
		  struct inode **inode, struct statx *status);

/* The same for an inode that is already open: @fd stays the caller's. */
int fs_find_open(struct fs_server *server, int fd, struct inode **inode, struct statx *status);

/* place.c: a checked name in an open directory */
struct fs_place {
	struct inode *directory;
	int fd; /* the inode table's */
	const char *name;
};

/* Something new on its way to a place: it is made under @name, and may get another by
 * fs_finish_new.
 */
struct fs_new {
	const char *name;
	struct layer_new layer;
};

/* Whether something may be made at @place. The place may have another descriptor after that. 0 or
 * -errno. */
int fs_begin_new(struct fs_server *server, struct fs_place *place, mode_t type, struct fs_new *new);

/* It was made. 0, or -errno and it is gone again. */
int fs_finish_new(struct fs_server *server, const struct fs_place *place, const struct fs_new *new);

/* Takes the next name of the arguments, to be found in directory @node_id. 0 or -errno. */
int fs_take_place(struct fs_server *server, struct wire_reader *reader, uint64_t node_id,
		  struct fs_place *place);

/* The same where the name is all that is left of the arguments. */
int fs_take_last_place(struct fs_server *server, struct wire_reader *reader, uint64_t node_id,
		       struct fs_place *place);

/* Whatever made the inode table find a descriptor anew may have closed another: asks once more for
 * those of the places, just before they are used. @second may be NULL. 0 or -errno. */
int fs_settle_places(struct fs_server *server, struct fs_place *first, struct fs_place *second);

/* Drops an inode that has no lookups, after an error. */
void fs_release_inode(struct fs_server *server, struct inode *inode);

/* What the guest is told of @inode. */
void fs_fill_attr(struct fs_server *server, struct inode *inode, const struct statx *status,
		  struct fuse_attr *attr);
void fs_fill_entry(struct fs_server *server, struct inode *inode, const struct statx *status,
		   struct fuse_entry_out *entry);

/* Answers with an entry and counts the lookup; drops the inode when the reply does not fit. */
int fs_reply_entry(struct fs_server *server, const struct wire_request *request,
		   struct inode *inode, const struct statx *status);

/* Finds @name and answers with its entry. */
int fs_reply_name(struct fs_server *server, const struct wire_request *request,
		  struct inode *directory, const char *name);

/* If @name of @directory_fd is an inode of the table, makes sure that it keeps a descriptor, since
 * that name is about to go. Returns it, or NULL. *@status: of the entry; stx_mask 0: there is none.
 */
struct inode *fs_hold_victim(struct fs_server *server, const struct inode *directory,
			     int directory_fd, const char *name, struct statx *status);

/* Before the attributes of @inode change, or its @contents as well: policy, the record, and links
 * that lead elsewhere. 0 or -errno. */
int fs_prepare_change(struct fs_server *server, struct inode *inode, bool contents);

/* data.c: shared by open, create and tmpfile */

/* The flags to open a host file with: access mode and O_TRUNC of the guest's, nothing else.
 * -EINVAL: access mode 3; -EROFS. */
int fs_open_flags(const struct fs_server *server, uint32_t guest_flags);

/* FOPEN_* of every file, as the cache mode has it. */
uint32_t fs_cache_flags(const struct fs_server *server);

/* Makes a handle of @fd (reserved, taken over also on failure). */
int fs_add_handle(struct fs_server *server, enum handle_type type, int fd, uint64_t node_id,
		  struct handle **handle);

/* Opens the inode's file or directory as a handle. 0 or -errno. */
int fs_open_inode(struct fs_server *server, struct inode *inode, enum handle_type type, int flags,
		  struct handle **handle);
void fs_close_handle(struct fs_server *server, struct handle *handle);

typedef int fs_operation(struct fs_server *server, const struct wire_request *request);

/* session.c */
fs_operation fs_init, fs_destroy, fs_interrupt, fs_forget, fs_batch_forget, fs_statfs, fs_syncfs;
/* lookup.c */
fs_operation fs_lookup;
/* meta.c */
fs_operation fs_getattr, fs_statx, fs_setattr, fs_access;
/* xattr.c */
fs_operation fs_getxattr, fs_setxattr, fs_listxattr, fs_removexattr;
/* name.c */
fs_operation fs_mkdir, fs_mknod, fs_symlink, fs_readlink, fs_link, fs_unlink, fs_rmdir, fs_rename,
	fs_rename2;
/* create.c */
fs_operation fs_create, fs_tmpfile;
/* data.c */
fs_operation fs_open, fs_release, fs_read, fs_write, fs_fsync, fs_fallocate, fs_lseek,
	fs_copy_file_range;
/* dir.c */
fs_operation fs_opendir, fs_releasedir, fs_readdir, fs_readdirplus, fs_fsyncdir;

#endif
