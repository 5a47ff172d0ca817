/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/operation.h"

/* What an operation may do and how its arguments begin. */
enum operation_flags {
	CHANGES = 1,  /* refused with EROFS on a read-only share */
	NO_REPLY = 2, /* the protocol has no answer to it */
	ANY_TIME = 4, /* allowed outside a session (before INIT) */
	TRAILING = 8, /* names or data follow the fixed part */
};

struct operation {
	const char *name;
	fs_operation *run; /* NULL: ENOSYS, and Linux does not ask again */
	uint16_t fixed;    /* bytes of arguments that must be there */
	uint16_t flags;
};

/*
 * Absent on purpose: FLUSH (there is nothing to flush, write has told the host already; ENOSYS
 * spares one request each close), locks (local to the guest, as INIT says), POLL, BMAP and the DAX
 * mappings. INIT's arguments are checked by fs_init, since they grew with the protocol.
 */
static const struct operation operations[WIRE_OPCODE_COUNT] = {
	[FUSE_LOOKUP] = {"lookup", fs_lookup, 0, TRAILING},
	[FUSE_FORGET] = {"forget", fs_forget, sizeof(struct fuse_forget_in), NO_REPLY},
	[FUSE_GETATTR] = {"getattr", fs_getattr, sizeof(struct fuse_getattr_in), 0},
	[FUSE_SETATTR] = {"setattr", fs_setattr, sizeof(struct fuse_setattr_in), CHANGES},
	[FUSE_READLINK] = {"readlink", fs_readlink, 0, 0},
	[FUSE_SYMLINK] = {"symlink", fs_symlink, 0, CHANGES | TRAILING},
	[FUSE_MKNOD] = {"mknod", fs_mknod, sizeof(struct fuse_mknod_in), CHANGES | TRAILING},
	[FUSE_MKDIR] = {"mkdir", fs_mkdir, sizeof(struct fuse_mkdir_in), CHANGES | TRAILING},
	[FUSE_UNLINK] = {"unlink", fs_unlink, 0, CHANGES | TRAILING},
	[FUSE_RMDIR] = {"rmdir", fs_rmdir, 0, CHANGES | TRAILING},
	[FUSE_RENAME] = {"rename", fs_rename, sizeof(struct fuse_rename_in), CHANGES | TRAILING},
	[FUSE_LINK] = {"link", fs_link, sizeof(struct fuse_link_in), CHANGES | TRAILING},
	[FUSE_OPEN] = {"open", fs_open, sizeof(struct fuse_open_in), 0},
	[FUSE_READ] = {"read", fs_read, sizeof(struct fuse_read_in), 0},
	[FUSE_WRITE] = {"write", fs_write, sizeof(struct fuse_write_in), CHANGES | TRAILING},
	[FUSE_STATFS] = {"statfs", fs_statfs, 0, 0},
	[FUSE_RELEASE] = {"release", fs_release, sizeof(struct fuse_release_in), 0},
	[FUSE_FSYNC] = {"fsync", fs_fsync, sizeof(struct fuse_fsync_in), 0},
	[FUSE_SETXATTR] = {"setxattr", fs_setxattr, FUSE_COMPAT_SETXATTR_IN_SIZE,
			   CHANGES | TRAILING},
	[FUSE_GETXATTR] = {"getxattr", fs_getxattr, sizeof(struct fuse_getxattr_in), TRAILING},
	[FUSE_LISTXATTR] = {"listxattr", fs_listxattr, sizeof(struct fuse_getxattr_in), 0},
	[FUSE_REMOVEXATTR] = {"removexattr", fs_removexattr, 0, CHANGES | TRAILING},
	[FUSE_FLUSH] = {"flush", NULL, 0, TRAILING},
	[FUSE_INIT] = {"init", fs_init, 0, ANY_TIME | TRAILING},
	[FUSE_OPENDIR] = {"opendir", fs_opendir, sizeof(struct fuse_open_in), 0},
	[FUSE_READDIR] = {"readdir", fs_readdir, sizeof(struct fuse_read_in), 0},
	[FUSE_RELEASEDIR] = {"releasedir", fs_releasedir, sizeof(struct fuse_release_in), 0},
	[FUSE_FSYNCDIR] = {"fsyncdir", fs_fsyncdir, sizeof(struct fuse_fsync_in), 0},
	[FUSE_GETLK] = {"getlk", NULL, 0, TRAILING},
	[FUSE_SETLK] = {"setlk", NULL, 0, TRAILING},
	[FUSE_SETLKW] = {"setlkw", NULL, 0, TRAILING},
	[FUSE_ACCESS] = {"access", fs_access, sizeof(struct fuse_access_in), 0},
	[FUSE_CREATE] = {"create", fs_create, sizeof(struct fuse_create_in), CHANGES | TRAILING},
	[FUSE_INTERRUPT] = {"interrupt", fs_interrupt, sizeof(struct fuse_interrupt_in),
			    NO_REPLY | ANY_TIME},
	[FUSE_BMAP] = {"bmap", NULL, 0, TRAILING},
	[FUSE_DESTROY] = {"destroy", fs_destroy, 0, 0},
	/* No ioctl passes the wall. The guest's kernel makes it ENOTTY, and ours asks once. */
	[FUSE_IOCTL] = {"ioctl", NULL, 0, TRAILING},
	[FUSE_POLL] = {"poll", NULL, 0, TRAILING},
	[FUSE_BATCH_FORGET] = {"batch_forget", fs_batch_forget, sizeof(struct fuse_batch_forget_in),
			       NO_REPLY | TRAILING},
	[FUSE_FALLOCATE] = {"fallocate", fs_fallocate, sizeof(struct fuse_fallocate_in), CHANGES},
	[FUSE_READDIRPLUS] = {"readdirplus", fs_readdirplus, sizeof(struct fuse_read_in), 0},
	[FUSE_RENAME2] = {"rename2", fs_rename2, sizeof(struct fuse_rename2_in),
			  CHANGES | TRAILING},
	[FUSE_LSEEK] = {"lseek", fs_lseek, sizeof(struct fuse_lseek_in), 0},
	[FUSE_COPY_FILE_RANGE] = {"copy_file_range", fs_copy_file_range,
				  sizeof(struct fuse_copy_file_range_in), CHANGES},
	[FUSE_SYNCFS] = {"syncfs", fs_syncfs, sizeof(struct fuse_syncfs_in), 0},
	[FUSE_TMPFILE] = {"tmpfile", fs_tmpfile, sizeof(struct fuse_create_in), CHANGES | TRAILING},
	[FUSE_STATX] = {"statx", fs_statx, sizeof(struct fuse_statx_in), 0},
};

