/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vhost-user messages: the standard protocol between a VMM (front end) and a device process (back
 * end), as QEMU's docs/interop/vhost-user.rst defines it. Encoding, decoding and checks; both ends
 * use this file.
 */
#ifndef MVAGENT_VIRTIO_VHOST_MESSAGE_H
#define MVAGENT_VIRTIO_VHOST_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define VHOST_MESSAGE_MAX_FDS     8 /* VHOST_MEMORY_BASELINE_NREGIONS */
#define VHOST_MESSAGE_MAX_REGIONS 8
#define VHOST_CONFIG_MAX_BYTES    256 /* VHOST_USER_MAX_CONFIG_SIZE */

enum vhost_request {
	VHOST_GET_FEATURES = 1,
	VHOST_SET_FEATURES = 2,
	VHOST_SET_OWNER = 3,
	VHOST_RESET_OWNER = 4,
	VHOST_SET_MEM_TABLE = 5,
	VHOST_SET_VRING_NUM = 8,
	VHOST_SET_VRING_ADDR = 9,
	VHOST_SET_VRING_BASE = 10,
	VHOST_GET_VRING_BASE = 11,
	VHOST_SET_VRING_KICK = 12,
	VHOST_SET_VRING_CALL = 13,
	VHOST_SET_VRING_ERR = 14,
	VHOST_GET_PROTOCOL_FEATURES = 15,
	VHOST_SET_PROTOCOL_FEATURES = 16,
	VHOST_GET_QUEUE_NUM = 17,
	VHOST_SET_VRING_ENABLE = 18,
	VHOST_GET_CONFIG = 24,
	VHOST_SET_CONFIG = 25,
	VHOST_GET_MAX_MEM_SLOTS = 36,
	VHOST_ADD_MEM_REG = 37,
	VHOST_REM_MEM_REG = 38,
};

#define VHOST_FLAG_VERSION_MASK 0x3U
#define VHOST_FLAG_VERSION      0x1U
#define VHOST_FLAG_REPLY        0x4U
#define VHOST_FLAG_NEED_REPLY   0x8U

#define VHOST_F_PROTOCOL_FEATURES            (1ULL << 30) /* among virtio's own */
#define VHOST_PROTOCOL_F_MQ                  (1ULL << 0)
#define VHOST_PROTOCOL_F_REPLY_ACK           (1ULL << 3)
#define VHOST_PROTOCOL_F_CONFIG              (1ULL << 9)
#define VHOST_PROTOCOL_F_CONFIGURE_MEM_SLOTS (1ULL << 15)

#define VHOST_VRING_INDEX_MASK 0xffU
#define VHOST_VRING_NO_FD      0x100U /* in the u64 of SET_VRING_KICK/CALL/ERR */

struct vhost_memory_region {
	uint64_t gpa;
	uint64_t size;
	uint64_t user_address;
	uint64_t mmap_offset;
};

struct vhost_message {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /* bytes of payload */
	union {
		uint64_t value;
		struct {
			uint32_t index;
			uint32_t value;
		} vring_state;
		struct {
			uint32_t index;
			uint32_t flags;
			uint64_t descriptor;
			uint64_t used;
			uint64_t available;
			uint64_t log;
		} vring_address;
		struct {
			uint32_t count;
			uint32_t padding;
			struct vhost_memory_region regions[VHOST_MESSAGE_MAX_REGIONS];
		} memory;
		struct {
			uint64_t padding;
			struct vhost_memory_region region;
		} memory_region;
		struct {
			uint32_t offset;
			uint32_t size;
			uint32_t flags;
			uint8_t bytes[VHOST_CONFIG_MAX_BYTES];
		} config;
	} __attribute__((packed)) payload;
	/* Not on the wire: descriptors that came or go with it; the receiver owns them. */
	unsigned int fd_count;
	int fds[VHOST_MESSAGE_MAX_FDS];
};

#define VHOST_HEADER_BYTES        12U
#define VHOST_CONFIG_HEADER_BYTES 12U /* offset, size and flags before the bytes */
#define VHOST_MEMORY_HEADER_BYTES 8U  /* count and padding before the regions */

/* Receives one message, header and payload, whole. Blocks as the socket does until the first byte,
 * then at most 10 s for each further piece. Returns 1, 0 at an orderly end of file before a header,
 * -EPROTO for a message that cannot be (version, size, descriptors), -ETIMEDOUT, or -errno. On any
 * return but 1 no descriptor is left open. */
int vhost_message_receive(int socket_fd, struct vhost_message *message);

/* Sends one message with its descriptors (which stay the caller's). 0 or -errno. */
int vhost_message_send(int socket_fd, const struct vhost_message *message);

/* Whether @message, as received, has the payload size and the count of descriptors that its request
 * demands; unknown requests are valid here and answered elsewhere. Pure. */
bool vhost_message_valid(const struct vhost_message *message);

/* Closes the descriptors that came with a message and were not taken. */
void vhost_message_close_fds(struct vhost_message *message);

#endif
