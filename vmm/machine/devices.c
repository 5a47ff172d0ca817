/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/devices.h"

#include <assert.h>
#include <errno.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_fs.h>
#include <linux/virtio_mmio.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/machine/layout.h"
#include "vmm/virtio/balloon.h"
#include "vmm/virtio/net.h"
#include "vmm/virtio/rng.h"
#include "vmm/virtio/vsock.h"
#include "vmm/wire/monitor.h"

/* vsock, net, rng, balloon */
#define DEVICES_HERE 4U
static_assert(DEVICES_FRONTENDS + DEVICES_HERE <= LIMIT_MMIO_DEVICES, "each device has a page");

#define GUEST_CID      3U
#define BLK_QUEUE_SIZE 256U
#define FS_QUEUES      2U /* high priority, requests */
#define PAGES_SIZE     (LAYOUT_DEVICES_END - LAYOUT_DEVICES)

/* Reads of registers stay in the guest, if KVM has read-only memory: all pages in one slot. */
static int devices_map_pages(struct devices *devices, struct vm *vm, bool trap)
{
	devices->pages =
		mmap(NULL, PAGES_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (devices->pages == MAP_FAILED) {
		devices->pages = NULL;
		return log_errno(-errno, "cannot make the devices' register pages");
	}
	if (trap || !vm->has_readonly_memory)
		return 0;
	/* What pvpanic reads there: both events are known (Documentation/misc-devices/pvpanic.rst).
	 */
	((uint8_t *)devices->pages)[LAYOUT_PANIC_DEVICE - LAYOUT_DEVICES] = 0x3;
	if (vm_add_memory(vm, LAYOUT_DEVICES, PAGES_SIZE, devices->pages, true) < 0)
		return log_errno(-errno, "cannot map the devices' register pages");
	return 0;
}

/* Kicks and acknowledges that do not leave the guest, and writes that wait for the next that does.
 * Each of them is an optimization: virtio_mmio_write does the same work without. */
static int devices_attach_events(const struct devices *devices, unsigned int index, struct vm *vm)
{
	const struct virtio_mmio *transport = devices->transports[index];
	uint64_t gpa = LAYOUT_DEVICES + index * LAYOUT_DEVICE_SIZE;
	const struct virtio_mmio_register_range *ranges;
	unsigned int range_count;
	int error = 0;

	for (uint32_t queue = 0; !error && queue < virtio_mmio_queue_count(transport); queue++)
		error = vm_add_ioeventfd(vm, gpa + VIRTIO_MMIO_QUEUE_NOTIFY, &queue,
					 virtio_mmio_kick_fd(transport, queue));
	if (!error)
		error = vm_add_ioeventfd(vm, gpa + VIRTIO_MMIO_INTERRUPT_ACK, NULL,
					 devices->acknowledge_fd);
	if (error)
		return log_errno(error, "cannot attach the events of device %u", index);
	if (!vm->postponed_page)
		return 0;
	ranges = virtio_mmio_postponable(&range_count);
	for (unsigned int i = 0; !error && i < range_count; i++)
		error = vm_postpone_writes(vm, gpa + ranges[i].offset, ranges[i].length);
	return error ? log_errno(error, "cannot postpone writes to device %u", index) : 0;
}

/* Puts a device on the next register page and interrupt. */
static int devices_attach(struct devices *devices, const struct virtio_device_description *device,
			  const struct ram *ram, struct loop *loop, struct vm *vm, bool trap)
{
	unsigned int index = devices->count;
	uint8_t *page = (uint8_t *)devices->pages + index * LAYOUT_DEVICE_SIZE;
	int error;

	devices->interrupt_fds[index] = fd_create_event();
	if (devices->interrupt_fds[index] < 0)
		return log_errno(devices->interrupt_fds[index], "cannot make an interrupt");
	error = virtio_mmio_create(&devices->transports[index], device, &ram->memory, loop, page,
				   devices->interrupt_fds[index]);
	if (error) {
		fd_close(&devices->interrupt_fds[index]);
		return log_errno(error, "cannot make device %u", index);
	}
	devices->count++;
	error = vm_add_irqfd(vm, LAYOUT_FIRST_GSI + index, devices->interrupt_fds[index]);
	if (error)
		return log_errno(error, "cannot attach the interrupt of device %u", index);
	if (trap || !vm->has_ioeventfd)
		return 0;
	return devices_attach_events(devices, index, vm);
}

static int devices_add_frontend(struct devices *devices,
				const struct vhost_frontend_description *description,
				const char *name)
{
	unsigned int index = devices->frontend_count;
	int error = vhost_frontend_create(&devices->frontends[index], description);

	if (error)
		return log_errno(error, "cannot use %s", name);
	snprintf(devices->frontend_names[index], sizeof(devices->frontend_names[index]), "%s",
		 name);
	devices->frontend_count++;
	return 0;
}

static int devices_create_blk(struct devices *devices, struct options *options,
			      const struct ram *ram)
{
	const struct vhost_frontend_description description = {
		.id = VIRTIO_DEVICE_BLK,
		.socket_fd = fd_take(&options->blk_fd),
		.memory_fd = ram->fd,
		.memory = &ram->memory,
		.queue_count = 1,
		.queue_size = BLK_QUEUE_SIZE,
		.config_size = sizeof(struct virtio_blk_config),
	};

	return devices_add_frontend(devices, &description, "mvagent-blk");
}

static int devices_create_share(struct devices *devices, struct options_share *share,
				const struct ram *ram)
{
	struct virtio_fs_config config = {.num_request_queues = FS_QUEUES - 1};
	const struct vhost_frontend_description description = {
		.id = VIRTIO_DEVICE_FS,
		.socket_fd = fd_take(&share->fd),
		.memory_fd = ram->fd,
		.memory = &ram->memory,
		.queue_count = FS_QUEUES,
		.queue_size = LIMIT_QUEUE_SIZE,
		.config = &config,
		.config_size = sizeof(config),
	};
	char name[64];

	memcpy(config.tag, share->tag, sizeof(config.tag));
	snprintf(name, sizeof(name), "mvagent-fs of %.36s", share->tag);
	return devices_add_frontend(devices, &description, name);
}

static int devices_create_vsock(struct devices *devices, struct options *options, struct loop *loop)
{
	int error = vsock_device_create(&devices->vsock, loop, GUEST_CID);

	for (unsigned int i = 0; !error && i < options->port_count; i++) {
		struct options_port *port = &options->ports[i];

		error = vsock_device_add_port(devices->vsock, port->port, port->fd);
		if (!error)
			port->fd = -1; /* the device's now */
	}
	if (!error && options->lender.port)
		error = vsock_device_set_lender(devices->vsock, options->lender.port,
						options->lender.fd);
	return error ? log_errno(error, "cannot make the vsock device") : 0;
}

/* A supervisor that is behind with its reading misses this one: the guest must not keep a processor
 * waiting for it. */
static void devices_tell_frame(void *context, const struct frame_summary *summary)
{
	const struct options *options = context;
	struct monitor_packet packet = {.type = MONITOR_FRAME, .text_length = sizeof(*summary)};

	static_assert(sizeof(*summary) <= sizeof(packet.text), "it must fit");
	memcpy(packet.text, summary, sizeof(*summary));
	send(options->monitor_fd, &packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int devices_create_all(struct devices *devices, struct options *options,
			      const struct ram *ram, struct loop *loop)
{
	int error = 0;

	if (options->blk_fd >= 0)
		error = devices_create_blk(devices, options, ram);
	for (unsigned int i = 0; !error && i < options->share_count; i++)
		error = devices_create_share(devices, &options->shares[i], ram);
	if (!error)
		error = devices_create_vsock(devices, options, loop);
	if (!error)
		error = net_device_create(&devices->net, loop, devices_tell_frame, options);
	if (!error)
		error = rng_device_create(&devices->rng, loop);
	if (!error)
		error = balloon_device_create(&devices->balloon, loop, &ram->memory, ram->fd);
	return error;
}

int devices_create(struct devices *devices, struct options *options, const struct ram *ram,
		   struct loop *loop, struct vm *vm, struct bus *bus)
{
	const struct virtio_device_description *list[LIMIT_MMIO_DEVICES];
	unsigned int count = 0;
	int error;

	*devices = (struct devices){.acknowledge_fd = fd_create_event()};
	if (devices->acknowledge_fd < 0)
		return log_errno(devices->acknowledge_fd, "cannot make the devices");
	error = devices_map_pages(devices, vm, options->trap_registers);
	if (!error)
		error = devices_create_all(devices, options, ram, loop);
	if (error)
		return error;
	for (unsigned int i = 0; i < devices->frontend_count; i++)
		list[count++] = vhost_frontend_device(devices->frontends[i]);
	list[count++] = vsock_device_description(devices->vsock);
	list[count++] = net_device_description(devices->net);
	list[count++] = rng_device_description(devices->rng);
	list[count++] = balloon_device_description(devices->balloon);
	for (unsigned int i = 0; !error && i < count; i++) {
		error = devices_attach(devices, list[i], ram, loop, vm, options->trap_registers);
		bus->devices[i] = devices->transports[i];
	}
	bus->device_count = devices->count;
	return error;
}

void devices_destroy(struct devices *devices)
{
	while (devices->count) {
		unsigned int index = --devices->count;

		virtio_mmio_destroy(devices->transports[index]);
		fd_close(&devices->interrupt_fds[index]);
	}
	balloon_device_destroy(devices->balloon);
	rng_device_destroy(devices->rng);
	net_device_destroy(devices->net);
	vsock_device_destroy(devices->vsock);
	while (devices->frontend_count)
		vhost_frontend_destroy(devices->frontends[--devices->frontend_count]);
	if (devices->pages)
		munmap(devices->pages, PAGES_SIZE);
	devices->pages = NULL;
	fd_close(&devices->acknowledge_fd);
}