const char *fs_operation_name(uint32_t opcode)
{
	return opcode < ARRAY_SIZE(operations) ? operations[opcode].name : NULL;
}

bool fs_operation_replies(uint32_t opcode)
{
	return opcode >= ARRAY_SIZE(operations) || !(operations[opcode].flags & NO_REPLY);
}

static int dispatch_checked(struct fs_server *server, const struct operation *operation,
			    const struct wire_request *request)
{
	if (!server->initialized && !(operation->flags & ANY_TIME))
		return -EIO;
	if (!operation->run)
		return -ENOSYS;
	if (request->arguments_size < operation->fixed ||
	    (request->arguments_size > operation->fixed && !(operation->flags & TRAILING))) {
		server->counters.invalid++;
		return -EINVAL;
	}
	if ((operation->flags & CHANGES) && server->read_only)
		return -EROFS;
	return operation->run(server, request);
}

int fs_dispatch(struct fs_server *server, const struct wire_request *request)
{
	uint32_t opcode = request->header.opcode;
	int result;

	if (opcode >= ARRAY_SIZE(operations) || !operations[opcode].name) {
		server->counters.invalid++;
		return -ENOSYS;
	}
	server->counters.requests[opcode]++;
	result = dispatch_checked(server, &operations[opcode], request);
	/* How this process's own table of descriptors is limited is not the guest's business. */
	return result == -EMFILE ? -ENFILE : result;
}
