/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE client without a guest: builds messages as descriptor chains over plain buffers, hands
 * them to a server on a directory of its own, and checks what every reply must be.
 */
#ifndef MVAGENT_TESTS_FS_HARNESS_H
#define MVAGENT_TESTS_FS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/operation.h"

#define HARNESS_MESSAGE_BYTES (2U << 20)
#define HARNESS_GUEST_UID     1234U
#define HARNESS_GUEST_GID     1235U

struct harness {
	struct fs_server *server;
	char directory[64]; /* the share */
	char outside[64];   /* beside it: what the guest must never reach */
	struct descriptor_chain chain;
	uint8_t *request;
	uint8_t *response;
	uint32_t capacity; /* payload bytes that replies may have */
	uint64_t unique;
	/* of the last reply */
	int error;
	uint8_t *payload;
	uint32_t payload_size;
};

/* One piece of a request's arguments. */
struct piece {
	const void *data;
	size_t size;
};

#define PIECE(structure) ((struct piece){&(structure), sizeof(structure)})
#define NAME(string)     ((struct piece){(string), strlen(string) + 1})
#define BYTES(at, count) ((struct piece){(at), (count)})

static inline int harness_remove_one(const char *path, const struct stat *status, int flag,
				     struct FTW *walk)
{
	(void)status;
	(void)flag;
	(void)walk;
	return remove(path);
}

static inline void harness_path(const struct harness *harness, const char *name, char path[512])
{
	snprintf(path, 512, "%s/%s", harness->directory, name);
}

