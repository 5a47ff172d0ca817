/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mvagent-vmm: the machine of one run. Everything is made here in written order, runs until
 * something gives it an ending, and is taken down in reverse. The vCPU threads run the guest; this
 * thread runs the loop: devices that live here, the supervisor's socket, and the sockets of the
 * device processes, of which only the end is watched.
 */
#include <errno.h>
#include <linux/kvm.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"
#include "vmm/loop/loop.h"
#include "vmm/machine/boot.h"
#include "vmm/machine/devices.h"
#include "vmm/machine/fdt.h"
#include "vmm/machine/layout.h"
#include "vmm/machine/options.h"
#include "vmm/machine/ram.h"
#include "vmm/machine/vcpu.h"
#include "vmm/virtio/net.h"
#include "vmm/virtio/vsock.h"

/* Watches, timers and one kick for each queue: more than there can be. */
#define LOOP_CAPACITY                                                                             \
	(LIMIT_MMIO_DEVICES * LIMIT_DEVICE_QUEUES + LIMIT_VSOCK_PORTS + LIMIT_RELAY_CONNECTIONS + \
	 32)

/* Descriptors beside those of the guest's connections. */
#define DESCRIPTORS 512U

/* How long output that the guest has sent may take to reach its readers when the machine is
 * stopped. */
#define FINISH_MILLISECONDS 4000U

struct machine;

struct frontend_watch {
	struct loop_operation operation;
	struct machine *machine;
	const char *name;
};

struct machine {
	struct options options;
	struct ending ending;
	struct exits exits;
	struct console console;
	struct ram ram;
	struct loop *loop;
	struct vm vm;
	struct bus bus;
	struct devices devices;
	uint8_t walls;           /* enum jail_wall */
	unsigned int vcpu_count; /* made so far */
	struct vcpu vcpus[LIMIT_VCPUS];
	struct loop_operation watch_ending;
	struct loop_operation watch_monitor;
	struct frontend_watch watch_frontends[DEVICES_FRONTENDS];
};

static struct monitor_counters machine_counters(struct machine *machine)
{
	struct monitor_counters counters = exits_read(&machine->exits);

	counters.console_bytes = console_bytes(&machine->console);
	if (machine->devices.net) {
		struct net_counters dropped = net_device_counters(machine->devices.net);

		counters.frames_dropped = dropped.frames;
		counters.bytes_dropped = dropped.bytes;
		counters.frames_untold = dropped.missed;
	}
	return counters;
}

static void machine_send(struct machine *machine, struct monitor_packet *packet)
{
	packet->counters = machine_counters(machine);
	/* A supervisor that does not read is one that is gone: its socket's end stops the machine.
	 */
	if (send(machine->options.monitor_fd, packet, sizeof(*packet), MSG_NOSIGNAL) < 0)
		log_errno(-errno, "cannot reach the supervisor");
}

static void machine_on_ending(struct loop_operation *operation, int result)
{
	struct machine *machine = CONTAINER_OF(operation, struct machine, watch_ending);

	(void)result;
	loop_stop(machine->loop, 0);
}

static void machine_on_monitor(struct loop_operation *operation, int result)
{
	struct machine *machine = CONTAINER_OF(operation, struct machine, watch_monitor);
	struct monitor_packet packet;

	(void)result;
	for (;;) {
		ssize_t length =
			recv(machine->options.monitor_fd, &packet, sizeof(packet), MSG_DONTWAIT);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return;
		if (length != sizeof(packet) || packet.type == MONITOR_STOP) {
			ending_give(&machine->ending, MONITOR_REASON_STOPPED,
				    length > 0 ? "stopped by mvagent" : "mvagent is gone");
			return;
		}
		if (packet.type == MONITOR_COUNT) {
			packet.type = MONITOR_COUNTERS;
			machine_send(machine, &packet);
		}
	}
}

