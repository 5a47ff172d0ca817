/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the share: names and ids that lead out of it. More of them: fuse_client. */
#include <asm/errno.h>
#include <linux/fuse.h>

#include "tests/hostile/guest_virtio.h"

#define REQUEST (BUFFERS + 0x700000)
#define REPLY   (BUFFERS + 0x780000)

static struct ring rings[2];

/* Sends a request whose arguments are @bytes at @arguments; returns the error of its reply. */
static int call(uint32_t opcode, uint64_t node, const void *arguments, uint32_t bytes)
{
	struct fuse_in_header *header = (void *)REQUEST;
	volatile struct fuse_out_header *reply = (void *)REPLY;
	static uint64_t unique;

	attempt();
	*header = (struct fuse_in_header){.len = (uint32_t)sizeof(*header) + bytes,
					  .opcode = opcode,
					  .unique = ++unique,
					  .nodeid = node};
	memcpy((void *)(REQUEST + sizeof(*header)), arguments, bytes);
	set_descriptor(&rings[1], 0, REQUEST, header->len, NEXT, 1);
	set_descriptor(&rings[1], 1, REPLY, 65536, WRITE, 0);
	show_chain(&rings[1], 0);
	kick_ring(&rings[1]);
	need(wait_used(&rings[1]) >= sizeof(*reply), "a FUSE request without a reply");
	need(reply->unique == unique, "the reply to another FUSE request");
	return reply->error;
}

static void begin_fuse(void)
{
	const struct fuse_init_in init = {.major = 7, .minor = 36};

	start_device(rings, find_device(ID_FS), FEATURE_INDIRECT);
	need(call(FUSE_INIT, 0, &init, sizeof(init)) == 0, "FUSE_INIT fails");
}

static uint32_t length_of(const char *text)
{
	uint32_t length = 0;

	while (text[length])
		length++;
	return length;
}

static int look_up(uint64_t node, const char *name)
{
	return call(FUSE_LOOKUP, node, name, length_of(name) + 1);
}

static uint64_t replied_node(void)
{
	return ((const struct fuse_entry_out *)(REPLY + sizeof(struct fuse_out_header)))->nodeid;
}

/* "inside" is in the share, "../canary" beside it, "out" a link to "../canary". */
static void attack_fuse(void)
{
	static const char *const names[] = {
		"..", "../canary", "a/b", "/", "/etc/passwd", "./inside", "inside/", "", "..//",
	};
	static const struct fuse_open_in open = {.flags = 0};
	static const struct fuse_mkdir_in mkdir = {.mode = 0755};
	uint8_t arguments[512];
	uint64_t node;

	begin_fuse();
	for (unsigned int i = 0; i < ARRAY_COUNT(names); i++) {
		if (look_up(FUSE_ROOT_ID, names[i]) == 0)
			fail_number("LOOKUP of a path is answered: name", i);
		memcpy(arguments, &mkdir, sizeof(mkdir));
		memcpy(arguments + sizeof(mkdir), names[i], length_of(names[i]) + 1);
		if (call(FUSE_MKDIR, FUSE_ROOT_ID, arguments,
			 (uint32_t)sizeof(mkdir) + length_of(names[i]) + 1) == 0)
			fail_number("MKDIR of a path is done: name", i);
		if (call(FUSE_UNLINK, FUSE_ROOT_ID, names[i], length_of(names[i]) + 1) == 0)
			fail_number("UNLINK of a path is done: name", i);
	}
	need(call(FUSE_LOOKUP, FUSE_ROOT_ID, "inside", 6), "a name without its end");
	need(call(FUSE_LOOKUP, FUSE_ROOT_ID, "in\0side", 8), "a name with a NUL in it");
	memset(arguments, 'x', 300);
	arguments[299] = 0;
	need(call(FUSE_LOOKUP, FUSE_ROOT_ID, arguments, 300), "a name of 299 bytes");
	need(look_up(FUSE_ROOT_ID, "out") == 0, "LOOKUP of a link fails");
	node = replied_node();
	need(call(FUSE_OPEN, node, &open, sizeof(open)), "OPEN of a link that leads out");
	need(look_up(node, "canary"), "LOOKUP in a link that leads out");
	need(look_up(FUSE_ROOT_ID, "inside") == 0, "LOOKUP of a file fails");
	node = replied_node();
	need(look_up(node, "..") != 0, "LOOKUP in a file");
	need(call(FUSE_OPEN, node, &open, sizeof(open)) == 0, "OPEN of a file fails");
	behave(find_device(ID_FS));
}

/* Ids that were never given out, for every operation, with arguments that mean nothing. */
static void attack_fuse_ids(void)
{
	static const uint64_t nodes[] = {0, 2, 3, 99, 1UL << 31, 1UL << 32, 1UL << 63, ~0UL};
	uint8_t arguments[256];

	begin_fuse();
	for (unsigned int i = 0; i < 250; i++) {
		uint32_t opcode = 1 + random_below(60);
		uint32_t bytes = random_below(sizeof(arguments));

		/* These get no reply, and DESTROY ends the session. */
		if (opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET ||
		    opcode == FUSE_INTERRUPT || opcode == FUSE_DESTROY || opcode == FUSE_INIT)
			continue;
		for (uint32_t byte = 0; byte + 8 <= sizeof(arguments); byte += 8) {
			uint64_t value = random_below(3) ? random_below(5) : random_64();

			memcpy(arguments + byte, &value, 8);
		}
		call(opcode, nodes[random_below(ARRAY_COUNT(nodes))], arguments, bytes);
	}
	begin_fuse();
	behave(find_device(ID_FS));
}

const struct attack fuse_attacks[] = {
	{"fuse", attack_fuse},
	{"fuse-ids", attack_fuse_ids},
	{0},
};