/* Writes a file of the share from the host's side. */
static inline void harness_host_write(const struct harness *harness, const char *name,
				      const char *text)
{
	char path[512];
	int fd;

	harness_path(harness, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Reads one back; -1 when it is not there. */
static inline ssize_t harness_host_read(const struct harness *harness, const char *name, char *text,
					size_t size)
{
	char path[512];
	ssize_t length;
	int fd;

	harness_path(harness, name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	length = read(fd, text, size - 1);
	assert_true(length >= 0);
	text[length] = '\0';
	close(fd);
	return length;
}

static inline struct stat harness_host_stat(const struct harness *harness, const char *name)
{
	struct stat status;
	char path[512];

	harness_path(harness, name, path);
	assert_int_equal(lstat(path, &status), 0);
	return status;
}

static inline bool harness_host_exists(const struct harness *harness, const char *name)
{
	struct stat status;
	char path[512];

	harness_path(harness, name, path);
	return lstat(path, &status) == 0;
}

/* The buffer's bytes as iovecs of @step bytes, so that structures straddle segments. */
static inline uint16_t harness_split(struct iovec *vector, uint8_t *bytes, size_t size, size_t step)
{
	uint16_t count = 0;

	for (size_t at = 0; at < size; at += step, count++)
		vector[count] = (struct iovec){bytes + at, size - at < step ? size - at : step};
	return count;
}

/* Serves the request of @size bytes in the buffer; returns the bytes used. */
static inline uint32_t harness_serve_raw(struct harness *harness, size_t size, size_t writable)
{
	struct descriptor_chain *chain = &harness->chain;
	size_t step = size + writable < 4096 ? 33 : 65536;

	memset(chain, 0, sizeof(*chain));
	memset(harness->response, 0xa5, writable + 64);
	chain->readable_count = harness_split(chain->segments, harness->request, size, step);
	chain->writable_count = harness_split(chain->segments + chain->readable_count,
					      harness->response, writable, step);
	chain->readable_bytes = (uint32_t)size;
	chain->writable_bytes = (uint32_t)writable;
	return fs_server_serve(harness->server, chain);
}

/* Checks a reply as any client would, and takes it apart. */
static inline int harness_take_reply(struct harness *harness, uint32_t used, size_t writable)
{
	struct fuse_out_header header;

	assert_in_range(used, sizeof(header), writable);
	memcpy(&header, harness->response, sizeof(header));
	assert_int_equal(header.len, used);
	assert_true(header.unique == harness->unique);
	assert_in_range(-header.error, 0, 4095);
	if (header.error)
		assert_int_equal(used, sizeof(header));
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(harness->response[writable + i], 0xa5);
	harness->error = header.error;
	harness->payload = harness->response + sizeof(header);
	harness->payload_size = used - (uint32_t)sizeof(header);
	return header.error;
}

/* Sends a request of up to three pieces and returns the reply's error. */
static inline int harness_call(struct harness *harness, uint32_t opcode, uint64_t node_id,
			       struct piece a, struct piece b, struct piece c)
{
	size_t writable = sizeof(struct fuse_out_header) + harness->capacity;
	struct piece pieces[3] = {a, b, c};
	struct fuse_in_header header = {
		.opcode = opcode,
		.unique = ++harness->unique,
		.nodeid = node_id,
		.uid = HARNESS_GUEST_UID,
		.gid = HARNESS_GUEST_GID,
	};
	size_t size = sizeof(header);

	for (unsigned int i = 0; i < 3; i++) {
		assert_true(size + pieces[i].size <= HARNESS_MESSAGE_BYTES);
		if (pieces[i].size)
			memcpy(harness->request + size, pieces[i].data, pieces[i].size);
		size += pieces[i].size;
	}
	header.len = (uint32_t)size;
	memcpy(harness->request, &header, sizeof(header));
	return harness_take_reply(harness, harness_serve_raw(harness, size, writable), writable);
}

#define NONE ((struct piece){NULL, 0})

static inline void harness_forget(struct harness *harness, uint64_t node_id, uint64_t count)
{
	struct fuse_forget_in in = {.nlookup = count};
	struct fuse_in_header header = {
		.opcode = FUSE_FORGET,
		.len = sizeof(header) + sizeof(in),
		.nodeid = node_id,
	};

	memcpy(harness->request, &header, sizeof(header));
	memcpy(harness->request + sizeof(header), &in, sizeof(in));
	assert_int_equal(harness_serve_raw(harness, header.len, 0), 0);
}

static inline int harness_init_session(struct harness *harness)
{
	struct fuse_init_in in = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 41,
		.max_readahead = 131072,
		.flags = 0xffffffffU,
		.flags2 = 0xffffffffU,
	};

	return harness_call(harness, FUSE_INIT, 0, PIECE(in), NONE, NONE);
}

/* Two directories below @base, and no server yet. */
static inline struct harness *harness_create_place(const char *base)
{
	struct harness *harness = calloc(1, sizeof(*harness));
	char parent[48];

	assert_non_null(harness);
	snprintf(parent, sizeof(parent), "%s/mvagent-fs-XXXXXX", base);
	assert_non_null(mkdtemp(parent));
	snprintf(harness->directory, sizeof(harness->directory), "%s/share", parent);
	snprintf(harness->outside, sizeof(harness->outside), "%s/outside", parent);
	assert_int_equal(mkdir(harness->directory, 0755), 0);
	assert_int_equal(mkdir(harness->outside, 0755), 0);
	harness->request = calloc(1, HARNESS_MESSAGE_BYTES);
	harness->response = calloc(1, HARNESS_MESSAGE_BYTES);
	assert_true(harness->request && harness->response);
	harness->capacity = 1024;
	return harness;
}

/* Serves it, with a session; @config's root and owner are filled in here. */
static inline void harness_serve(struct harness *harness, struct fs_config *config)
{
	config->guest_uid = HARNESS_GUEST_UID;
	config->guest_gid = HARNESS_GUEST_GID;
	if (!config->notify_fd)
		config->notify_fd = -1;
	config->root_fd = open(harness->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(config->root_fd >= 0);
	assert_int_equal(fs_server_create(&harness->server, config), 0);
	close(config->root_fd);
	assert_int_equal(harness_init_session(harness), 0);
}

/* What the loop would call, until there is nothing left. */
static inline void harness_serve_host(struct harness *harness)
{
	fs_server_serve_notify(harness->server);
	while (fs_server_serve_watch(harness->server))
		;
}

/* A server on a new directory below @base, with a session. */
static inline struct harness *harness_create(const char *base, bool read_only,
					     unsigned int fd_limit)
{
	struct fs_config config = {.read_only = read_only, .fd_limit = fd_limit};
	struct harness *harness = harness_create_place(base);

	harness_serve(harness, &config);
	return harness;
}

static inline void harness_destroy(struct harness *harness)
{
	char *parent = harness->outside;

	fs_server_destroy(harness->server);
	*strrchr(parent, '/') = '\0';
	assert_int_equal(nftw(parent, harness_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(harness->request);
	free(harness->response);
	free(harness);
}

static inline int harness_teardown(void **state)
{
	harness_destroy(*state);
	return 0;
}

/* --- single operations; each returns the reply's error --- */

static inline int call_entry(struct harness *harness, int error, uint64_t *node_id)
{
	struct fuse_entry_out entry;

	if (node_id)
		*node_id = 0;
	if (error)
		return error;
	assert_true(harness->payload_size >= sizeof(entry));
	memcpy(&entry, harness->payload, sizeof(entry));
	/* No such entry, and the guest may keep that in mind. */
	if (entry.nodeid == 0 && entry.entry_valid)
		return -ENOENT;
	assert_true(entry.nodeid > FUSE_ROOT_ID);
	if (node_id)
		*node_id = entry.nodeid;
	return 0;
}

static inline int call_lookup(struct harness *harness, uint64_t parent, const char *name,
			      uint64_t *node_id)
{
	return call_entry(harness,
			  harness_call(harness, FUSE_LOOKUP, parent, NAME(name), NONE, NONE),
			  node_id);
}

/* The node of a name that is there. */
static inline uint64_t harness_node(struct harness *harness, uint64_t parent, const char *name)
{
	uint64_t id;

	assert_int_equal(call_lookup(harness, parent, name, &id), 0);
	return id;
}

static inline int call_mkdir(struct harness *harness, uint64_t parent, const char *name,
			     uint32_t mode, uint64_t *node_id)
{
	struct fuse_mkdir_in in = {.mode = mode};

	return call_entry(harness,
			  harness_call(harness, FUSE_MKDIR, parent, PIECE(in), NAME(name), NONE),
			  node_id);
}

static inline int call_mknod(struct harness *harness, uint64_t parent, const char *name,
			     uint32_t mode, uint64_t *node_id)
{
	struct fuse_mknod_in in = {.mode = mode, .rdev = 0x103};

	return call_entry(harness,
			  harness_call(harness, FUSE_MKNOD, parent, PIECE(in), NAME(name), NONE),
			  node_id);
}

static inline int call_symlink(struct harness *harness, uint64_t parent, const char *name,
			       const char *target, uint64_t *node_id)
{
	return call_entry(
		harness,
		harness_call(harness, FUSE_SYMLINK, parent, NAME(name), NAME(target), NONE),
		node_id);
}

static inline int call_link(struct harness *harness, uint64_t node_id, uint64_t parent,
			    const char *name)
{
	struct fuse_link_in in = {.oldnodeid = node_id};

	return call_entry(harness,
			  harness_call(harness, FUSE_LINK, parent, PIECE(in), NAME(name), NONE),
			  NULL);
}

static inline int call_remove(struct harness *harness, uint32_t opcode, uint64_t parent,
			      const char *name)
{
	return harness_call(harness, opcode, parent, NAME(name), NONE, NONE);
}

static inline int call_rename(struct harness *harness, uint64_t parent, const char *name,
			      uint64_t new_parent, const char *new_name, uint32_t flags)
{
	struct fuse_rename2_in in = {.newdir = new_parent, .flags = flags};

	return harness_call(harness, FUSE_RENAME2, parent, PIECE(in), NAME(name), NAME(new_name));
}

static inline int call_create(struct harness *harness, uint64_t parent, const char *name,
			      uint32_t flags, uint32_t mode, uint64_t *node_id, uint64_t *fh)
{
	struct fuse_create_in in = {.flags = flags, .mode = mode};
	struct fuse_open_out out;
	int error = call_entry(
		harness, harness_call(harness, FUSE_CREATE, parent, PIECE(in), NAME(name), NONE),
		node_id);

	if (fh)
		*fh = 0;
	if (!error) {
		assert_int_equal(harness->payload_size,
				 sizeof(struct fuse_entry_out) + sizeof(out));
		memcpy(&out, harness->payload + sizeof(struct fuse_entry_out), sizeof(out));
		if (fh)
			*fh = out.fh;
	}
	return error;
}

static inline int call_open(struct harness *harness, uint32_t opcode, uint64_t node_id,
			    uint32_t flags, struct fuse_open_out *out)
{
	struct fuse_open_in in = {.flags = flags};
	int error = harness_call(harness, opcode, node_id, PIECE(in), NONE, NONE);

	memset(out, 0, sizeof(*out));
	if (!error) {
		assert_int_equal(harness->payload_size, sizeof(*out));
		memcpy(out, harness->payload, sizeof(*out));
	}
	return error;
}

static inline int call_release(struct harness *harness, uint32_t opcode, uint64_t node_id,
			       uint64_t fh)
{
	struct fuse_release_in in = {.fh = fh};

	return harness_call(harness, opcode, node_id, PIECE(in), NONE, NONE);
}

/* READ, READDIR and READDIRPLUS. */
static inline int call_read(struct harness *harness, uint32_t opcode, uint64_t fh, uint64_t offset,
			    uint32_t size)
{
	struct fuse_read_in in = {.fh = fh, .offset = offset, .size = size};

	return harness_call(harness, opcode, FUSE_ROOT_ID, PIECE(in), NONE, NONE);
}

static inline int call_write(struct harness *harness, uint64_t fh, uint64_t offset,
			     const void *data, uint32_t size, uint32_t flags, uint32_t write_flags,
			     uint32_t *written)
{
	struct fuse_write_in in = {
		.fh = fh,
		.offset = offset,
		.size = size,
		.flags = flags,
		.write_flags = write_flags,
	};
	struct fuse_write_out out;
	int error =
		harness_call(harness, FUSE_WRITE, FUSE_ROOT_ID, PIECE(in), BYTES(data, size), NONE);

	*written = 0;
	if (!error) {
		assert_int_equal(harness->payload_size, sizeof(out));
		memcpy(&out, harness->payload, sizeof(out));
		*written = out.size;
	}
	return error;
}

static inline int call_getattr(struct harness *harness, uint64_t node_id, struct fuse_attr *attr)
{
	struct fuse_getattr_in in = {0};
	struct fuse_attr_out out;
	int error = harness_call(harness, FUSE_GETATTR, node_id, PIECE(in), NONE, NONE);

	memset(attr, 0, sizeof(*attr));
	if (!error) {
		assert_int_equal(harness->payload_size, sizeof(out));
		memcpy(&out, harness->payload, sizeof(out));
		*attr = out.attr;
	}
	return error;
}

static inline int call_setattr(struct harness *harness, uint64_t node_id,
			       const struct fuse_setattr_in *in, struct fuse_attr *attr)
{
	struct fuse_attr_out out;
	int error = harness_call(harness, FUSE_SETATTR, node_id, PIECE(*in), NONE, NONE);

	if (attr)
		memset(attr, 0, sizeof(*attr));
	if (!error && attr) {
		assert_int_equal(harness->payload_size, sizeof(out));
		memcpy(&out, harness->payload, sizeof(out));
		*attr = out.attr;
	}
	return error;
}

#endif