static void machine_on_frontend(struct loop_operation *operation, int result)
{
	const struct frontend_watch *watch =
		CONTAINER_OF(operation, struct frontend_watch, operation);

	if (result >= 0 && (result & (POLLHUP | POLLERR)))
		ending_give(&watch->machine->ending, MONITOR_REASON_DEVICE_LOST,
			    "%s ended, or stopped answering, before the machine did", watch->name);
}

static int machine_watch(struct machine *machine)
{
	int error = loop_watch(machine->loop, &machine->watch_ending, machine->ending.event_fd,
			       POLLIN, machine_on_ending);

	if (!error)
		error = loop_watch(machine->loop, &machine->watch_monitor,
				   machine->options.monitor_fd, POLLIN, machine_on_monitor);
	for (unsigned int i = 0; !error && i < machine->devices.frontend_count; i++) {
		struct frontend_watch *watch = &machine->watch_frontends[i];

		watch->machine = machine;
		watch->name = machine->devices.frontend_names[i];
		error = loop_watch(machine->loop, &watch->operation,
				   vhost_frontend_socket(machine->devices.frontends[i]), 0,
				   machine_on_frontend);
	}
	return error ? log_errno(error, "cannot watch the machine") : 0;
}

static int machine_load(struct machine *machine, uint64_t *entry)
{
	uint8_t tree[LAYOUT_DEVICE_TREE_MAX / 4];
	struct boot_inputs inputs = {
		.kernel_fd = machine->options.kernel_fd,
		.initrd_fd = machine->options.initrd_fd,
		.command_line = machine->options.command_line,
		.device_tree = tree,
	};
	int size =
		fdt_build(tree, sizeof(tree), machine->options.vcpu_count, machine->devices.count);

	if (size < 0)
		return log_errno(size, "cannot describe the machine");
	inputs.device_tree_size = (uint32_t)size;
	if (getrandom(inputs.rng_seed, sizeof(inputs.rng_seed), 0) !=
	    (ssize_t)sizeof(inputs.rng_seed))
		return log_errno(-errno, "cannot seed the guest's random numbers");
	return boot_load(&machine->ram, &inputs, entry);
}

static int machine_map_ram(struct machine *machine)
{
	const struct guest_memory *memory = &machine->ram.memory;

	for (unsigned int i = 0; i < memory->count; i++) {
		int error = vm_add_memory(&machine->vm, memory->regions[i].gpa,
					  memory->regions[i].size, memory->regions[i].host, false);

		if (error)
			return log_errno(error, "cannot give the machine its memory");
	}
	return 0;
}

static int machine_create_vcpus(struct machine *machine, uint64_t entry)
{
	unsigned int count = machine->options.vcpu_count;

	vcpu_install_kick_signal();
	for (; machine->vcpu_count < count; machine->vcpu_count++) {
		int error =
			vcpu_create(&machine->vcpus[machine->vcpu_count], &machine->vm,
				    machine->vcpu_count, count, &machine->bus, &machine->ending);

		if (error)
			return error;
	}
	if (!machine->options.trap_registers)
		machine->bus.postponed = vcpu_postponed_ring(&machine->vcpus[0], &machine->vm,
							     &machine->bus.postponed_capacity);
	return vcpu_set_entry(&machine->vcpus[0], entry);
}

static int machine_create(struct machine *machine)
{
	const struct options *options = &machine->options;
	uint64_t entry = 0;
	int error;

	machine->ram.fd = machine->vm.vm_fd = machine->devices.acknowledge_fd = -1;
	exits_create(&machine->exits);
	console_create(&machine->console, options->monitor_fd);
	error = ending_create(&machine->ending);
	if (error)
		return log_errno(error, "cannot begin");
	machine->bus = (struct bus){
		.exits = &machine->exits, .console = &machine->console, .ending = &machine->ending};
	pthread_mutex_init(&machine->bus.postponed_lock, NULL);
	error = loop_create(&machine->loop, LOOP_CAPACITY,
			    options->no_io_uring ? LOOP_BACKEND_EPOLL : LOOP_BACKEND_ANY);
	if (error)
		return log_errno(error, "cannot make an event loop");
	error = ram_create(&machine->ram, options->memory_mib << 20);
	if (!error)
		error = vm_create(&machine->vm, options->kvm_fd);
	if (!error)
		error = machine_map_ram(machine);
	if (!error)
		error = loop_enable(machine->loop);
	if (!error)
		error = devices_create(&machine->devices, &machine->options, &machine->ram,
				       machine->loop, &machine->vm, &machine->bus);
	if (!error)
		error = machine_load(machine, &entry);
	if (!error)
		error = machine_create_vcpus(machine, entry);
	if (!error)
		error = machine_watch(machine);
	return error;
}

