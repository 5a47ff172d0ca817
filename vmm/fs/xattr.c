/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extended attributes: only those named user.* exist for the guest. security.*, trusted.* and
 * system.* never reach the host; they are answered as on a file system that has none.
 *
 * The calls take a path; the working directory is /proc/self/fd, and there a descriptor's number is
 * the path of what it refers to. Only regular files and directories carry user attributes.
 */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "vmm/fs/operation.h"
#include "vmm/review/layout.h"

#define XATTR_PREFIX        "user."
#define XATTR_PREFIX_LENGTH (sizeof(XATTR_PREFIX) - 1)
#define XATTR_NAME_LENGTH   255U   /* XATTR_NAME_MAX */
#define XATTR_VALUE_BYTES   65536U /* XATTR_SIZE_MAX */

static int xattr_check_name(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length > XATTR_NAME_LENGTH)
		return -ERANGE;
	if (strncmp(name, XATTR_PREFIX, XATTR_PREFIX_LENGTH) != 0)
		return -EOPNOTSUPP;
	/* What a review notes on its copies. */
	if (strncmp(name, REVIEW_XATTR_OURS, strlen(REVIEW_XATTR_OURS)) == 0)
		return -EOPNOTSUPP;
	return length == XATTR_PREFIX_LENGTH ? -EINVAL : 0;
}

/* The path of the node below the working directory. @absent: the errno where there can be none. */
static int xattr_path(struct fs_server *server, uint64_t node_id, int absent,
		      struct path_number *path)
{
	struct inode *inode;
	int fd = fs_node_fd(server, node_id, 0, &inode);

	if (fd < 0)
		return fd;
	if (inode->identity.type != S_IFREG && inode->identity.type != S_IFDIR)
		return absent;
	*path = path_number(fd);
	return 0;
}

static int xattr_path_to_change(struct fs_server *server, uint64_t node_id, int absent,
				struct path_number *path)
{
	struct inode *inode = inode_find(&server->inodes, node_id);
	int error = inode ? fs_prepare_change(server, inode, false) : -ESTALE;

	return error ? error : xattr_path(server, node_id, absent, path);
}

/* Answers with @size bytes of scratch, or with the size alone when the guest asked for 0 bytes. */
static int xattr_reply(struct fs_server *server, const struct wire_request *request,
		       uint32_t wanted, size_t size)
{
	struct fuse_getxattr_out out = {.size = (uint32_t)size};

	if (wanted == 0)
		return wire_reply(request, &out, sizeof(out));
	return size > wanted ? -ERANGE : wire_reply(request, server->scratch, size);
}

int fs_getxattr(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_getxattr_in in;
	struct path_number path;
	const char *name;
	ssize_t size;
	int error;

	wire_take(&reader, &in, sizeof(in));
	if (wire_take_string(&reader, &name) || !wire_at_end(&reader))
		return -EINVAL;
	error = xattr_check_name(name);
	if (!error)
		error = xattr_path(server, request->header.nodeid, -ENODATA, &path);
	if (error)
		return error;
	size = getxattr(path.text, name, server->scratch, sizeof(server->scratch));
	return size < 0 ? -errno : xattr_reply(server, request, in.size, (size_t)size);
}

int fs_setxattr(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct path_number path;
	const char *name;
	struct {
		uint32_t size;
		uint32_t flags;
	} in;
	int error;

	wire_take(&reader, &in, sizeof(in));
	if (wire_take_string(&reader, &name) || reader.left != in.size)
		return -EINVAL;
	if (in.size > XATTR_VALUE_BYTES)
		return -E2BIG;
	error = xattr_check_name(name);
	if (!error)
		error = xattr_path_to_change(server, request->header.nodeid, -EPERM, &path);
	if (error)
		return error;
	return setxattr(path.text, name, reader.at, in.size, (int)in.flags) ? -errno : 0;
}

/* Keeps the user.* names of @size bytes of names in scratch; returns what is left. */
static size_t xattr_filter(struct fs_server *server, size_t size)
{
	char *names = (char *)server->scratch;
	size_t kept = 0;
	size_t at = 0;

	while (at < size) {
		size_t length = strnlen(names + at, size - at) + 1;

		if (at + length > size)
			break;
		if (strncmp(names + at, XATTR_PREFIX, XATTR_PREFIX_LENGTH) == 0 &&
		    strncmp(names + at, REVIEW_XATTR_OURS, strlen(REVIEW_XATTR_OURS)) != 0) {
			memmove(names + kept, names + at, length);
			kept += length;
		}
		at += length;
	}
	return kept;
}

int fs_listxattr(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_getxattr_in in;
	struct path_number path;
	ssize_t size = 0;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = xattr_path(server, request->header.nodeid, -ENODATA, &path);
	if (error && error != -ENODATA)
		return error;
	if (!error) {
		size = listxattr(path.text, (char *)server->scratch, sizeof(server->scratch));
		if (size < 0)
			return -errno;
	}
	return xattr_reply(server, request, in.size, xattr_filter(server, (size_t)size));
}

int fs_removexattr(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct path_number path;
	const char *name;
	int error;

	if (wire_take_string(&reader, &name) || !wire_at_end(&reader))
		return -EINVAL;
	error = xattr_check_name(name);
	if (!error)
		error = xattr_path_to_change(server, request->header.nodeid, -ENODATA, &path);
	if (error)
		return error;
	return removexattr(path.text, name) ? -errno : 0;
}
