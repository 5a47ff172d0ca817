/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No attack: what a guest of `mvagent run` does, as far as its host can tell. It talks to the
 * supervisor as init does, and then makes, writes, renames and removes files of the share and reads
 * the disk, for as long as there is a file "endless" in the share, or ROUNDS times. For tests of
 * what becomes of the host when something goes wrong there (tests/faults).
 *
 * A file "w0" to "w7" holds one letter only, and is 0, 100 (the host's own), 4096 or 8192 bytes
 * long.
 */
#include <linux/fuse.h>
#include <linux/virtio_blk.h>

#include "tests/hostile/guest_virtio.h"
#include "tests/hostile/guest_vsock.h"
#include "vmm/wire/session.h"

#define REQUEST (BUFFERS + 0x700000)
#define REPLY   (BUFFERS + 0x780000)
#define SECTORS (BUFFERS + 0x900000)

#define ROUNDS     24U
#define FILES      8U
#define FILE_BYTES 4096U

/* O_RDWR | O_CREAT | O_TRUNC of the FUSE protocol, which are Linux's on x86. */
#define OPEN_NEW 01102U

static struct ring share[2];

/* What the answers say of each file. */
static struct file {
	uint8_t letter; /* 0: it is not there */
	bool unknown;   /* a request failed: nothing, a part or all of it was done */
	uint32_t length;
} files[FILES];

static uint32_t length_of(const char *text)
{
	uint32_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* Puts together what a request says behind its header. */
struct arguments {
	uint32_t length;
};

static void add(struct arguments *arguments, const void *bytes, uint32_t length)
{
	memcpy((void *)(REQUEST + sizeof(struct fuse_in_header) + arguments->length), bytes,
	       length);
	arguments->length += length;
}

static void add_name(struct arguments *arguments, const char *name)
{
	add(arguments, name, length_of(name) + 1);
}

/* The error of the reply. */
static int ask(uint32_t opcode, uint64_t node, const struct arguments *arguments)
{
	volatile struct fuse_out_header *reply = (void *)REPLY;
	struct fuse_in_header *header = (void *)REQUEST;
	static uint64_t unique;

	*header = (struct fuse_in_header){.len = (uint32_t)sizeof(*header) + arguments->length,
					  .opcode = opcode,
					  .unique = ++unique,
					  .nodeid = node};
	set_descriptor(&share[1], 0, REQUEST, header->len, NEXT, 1);
	set_descriptor(&share[1], 1, REPLY, 65536, WRITE, 0);
	show_chain(&share[1], 0);
	kick_ring(&share[1]);
	need(wait_used(&share[1]) >= sizeof(*reply) && reply->unique == unique,
	     "a request to the share without its reply");
	return reply->error;
}

/* The node of the entry that was replied. */
static uint64_t replied_node(void)
{
	return ((const struct fuse_entry_out *)(REPLY + sizeof(struct fuse_out_header)))->nodeid;
}

/* How much of a write was done. */
static uint32_t replied_size(void)
{
	return ((const struct fuse_write_out *)(REPLY + sizeof(struct fuse_out_header)))->size;
}

/* That a name is not there may be told by node 0 as well, for the guest to remember. */
static bool is_there(const char *name)
{
	struct arguments arguments = {0};

	add_name(&arguments, name);
	return ask(FUSE_LOOKUP, FUSE_ROOT_ID, &arguments) == 0 && replied_node();
}

static void begin_share(void)
{
	const struct fuse_init_in init = {.major = 7, .minor = 36};
	struct arguments arguments = {0};

	start_device(share, find_device(ID_FS), FEATURE_INDIRECT);
	add(&arguments, &init, sizeof(init));
	need(ask(FUSE_INIT, 0, &arguments) == 0, "the share cannot be mounted");
}

/* Whatever a request fails with, the next one is made: a host that lacks something says so. */
static void write_file(const char *name, struct file *file, uint8_t letter)
{
	const struct fuse_create_in create = {.flags = OPEN_NEW, .mode = 0100644};
	struct fuse_write_in data = {.size = FILE_BYTES};
	struct fuse_release_in release = {0};
	struct arguments arguments = {0};
	const struct fuse_open_out *opened = (const void *)(REPLY + sizeof(struct fuse_out_header) +
							    sizeof(struct fuse_entry_out));
	uint64_t node;

	add(&arguments, &create, sizeof(create));
	add_name(&arguments, name);
	file->unknown = true;
	if (ask(FUSE_CREATE, FUSE_ROOT_ID, &arguments))
		return;
	node = replied_node();
	data.fh = release.fh = opened->fh;
	for (; data.offset < 2UL * FILE_BYTES; data.offset += FILE_BYTES) {
		arguments.length = 0;
		add(&arguments, &data, sizeof(data));
		memset((void *)(REQUEST + sizeof(struct fuse_in_header) + arguments.length), letter,
		       FILE_BYTES);
		arguments.length += FILE_BYTES;
		if (ask(FUSE_WRITE, node, &arguments) || replied_size() != FILE_BYTES)
			break;
	}
	if (data.offset == 2UL * FILE_BYTES)
		*file = (struct file){.letter = letter, .length = 2 * FILE_BYTES};
	arguments.length = 0;
	add(&arguments, &release, sizeof(release));
	ask(FUSE_RELEASE, node, &arguments);
}

static void rename_file(const char *from, struct file *old, const char *to, struct file *new)
{
	const struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID};
	struct arguments arguments = {0};

	add(&arguments, &in, sizeof(in));
	add_name(&arguments, from);
	add_name(&arguments, to);
	if (ask(FUSE_RENAME2, FUSE_ROOT_ID, &arguments)) {
		old->unknown = new->unknown = true;
	} else if (old != new) {
		*new = *old;
		*old = (struct file){0};
	}
}

static void remove_file(const char *name, struct file *file)
{
	struct arguments arguments = {0};

	add_name(&arguments, name);
	if (ask(FUSE_UNLINK, FUSE_ROOT_ID, &arguments))
		file->unknown = true;
	else
		*file = (struct file){0};
}

static void work_on_share(uint32_t round)
{
	const uint32_t index = random_below(FILES), target = random_below(FILES);
	char name[] = "w0", other[] = "w0";

	name[1] = (char)('0' + index);
	other[1] = (char)('0' + target);
	/* To know a name is what the kernel begins with. */
	if (round % 4 == 1 && is_there(name))
		remove_file(name, &files[index]);
	else if (round % 4 == 3 && is_there(name))
		rename_file(name, &files[index], other, &files[target]);
	else
		write_file(name, &files[index], (uint8_t)('a' + round % 26));
}

static void read_disk(struct ring *disk)
{
	struct virtio_blk_outhdr *header = (void *)SECTORS;

	*header = (struct virtio_blk_outhdr){.type = VIRTIO_BLK_T_IN, .sector = random_below(64)};
	set_descriptor(disk, 0, SECTORS, sizeof(*header), NEXT, 1);
	set_descriptor(disk, 1, SECTORS + 4096, 4096, NEXT | WRITE, 2);
	set_descriptor(disk, 2, SECTORS + 64, 1, WRITE, 0);
	show_chain(disk, 0);
	kick_ring(disk);
	wait_used(disk);
}

/* One message to the supervisor: vmm/wire/session.h. */
static void tell(struct vsock_link *link, uint32_t type, uint32_t length, uint32_t value)
{
	const uint32_t bytes = (uint32_t)sizeof(struct session_header) + length;
	const struct session_header header = {.type = type, .length = length};

	memcpy(vsock_payload(link), &header, sizeof(header));
	memcpy((uint8_t *)vsock_payload(link) + sizeof(header), &value, length);
	vsock_send(link,
		   &(struct vsock_packet){
			   .port = SESSION_PORT_CONTROL, .operation = VSOCK_DATA, .length = bytes},
		   bytes);
}

/* The lines about all files, at @text. Their length. */
static uint32_t print_files(char *text)
{
	char *at = text;

	for (uint32_t i = 0; i < FILES; i++) {
		const struct file *file = &files[i];

		if (file->unknown)
			continue;
		*at++ = 'w';
		*at++ = (char)('0' + i);
		*at++ = ' ';
		*at++ = file->letter ? (char)file->letter : '-';
		*at++ = ' ';
		for (uint32_t divisor = 1000; file->letter && divisor; divisor /= 10)
			*at++ = (char)('0' + file->length / divisor % 10);
		*at++ = '\n';
	}
	return (uint32_t)(at - text);
}

static void say_files(struct vsock_link *link)
{
	const uint32_t length = print_files(vsock_payload(link));

	vsock_send(link,
		   &(struct vsock_packet){
			   .port = SESSION_PORT_STDOUT, .operation = VSOCK_DATA, .length = length},
		   length);
}

static void connect_port(struct vsock_link *link, uint32_t port)
{
	vsock_send(link, &(struct vsock_packet){.port = port, .operation = VSOCK_REQUEST}, 0);
	need(vsock_wait(link, port)->operation == VSOCK_RESPONSE,
	     "the supervisor cannot be reached");
}

/* A stream without anything in it. */
static void end_stream(struct vsock_link *link, uint32_t port)
{
	vsock_send(link,
		   &(struct vsock_packet){.port = port, .operation = VSOCK_SHUTDOWN, .flags = 3},
		   0);
}

static void begin_session(struct vsock_link *link)
{
	vsock_start(link, find_device(ID_VSOCK));
	connect_port(link, SESSION_PORT_CONTROL);
	tell(link, SESSION_HELLO, sizeof(uint32_t), SESSION_VERSION);
	while (vsock_wait(link, SESSION_PORT_CONTROL)->operation != VSOCK_DATA)
		;
	connect_port(link, SESSION_PORT_STDOUT);
	connect_port(link, SESSION_PORT_STDERR);
	tell(link, SESSION_STARTED, 0, 0);
}

void work(void)
{
	struct vsock_link link;
	struct ring disk;
	bool endless;

	/* A host that stands still is none that has lost a request. */
	be_patient();
	for (uint32_t i = 0; i < FILES; i++)
		files[i] = (struct file){.letter = 'A', .length = 100};
	start_device(&disk, find_device(ID_BLK), FEATURE_INDIRECT);
	begin_share();
	begin_session(&link);
	endless = is_there("endless");
	if (endless)
		random_seed(read_clock());
	for (uint32_t round = 0; endless || round < ROUNDS; round++) {
		work_on_share(round);
		read_disk(&disk);
		vsock_poll(&link);
	}
	say_files(&link);
	end_stream(&link, SESSION_PORT_STDOUT);
	end_stream(&link, SESSION_PORT_STDERR);
	tell(&link, SESSION_EXITED, sizeof(uint32_t), 0);
	/* The supervisor stops the machine. */
	for (;;)
		vsock_poll(&link);
}