static int machine_start(struct machine *machine)
{
	struct monitor_packet packet = {.type = MONITOR_WALLS, .value = machine->walls};

	machine_send(machine, &packet);
	packet.type = MONITOR_RUNNING;
	packet.value = clock_monotonic_ns();
	machine_send(machine, &packet);
	for (unsigned int i = 0; i < machine->vcpu_count; i++) {
		int error = vcpu_start(&machine->vcpus[i]);

		if (error)
			return error;
	}
	return 0;
}

static void machine_stop_vcpus(struct machine *machine)
{
	for (unsigned int i = 0; i < machine->vcpu_count; i++)
		vcpu_stop(&machine->vcpus[i]);
	while (machine->vcpu_count)
		vcpu_destroy(&machine->vcpus[--machine->vcpu_count]);
}

/* Nothing is answered after the last packet, and nothing about devices that are on their way out.
 */
static void machine_unwatch(struct machine *machine)
{
	loop_end(machine->loop, &machine->watch_monitor);
	loop_end(machine->loop, &machine->watch_ending);
	for (unsigned int i = 0; i < machine->devices.frontend_count; i++)
		loop_end(machine->loop, &machine->watch_frontends[i].operation);
}

static void machine_report(struct machine *machine)
{
	struct monitor_packet packet = {.type = MONITOR_ENDED};

	console_flush(&machine->console);
	pthread_mutex_lock(&machine->ending.lock);
	packet.reason = machine->ending.reason;
	packet.text_length = (uint32_t)strlen(machine->ending.text);
	memcpy(packet.text, machine->ending.text, packet.text_length);
	pthread_mutex_unlock(&machine->ending.lock);
	machine_send(machine, &packet);
	exits_log(&machine->exits);
}

static void machine_destroy(struct machine *machine)
{
	devices_destroy(&machine->devices);
	vm_destroy(&machine->vm);
	if (machine->loop)
		loop_destroy(machine->loop);
	ram_destroy(&machine->ram);
	ending_destroy(&machine->ending);
}

/* Each connection of the guest has a descriptor here. Where fewer are allowed, the relay makes
 * fewer.
 */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur >= LIMIT_RELAY_CONNECTIONS + DESCRIPTORS)
		return;
	limit.rlim_cur = bytes_minimum(limit.rlim_max, LIMIT_RELAY_CONNECTIONS + DESCRIPTORS);
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	static struct machine machine;
	int error;

	switch (options_parse(&machine.options, argc, argv)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_ERROR:
		return 2;
	case OPTIONS_RUN:
		break;
	}
	if (machine.options.verbose)
		log_set_level(LOG_VERBOSE);
	if (machine.options.lender.port)
		raise_descriptor_limit();
	if (jail_enter(&(struct jail){.allow_degraded = machine.options.allow_degraded,
				      .walls = &machine.walls}))
		return 1;
	error = machine_create(&machine);
	if (!error)
		error = jail_seal(filter_vmm, machine.options.allow_degraded);
	if (!error)
		error = machine_start(&machine);
	if (!error)
		error = loop_run(machine.loop);
	if (error)
		ending_give(&machine.ending, MONITOR_REASON_HOST_ERROR,
			    "the machine could not be made or run: %s", strerror(-error));
	machine_stop_vcpus(&machine);
	if (machine.devices.vsock)
		vsock_device_finish(machine.devices.vsock, FINISH_MILLISECONDS);
	machine_unwatch(&machine);
	machine_report(&machine);
	machine_destroy(&machine);
	return error ? 1 : 0;
}
