/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/native_machine.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/virtio_ring.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* Guest memory: rings first, then the slots, each a page out, a page back, and data. */
#define RINGS_GPA   0x1000U
#define RING_BYTES  0x8000U
#define SLOTS_GPA   0x100000U
#define PAGE        4096UL
#define SLOT_BYTES  (2 * PAGE + NATIVE_DATA_MAX)
#define MEMORY_SIZE (SLOTS_GPA + NATIVE_SLOTS * SLOT_BYTES)

#define ANSWER_TIMEOUT 20000 /* ms */

static void need(bool condition, const char *what)
{
	if (!condition) {
		perror(what);
		exit(1);
	}
}

static uint64_t slot_gpa(unsigned int slot)
{
	return SLOTS_GPA + (uint64_t)slot * SLOT_BYTES;
}

static int connect_to(const char *path)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	need(fd >= 0, "socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (unsigned int tries = 0; tries < 250; tries++) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return fd;
		nanosleep(&moment, NULL);
	}
	need(false, path);
	return -1;
}

static void make_memory(struct native_machine *machine)
{
	struct guest_memory_region region = {.gpa = 0, .size = MEMORY_SIZE};

	machine->memory_fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	need(machine->memory_fd >= 0 && ftruncate(machine->memory_fd, MEMORY_SIZE) == 0 &&
		     fcntl(machine->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
	     "memfd");
	machine->host =
		mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, machine->memory_fd, 0);
	need(machine->host != MAP_FAILED, "mmap");
	memset(machine->host, 'x', MEMORY_SIZE);
	region.host = machine->host;
	need(guest_memory_add(&machine->memory, &region) == 0, "guest memory");
}

static void activate(struct native_machine *machine)
{
	const struct virtio_device_description *device = vhost_frontend_device(machine->frontend);
	bool event_idx = device->features & 1ULL << VIRTIO_RING_F_EVENT_IDX;
	struct virtio_queue_setup setups[NATIVE_QUEUES];
	struct virtio_activation activation = {
		.features = device->features,
		.memory = &machine->memory,
		.queues = setups,
		.kick_fds = machine->kick_fds,
		.interrupt_fd = machine->interrupt_fd,
		.error_fd = machine->error_fd,
	};

	for (unsigned int i = 0; i < NATIVE_QUEUES; i++) {
		struct ring_driver *driver = &machine->drivers[i];

		ring_driver_init(driver, machine->host, RINGS_GPA + i * RING_BYTES, NATIVE_RING, 0,
				 event_idx);
		setups[i] = (struct virtio_queue_setup){
			.size = NATIVE_RING,
			.ready = true,
			.descriptor_gpa = driver->descriptor_gpa,
			.available_gpa = driver->available_gpa,
			.used_gpa = driver->used_gpa,
		};
	}
	need(device->ops->activate(device->device, &activation) == 0, "activation");
}

static void start_session(struct native_machine *machine)
{
	struct fuse_init_in in = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = NATIVE_DATA_MAX,
		.flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS,
	};
	struct native_request request = {
		.opcode = FUSE_INIT,
		.arguments = &in,
		.arguments_size = sizeof(in),
		.reply_size = sizeof(struct fuse_init_out),
	};

	native_machine_call(machine, &request, NULL);
}

void native_machine_start(struct native_machine *machine, char *const command[], const char *path)
{
	static const char config[40] = "share";
	struct vhost_frontend_description description = {
		.id = VIRTIO_DEVICE_FS,
		.queue_count = NATIVE_QUEUES,
		.queue_size = NATIVE_RING,
		.config = config,
		.config_size = sizeof(config),
	};

	memset(machine, 0, sizeof(*machine));
	memset(machine->heads, 0xff, sizeof(machine->heads));
	make_memory(machine);
	for (unsigned int i = 0; i < NATIVE_QUEUES; i++)
		machine->kick_fds[i] = fd_create_event();
	machine->interrupt_fd = fd_create_event();
	machine->error_fd = fd_create_event();
	machine->server = fork();
	need(machine->server >= 0, "fork");
	if (machine->server == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execv(command[0], command);
		_exit(127);
	}
	description.memory = &machine->memory;
	description.memory_fd = machine->memory_fd;
	description.socket_fd = connect_to(path);
	need(vhost_frontend_create(&machine->frontend, &description) == 0, "vhost-user front end");
	activate(machine);
	start_session(machine);
}

