/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <seccomp.h>
#include <sys/stat.h>

#define REQUEST 0xffffffffULL /* of an ioctl: the kernel looks at 32 bits */

/* FUSE operations, by the calls that do them. All names are single ones below a directory that is
 * open (vmm/fs/path.c), but for those in /proc/self/fd. */
const struct filter_rule filter_fs[] = {
	/* LOOKUP, OPEN, CREATE, TMPFILE, OPENDIR */
	FILTER_CALL(openat2),
	FILTER_CALL(openat), /* again what is open, by /proc/self/fd */
	FILTER_CALL(readlinkat),
	FILTER_CALL(readlink),
	FILTER_CALL(name_to_handle_at), /* what a watched directory is known by */
	FILTER_CALL(fanotify_mark),
	FILTER_CALL(dup3), /* a handle's descriptor, opened again */
	/* GETATTR, STATX, SETATTR, ACCESS, STATFS */
	FILTER_CALL(statx),
	FILTER_CALL(fchmod),
	FILTER_CALL(fchmodat),
	FILTER_CALL(fchown),
	FILTER_CALL(fchownat),
	FILTER_CALL(utimensat),
	FILTER_CALL(ftruncate),
	FILTER_CALL(faccessat),
	FILTER_CALL(faccessat2),
	FILTER_CALL(fstatfs),
	/* READDIR, READDIRPLUS */
	FILTER_CALL(getdents64),
	/* READ, WRITE, LSEEK, FALLOCATE, COPY_FILE_RANGE, FSYNC, SYNCFS */
	FILTER_CALL(preadv),
	FILTER_CALL(preadv2),
	FILTER_CALL(pread64),
	FILTER_CALL(pwritev2),
	FILTER_CALL(pwrite64),
	FILTER_CALL(fallocate),
	FILTER_CALL(copy_file_range),
	FILTER_CALL(fsync),
	FILTER_CALL(fdatasync),
	FILTER_CALL(syncfs),
	FILTER_CALL_IF(ioctl, 1, REQUEST, FICLONE), /* a copy of its own: hard links, review */
	FILTER_CALL(flock),                         /* so that nobody removes it in the making */
	FILTER_CALL_IF(ioctl, 1, REQUEST, FS_IOC_GETFLAGS), /* whether a directory ignores case */
	/* MKNOD, SYMLINK, MKDIR, LINK, RENAME2, UNLINK, RMDIR */
	FILTER_CALL(mknodat),
	FILTER_CALL(symlinkat),
	FILTER_CALL(mkdirat),
	FILTER_CALL(linkat),
	FILTER_CALL(renameat),
	FILTER_CALL(renameat2),
	FILTER_CALL(unlinkat),
	/* GETXATTR, SETXATTR, LISTXATTR, REMOVEXATTR */
	FILTER_CALL(getxattr),
	FILTER_CALL(fgetxattr),
	FILTER_CALL(setxattr),
	FILTER_CALL(fsetxattr),
	FILTER_CALL(listxattr),
	FILTER_CALL(flistxattr),
	FILTER_CALL(removexattr),
	FILTER_END,
};
