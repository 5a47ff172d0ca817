/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine without a processor: guest memory, two rings, the front end of vhost-user, and at the
 * other end a server process. Requests go out in chains of random shape; replies teach it ids.
 */
#ifndef MVAGENT_TESTS_FUSE_MACHINE_H
#define MVAGENT_TESTS_FUSE_MACHINE_H

#include <fcntl.h>
#include <linux/virtio_ring.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/fuse_tree.h"
#include "tests/unit/ring_driver.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/fs/wire.h"
#include "vmm/virtio/vhost_frontend.h"

#define FUSE_OPCODES    WIRE_OPCODE_COUNT
#define MACHINE_BYTES   (4U << 20)
#define MACHINE_QUEUES  2U
#define MACHINE_RING    256U
#define MACHINE_SLOTS   16U    /* requests in flight */
#define SLOT_BYTES      65536U /* of each: first half request, second half reply */
#define SLOT_GPA(slot)  (0x100000U + (slot)*SLOT_BYTES)
#define MACHINE_KNOWN   64U
#define MACHINE_OPTIONS 8U    /* of the server */
#define MACHINE_TIMEOUT 20000 /* ms: a server that has not answered then never will */
#define MACHINE_TICK    500   /* ms: between two looks at whether it is there at all */

struct slot {
	bool busy;
	uint16_t head;
	uint32_t opcode;
	uint64_t unique;
	uint32_t writable;
};

struct machine {
	pid_t child;
	int memory_fd;
	uint8_t *host;
	struct guest_memory memory;
	struct vhost_frontend *frontend;
	struct ring_driver drivers[MACHINE_QUEUES];
	int kick_fds[MACHINE_QUEUES];
	int interrupt_fd;
	int error_fd;
	struct slot slots[MACHINE_SLOTS];
	uint64_t unique;
	uint64_t nodes[MACHINE_KNOWN], handles[MACHINE_KNOWN];
	unsigned int node_count, handle_count;
	struct fuse_out_header last; /* of the reply collected last */
	uint32_t last_slot;
};

static uint64_t random_state = 1;
static uint64_t first_seed;

static inline uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return limit ? (uint32_t)(random_state >> 33) % limit : 0;
}

static inline uint64_t machine_recall(const uint64_t *known, unsigned int count)
{
	uint64_t id =
		count ? known[random_below(count < MACHINE_KNOWN ? count : MACHINE_KNOWN)] : 0;

	/* Now and then one that was never given out. */
	return random_below(20) ? id : id ^ 1ULL << random_below(64);
}

static inline uint64_t machine_node(const struct machine *machine)
{
	return random_below(4) ? machine_recall(machine->nodes, machine->node_count) : FUSE_ROOT_ID;
}

static inline uint64_t machine_handle(const struct machine *machine)
{
	return machine_recall(machine->handles, machine->handle_count);
}

/* Starts the server with @options (NULL at the end, MACHINE_OPTIONS at most) beside those that it
 * needs. */
static inline pid_t machine_start(const char *server, const char *share, int socket_fd,
				  const char *const *options)
{
	pid_t child = fork();

	need(child >= 0, "fork");
	if (child == 0) {
		const char *arguments[6 + MACHINE_OPTIONS] = {server, "--fd", NULL, "--root",
							      share};
		char number[16];
		int fd = dup(socket_fd); /* without CLOEXEC */

		snprintf(number, sizeof(number), "%d", fd);
		arguments[2] = number;
		for (unsigned int i = 0; i < MACHINE_OPTIONS && options[i]; i++)
			arguments[5 + i] = options[i];
		execv(server, (char **)(uintptr_t)arguments);
		perror(server);
		_exit(127);
	}
	return child;
}