void native_machine_stop(struct native_machine *machine)
{
	vhost_frontend_destroy(machine->frontend);
	kill(machine->server, SIGTERM);
	waitpid(machine->server, NULL, 0);
	for (unsigned int i = 0; i < NATIVE_QUEUES; i++)
		close(machine->kick_fds[i]);
	close(machine->interrupt_fd);
	close(machine->error_fd);
	munmap(machine->host, MEMORY_SIZE);
	close(machine->memory_fd);
}

void native_machine_add(struct native_machine *machine, unsigned int slot,
			const struct native_request *request)
{
	struct fuse_in_header header = {
		.len = (uint32_t)sizeof(header) + request->arguments_size + request->write_size,
		.opcode = request->opcode,
		.unique = 2 * ++machine->unique, /* odd ones are interrupts */
		.nodeid = request->node,
	};
	uint32_t reply = (uint32_t)sizeof(struct fuse_out_header) + request->reply_size;
	uint64_t gpa = slot_gpa(slot);
	struct ring_buffer buffers[4];
	unsigned int count = 0;

	memcpy(machine->host + gpa, &header, sizeof(header));
	memcpy(machine->host + gpa + sizeof(header), request->arguments, request->arguments_size);
	buffers[count++] = (struct ring_buffer){gpa, header.len - request->write_size, false};
	if (request->write_size)
		buffers[count++] = (struct ring_buffer){gpa + 2 * PAGE, request->write_size, false};
	buffers[count++] = (struct ring_buffer){gpa + PAGE, reply, true};
	if (request->read_size)
		buffers[count++] = (struct ring_buffer){gpa + 2 * PAGE, request->read_size, true};
	machine->heads[slot] = ring_add(&machine->drivers[1], buffers, count, 0);
	machine->replies[slot] = reply + request->read_size;
	need(machine->heads[slot] >= 0, "no room in the ring");
}

void native_machine_show(struct native_machine *machine)
{
	if (ring_show(&machine->drivers[1])) {
		machine->kicks++;
		fd_signal_event(machine->kick_fds[1]);
	}
}

/* All that is asked here can be had: any error, or less than all, would spoil the figures. */
static void check_answer(const struct native_machine *machine, unsigned int slot, uint32_t written)
{
	struct fuse_out_header header;

	memcpy(&header, machine->host + slot_gpa(slot) + PAGE, sizeof(header));
	if (header.error == 0 && header.len == written && written == machine->replies[slot])
		return;
	fprintf(stderr, "native: an answer of %u bytes instead of %u, error %d\n", written,
		machine->replies[slot], header.error);
	exit(1);
}

unsigned int native_machine_wait(struct native_machine *machine)
{
	struct pollfd ready = {.fd = machine->interrupt_fd, .events = POLLIN};
	uint32_t written;
	uint16_t head;

	while (!ring_take_used(&machine->drivers[1], &head, &written)) {
		if (ring_want_interrupt(&machine->drivers[1]))
			continue;
		need(poll(&ready, 1, ANSWER_TIMEOUT) == 1, "no answer from the server");
		fd_drain_event(machine->interrupt_fd);
	}
	for (unsigned int slot = 0; slot < NATIVE_SLOTS; slot++) {
		if (machine->heads[slot] != head)
			continue;
		machine->heads[slot] = -1;
		check_answer(machine, slot, written);
		return slot;
	}
	need(false, "an answer to no request");
	return 0;
}

void native_machine_call(struct native_machine *machine, const struct native_request *request,
			 void *reply)
{
	const uint8_t *at = machine->host + slot_gpa(0) + PAGE + sizeof(struct fuse_out_header);

	native_machine_add(machine, 0, request);
	native_machine_show(machine);
	native_machine_wait(machine);
	if (reply)
		memcpy(reply, at, request->reply_size);
}

uint64_t native_machine_server_time(const struct native_machine *machine)
{
	struct timespec used;
	clockid_t clock;

	need(clock_getcpuclockid(machine->server, &clock) == 0, "the server's clock");
	need(clock_gettime(clock, &used) == 0, "the server's clock");
	return (uint64_t)used.tv_sec * 1000000000U + (uint64_t)used.tv_nsec;
}
