/* SPDX-License-Identifier: Apache-2.0 */
/* A good driver of each device: what must still work after an attack. */
#include <linux/fuse.h>
#include <linux/virtio_blk.h>

#include "tests/hostile/guest_virtio.h"
#include "tests/hostile/guest_vsock.h"

#define DATA (BUFFERS + 0x10000)

/* Each 32-bit word of the image holds its number, and a high part that makes it no number of a page
 * of ours, should the balloon be given it. */
static void behave_blk(uint64_t device)
{
	struct virtio_blk_outhdr *header = (void *)BUFFERS;
	volatile uint8_t *status = (void *)(BUFFERS + 64);
	struct ring ring;

	start_device(&ring, device, FEATURE_INDIRECT);
	*header = (struct virtio_blk_outhdr){.type = VIRTIO_BLK_T_IN, .sector = 3};
	*status = 0xff;
	memset((void *)DATA, 0, 1024);
	set_descriptor(&ring, 0, BUFFERS, sizeof(*header), NEXT, 1);
	set_descriptor(&ring, 1, DATA, 1024, NEXT | WRITE, 2);
	set_descriptor(&ring, 2, BUFFERS + 64, 1, WRITE, 0);
	show_chain(&ring, 0);
	kick_ring(&ring);
	need(wait_used(&ring) == 1025, "a read of the disk has another length");
	need(*status == VIRTIO_BLK_S_OK, "a read of the disk failed");
	for (uint32_t i = 0; i < 256; i += 5)
		need(read_32(DATA + 4UL * i) == SELFTEST_DISK_WORD + 384 + i,
		     "a read of the disk is wrong");
}

static void behave_rng(uint64_t device)
{
	struct ring ring;

	start_device(&ring, device, FEATURE_INDIRECT);
	memset((void *)DATA, 0, 128);
	set_descriptor(&ring, 0, DATA, 64, WRITE, 0);
	show_chain(&ring, 0);
	kick_ring(&ring);
	need(wait_used(&ring) == 64, "random numbers have another length");
	need(read_64(DATA) | read_64(DATA + 8), "random numbers are zero");
	need(read_64(DATA + 64) == 0, "random numbers go beyond their buffer");
}

static void behave_net(uint64_t device)
{
	struct ring rings[2];

	start_device(rings, device, FEATURE_INDIRECT);
	set_descriptor(&rings[1], 0, DATA, 72, 0, 0);
	show_chain(&rings[1], 0);
	kick_ring(&rings[1]);
	need(wait_used(&rings[1]) == 0, "a sent frame has a length");
}

static void behave_balloon(uint64_t device)
{
	const uint64_t page = BUFFERS + 0x800000;
	struct ring rings[3];

	start_device(rings, device, FEATURE_INDIRECT | 1UL << 5 /* REPORTING */);
	write_32(DATA, (uint32_t)(page >> 12));
	write_64(page, 0x1234);
	write_64(page + 4096, 0x1234);
	set_descriptor(&rings[0], 0, DATA, 4, 0, 0);
	show_chain(&rings[0], 0);
	kick_ring(&rings[0]);
	wait_used(&rings[0]);
	need(read_64(page) == 0, "a page in the balloon keeps what was in it");
	need(read_64(page + 4096) == 0x1234, "a page outside the balloon lost what was in it");
}

/* GETATTR of the root, after INIT. */
static void behave_fs(uint64_t device)
{
	struct fuse_in_header *header = (void *)BUFFERS;
	struct fuse_init_in *init = (void *)(BUFFERS + sizeof(*header));
	volatile struct fuse_out_header *reply = (void *)DATA;
	struct ring rings[2];

	start_device(rings, device, FEATURE_INDIRECT);
	memset((void *)BUFFERS, 0, 256);
	*header = (struct fuse_in_header){
		.len = sizeof(*header) + sizeof(*init), .opcode = FUSE_INIT, .unique = 1};
	*init = (struct fuse_init_in){.major = 7, .minor = 36};
	set_descriptor(&rings[1], 0, BUFFERS, header->len, NEXT, 1);
	set_descriptor(&rings[1], 1, DATA, 4096, WRITE, 0);
	show_chain(&rings[1], 0);
	kick_ring(&rings[1]);
	wait_used(&rings[1]);
	need(reply->error == 0 && reply->unique == 1, "FUSE_INIT fails");
	memset((void *)BUFFERS, 0, 256);
	*header = (struct fuse_in_header){.len = sizeof(*header) + sizeof(struct fuse_getattr_in),
					  .opcode = FUSE_GETATTR,
					  .unique = 2,
					  .nodeid = FUSE_ROOT_ID};
	set_descriptor(&rings[1], 0, BUFFERS, header->len, NEXT, 1);
	show_chain(&rings[1], 0);
	kick_ring(&rings[1]);
	wait_used(&rings[1]);
	need(reply->error == 0 && reply->unique == 2, "GETATTR of the root fails");
}

/* One connection to a port that echoes; each such port serves one connection. */
static void behave_vsock(uint64_t device)
{
	static uint32_t uses;
	const uint32_t port = VSOCK_ECHO_PORT + uses;
	struct vsock_link link;
	struct vsock_packet *packet;

	need(uses++ < VSOCK_ECHO_PORTS, "the attack has used all echo ports");
	vsock_start(&link, device);
	vsock_send(&link, &(struct vsock_packet){.port = port, .operation = VSOCK_REQUEST}, 0);
	need(vsock_wait(&link, port)->operation == VSOCK_RESPONSE, "a connection is refused");
	memset(vsock_payload(&link), 'e', 100);
	vsock_send(&link,
		   &(struct vsock_packet){.port = port, .operation = VSOCK_DATA, .length = 100},
		   100);
	do {
		packet = vsock_wait(&link, port);
	} while (packet->operation == VSOCK_CREDIT_UPDATE);
	need(packet->operation == VSOCK_DATA && packet->length == 100, "the echo is no echo");
	need(packet->first == 0x65656565, "the echo is another text");
	vsock_send(&link,
		   &(struct vsock_packet){.port = port, .operation = VSOCK_SHUTDOWN, .flags = 3},
		   0);
	need(vsock_wait(&link, port)->operation == VSOCK_RESET, "a connection does not end");
}

void behave(uint64_t device)
{
	switch (reg_read(device, VIRTIO_MMIO_DEVICE_ID)) {
	case ID_NET:
		behave_net(device);
		break;
	case ID_BLK:
		behave_blk(device);
		break;
	case ID_RNG:
		behave_rng(device);
		break;
	case ID_BALLOON:
		behave_balloon(device);
		break;
	case ID_VSOCK:
		behave_vsock(device);
		break;
	case ID_FS:
		behave_fs(device);
		break;
	default:
		fail("a device of an unknown type");
	}
}

void behave_all(void)
{
	static const uint32_t ids[] = {ID_NET, ID_BLK, ID_RNG, ID_BALLOON, ID_VSOCK, ID_FS};

	for (unsigned int i = 0; i < ARRAY_COUNT(ids); i++)
		behave(find_device(ids[i]));
}