static inline void machine_create(struct machine *machine, const char *server, const char *share,
				  const char *const *options)
{
	struct guest_memory_region region = {.gpa = 0, .size = MACHINE_BYTES};
	struct vhost_frontend_description description = {
		.id = VIRTIO_DEVICE_FS,
		.queue_count = MACHINE_QUEUES,
		.queue_size = MACHINE_RING,
		.memory = &machine->memory,
	};
	static const char config[40] = "share";
	int pair[2];

	memset(machine, 0, sizeof(*machine));
	machine->memory_fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	need(machine->memory_fd >= 0 && ftruncate(machine->memory_fd, MACHINE_BYTES) == 0 &&
		     fcntl(machine->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
	     "memfd");
	machine->host = mmap(NULL, MACHINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     machine->memory_fd, 0);
	need(machine->host != MAP_FAILED, "mmap");
	region.host = machine->host;
	need(guest_memory_add(&machine->memory, &region) == 0, "guest memory");
	for (unsigned int i = 0; i < MACHINE_QUEUES; i++)
		machine->kick_fds[i] = fd_create_event();
	machine->interrupt_fd = fd_create_event();
	machine->error_fd = fd_create_event();
	need(fd_create_socket_pair(SOCK_STREAM, pair) == 0, "socketpair");
	machine->child = machine_start(server, share, pair[1], options);
	close(pair[1]);
	description.socket_fd = pair[0];
	description.memory_fd = machine->memory_fd;
	description.config = config;
	description.config_size = sizeof(config);
	need(vhost_frontend_create(&machine->frontend, &description) == 0, "vhost-user front end");
}

static inline void machine_activate(struct machine *machine)
{
	const struct virtio_device_description *device = vhost_frontend_device(machine->frontend);
	struct virtio_queue_setup setups[MACHINE_QUEUES];
	struct virtio_activation activation = {
		.features = device->features & ~(1ULL << VIRTIO_RING_F_EVENT_IDX),
		.memory = &machine->memory,
		.queues = setups,
		.kick_fds = machine->kick_fds,
		.interrupt_fd = machine->interrupt_fd,
		.error_fd = machine->error_fd,
	};

	memset(machine->slots, 0, sizeof(machine->slots));
	for (unsigned int i = 0; i < MACHINE_QUEUES; i++) {
		struct ring_driver *driver = &machine->drivers[i];

		ring_driver_init(driver, machine->host, 0x1000 + i * 0x8000U, MACHINE_RING, 0,
				 false);
		setups[i] = (struct virtio_queue_setup){
			.size = MACHINE_RING,
			.ready = true,
			.descriptor_gpa = driver->descriptor_gpa,
			.available_gpa = driver->available_gpa,
			.used_gpa = driver->used_gpa,
		};
	}
	need(device->ops->activate(device->device, &activation) == 0, "activation");
}

static inline void machine_reset(struct machine *machine)
{
	const struct virtio_device_description *device = vhost_frontend_device(machine->frontend);

	device->ops->reset(device->device);
}

/* Hangs up. Returns 0 when the server then ended by itself with status 0. */
static inline int machine_destroy(struct machine *machine)
{
	int status = -1;

	vhost_frontend_destroy(machine->frontend);
	for (unsigned int tenths = 0; tenths < 200; tenths++) {
		if (waitpid(machine->child, &status, WNOHANG) == machine->child)
			break;
		usleep(100000);
		status = -1;
	}
	if (status == -1) {
		kill(machine->child, SIGKILL);
		waitpid(machine->child, &status, 0);
	}
	for (unsigned int i = 0; i < MACHINE_QUEUES; i++)
		close(machine->kick_fds[i]);
	close(machine->interrupt_fd);
	close(machine->error_fd);
	munmap(machine->host, MACHINE_BYTES);
	close(machine->memory_fd);
	return status;
}

static inline void machine_learn(struct machine *machine, const struct slot *slot,
				 const uint8_t *payload, size_t size)
{
	struct fuse_entry_out entry;
	struct fuse_open_out open;
	uint32_t opcode = slot->opcode;
	bool creates = opcode == FUSE_CREATE || opcode == FUSE_TMPFILE;

	if (creates || opcode == FUSE_LOOKUP || opcode == FUSE_MKDIR || opcode == FUSE_MKNOD ||
	    opcode == FUSE_SYMLINK || opcode == FUSE_LINK) {
		if (size < sizeof(entry))
			return;
		memcpy(&entry, payload, sizeof(entry));
		machine->nodes[machine->node_count++ % MACHINE_KNOWN] = entry.nodeid;
		payload += sizeof(entry);
		size -= sizeof(entry);
	}
	if ((creates || opcode == FUSE_OPEN || opcode == FUSE_OPENDIR) && size >= sizeof(open)) {
		memcpy(&open, payload, sizeof(open));
		machine->handles[machine->handle_count++ % MACHINE_KNOWN] = open.fh;
	}
}

/* Checks the reply in @slot as any guest kernel would. */
static inline void machine_check(struct machine *machine, uint32_t index, uint32_t written)
{
	struct slot *slot = &machine->slots[index];
	const uint8_t *reply = machine->host + SLOT_GPA(index) + SLOT_BYTES / 2;
	struct fuse_out_header header;

	slot->busy = false;
	need(written <= slot->writable, "a reply larger than its room");
	if (written == 0)
		return;
	need(written >= sizeof(header), "a reply without a header");
	memcpy(&header, reply, sizeof(header));
	need(header.len == written && header.unique == slot->unique, "a reply of another request");
	need(header.error <= 0 && header.error > -4096, "an error out of range");
	need(header.error == 0 || written == sizeof(header), "an error with a payload");
	machine->last = header;
	machine->last_slot = index;
	if (header.error == 0)
		machine_learn(machine, slot, reply + sizeof(header), written - sizeof(header));
}

static inline void machine_wait(struct machine *machine)
{
	struct pollfd ready = {.fd = machine->interrupt_fd, .events = POLLIN};

	for (int waited = 0; poll(&ready, 1, MACHINE_TICK) != 1; waited += MACHINE_TICK) {
		int status;

		if (waitpid(machine->child, &status, WNOHANG) == machine->child) {
			fprintf(stderr, "the server ended with status %#x\n", (unsigned int)status);
			exit(1);
		}
		need(waited < MACHINE_TIMEOUT, "no answer from the server");
	}
	fd_drain_event(machine->interrupt_fd);
}

/* Shows what was added and waits until all of it has been answered. */
static inline void machine_collect(struct machine *machine)
{
	for (unsigned int i = 0; i < MACHINE_QUEUES; i++)
		if (ring_show(&machine->drivers[i]))
			fd_signal_event(machine->kick_fds[i]);
	for (;;) {
		unsigned int busy = 0;
		uint16_t head;
		uint32_t written;

		for (unsigned int queue = 0; queue < MACHINE_QUEUES; queue++)
			while (ring_take_used(&machine->drivers[queue], &head, &written))
				for (uint32_t i = 0; i < MACHINE_SLOTS; i++)
					if (machine->slots[i].busy &&
					    machine->slots[i].head ==
						    (uint16_t)(head | queue << 15))
						machine_check(machine, i, written);
		for (uint32_t i = 0; i < MACHINE_SLOTS; i++)
			busy += machine->slots[i].busy;
		if (busy == 0)
			return;
		machine_wait(machine);
	}
}

/* Cuts @size bytes at @gpa into descriptors of random lengths. */
static inline unsigned int machine_cut(struct ring_buffer *buffers, uint64_t gpa, uint32_t size,
				       bool writable)
{
	unsigned int count = 0;

	while (size && count < 7) {
		uint32_t length = random_below(3) ? size : 1 + random_below(size);

		buffers[count++] = (struct ring_buffer){gpa, length, writable};
		gpa += length;
		size -= length;
	}
	if (size)
		buffers[count++] = (struct ring_buffer){gpa, size, writable};
	return count;
}

/* Puts a request into slot @index and the ring, with @room bytes for the reply. @flip is xor-ed
 * into the length that the header gives. */
static inline int machine_add(struct machine *machine, uint32_t index, unsigned int queue,
			      uint32_t opcode, uint64_t node, const void *arguments, size_t size,
			      uint32_t room, uint32_t flip)
{
	struct fuse_in_header header = {
		.len = (uint32_t)(sizeof(header) + size) ^ flip,
		.opcode = opcode,
		.unique = ++machine->unique,
		.nodeid = node,
	};
	struct slot *slot = &machine->slots[index];
	struct ring_buffer buffers[16];
	unsigned int count;
	int head;

	memcpy(machine->host + SLOT_GPA(index), &header, sizeof(header));
	memcpy(machine->host + SLOT_GPA(index) + sizeof(header), arguments, size);
	count = machine_cut(buffers, SLOT_GPA(index), (uint32_t)(sizeof(header) + size), false);
	count += machine_cut(buffers + count, SLOT_GPA(index) + SLOT_BYTES / 2, room, true);
	head = ring_add(&machine->drivers[queue], buffers, count, 0);
	need(head >= 0, "no room in the ring");
	*slot = (struct slot){
		.busy = true,
		.head = (uint16_t)(head | (int)queue << 15),
		.opcode = opcode,
		.unique = header.unique,
		.writable = room,
	};
	return head;
}

/* Sends one request of an attack; several are gathered before a kick. */
static inline void machine_send(struct machine *machine, uint32_t opcode, uint64_t node,
				const void *arguments, size_t size)
{
	unsigned int queue = opcode == FUSE_FORGET || random_below(20) == 0 ? 0 : 1;
	uint32_t room = random_below(20) ? 8192 : random_below(300);
	uint32_t index = 0;

	while (machine->slots[index].busy)
		index++;
	machine_add(machine, index, queue, opcode, node, arguments, size, room,
		    random_below(100) ? 0 : 1U << random_below(32));
	if (index + 1 == MACHINE_SLOTS || random_below(4) == 0)
		machine_collect(machine);
}

/* Sends a well-formed request and waits for its answer. Returns its error. */
static inline int machine_call(struct machine *machine, uint32_t opcode, uint64_t node,
			       const void *arguments, size_t size, void *reply, size_t reply_size)
{
	const uint8_t *payload;

	machine_collect(machine);
	machine_add(machine, 0, 1, opcode, node, arguments, size, 4096, 0);
	machine_collect(machine);
	if (machine->last.error)
		return machine->last.error;
	need(machine->last.len == sizeof(machine->last) + reply_size, "a payload of another size");
	payload = machine->host + SLOT_GPA(0) + SLOT_BYTES / 2 + sizeof(machine->last);
	memcpy(reply, payload, reply_size);
	return 0;
}

/* Begins a session, and forgets the ids of the one before. */
static inline int machine_init(struct machine *machine)
{
	struct fuse_init_in in = {.major = 7, .minor = 41, .flags = 0xffffffffU};
	struct fuse_init_out out;

	machine->node_count = machine->handle_count = 0;
	return machine_call(machine, FUSE_INIT, 0, &in, sizeof(in), &out, sizeof(out));
}

/* Adds a GETATTR that nobody will wait for; returns its head. */
static inline int machine_add_getattr(struct machine *machine)
{
	struct fuse_getattr_in in = {0};
	int head = machine_add(machine, 0, 1, FUSE_GETATTR, FUSE_ROOT_ID, &in, sizeof(in), 256, 0);

	machine->slots[0].busy = false;
	return head;
}

#endif
