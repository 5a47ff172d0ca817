/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/mmio.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"

/* virtio 1.2, 4.2.2: the registers of a version 2 device */
enum mmio_register {
	MMIO_MAGIC_VALUE = 0x000,
	MMIO_VERSION = 0x004,
	MMIO_DEVICE_ID = 0x008,
	MMIO_VENDOR_ID = 0x00c,
	MMIO_DEVICE_FEATURES = 0x010,
	MMIO_DEVICE_FEATURES_SELECT = 0x014,
	MMIO_DRIVER_FEATURES = 0x020,
	MMIO_DRIVER_FEATURES_SELECT = 0x024,
	MMIO_QUEUE_SELECT = 0x030,
	MMIO_QUEUE_SIZE_MAX = 0x034,
	MMIO_QUEUE_SIZE = 0x038,
	MMIO_QUEUE_READY = 0x044,
	MMIO_QUEUE_NOTIFY = 0x050,
	MMIO_INTERRUPT_STATUS = 0x060,
	MMIO_INTERRUPT_ACKNOWLEDGE = 0x064,
	MMIO_STATUS = 0x070,
	MMIO_QUEUE_DESCRIPTOR_LOW = 0x080,
	MMIO_QUEUE_DESCRIPTOR_HIGH = 0x084,
	MMIO_QUEUE_AVAILABLE_LOW = 0x090,
	MMIO_QUEUE_AVAILABLE_HIGH = 0x094,
	MMIO_QUEUE_USED_LOW = 0x0a0,
	MMIO_QUEUE_USED_HIGH = 0x0a4,
	MMIO_SHARED_MEMORY_LENGTH_LOW = 0x0b0,
	MMIO_SHARED_MEMORY_LENGTH_HIGH = 0x0b4,
	MMIO_SHARED_MEMORY_BASE_LOW = 0x0b8,
	MMIO_SHARED_MEMORY_BASE_HIGH = 0x0bc,
	MMIO_CONFIG = 0x100,
};

#define MMIO_MAGIC          0x74726976U /* "virt" */
#define MMIO_DEVICE_VERSION 2U
#define MMIO_VENDOR         0x4741564dU /* "MVAG" */
#define MMIO_INTERRUPT_USED 1U          /* InterruptStatus: used buffer notification */

/* virtio 1.2, 2.1 */
#define STATUS_ACKNOWLEDGE 1U
#define STATUS_DRIVER      2U
#define STATUS_DRIVER_OK   4U
#define STATUS_FEATURES_OK 8U
#define STATUS_NEEDS_RESET 64U
#define STATUS_FAILED      128U

#define FEATURE_VERSION_1 (UINT64_C(1) << 32) /* virtio 1.2, 6 */

struct mmio_kick {
	struct loop_operation watch;
	struct virtio_mmio *mmio;
	unsigned int index;
};

struct virtio_mmio {
	/* Guards everything below that changes, and every call into the device. */
	pthread_mutex_t lock;
	struct virtio_device_description device;
	const struct guest_memory *memory;
	struct loop *loop;
	uint8_t *page; /* what the guest reads; written here only, and never read back */
	int interrupt_fd;
	uint64_t features; /* offered */

	uint64_t driver_features;
	uint32_t driver_features_select;
	uint32_t queue_select;
	uint32_t status;
	struct virtio_queue_setup queues[LIMIT_DEVICE_QUEUES];

	int kick_fds[LIMIT_DEVICE_QUEUES];
	struct mmio_kick kicks[LIMIT_DEVICE_QUEUES];
	int error_fd; /* -1: the queues are served here */
	struct loop_operation watch_error;
};

/* A vCPU may read the register at this moment, so it is stored in one piece. */
static void page_store(struct virtio_mmio *mmio, enum mmio_register offset, uint32_t value)
{
	uint32_t *slot = (uint32_t *)(void *)(mmio->page + offset);

	__atomic_store_n(slot, htole32(value), __ATOMIC_RELEASE);
}

static void show_status(struct virtio_mmio *mmio)
{
	page_store(mmio, MMIO_STATUS, mmio->status);
}

/* NULL when the driver selected a queue that does not exist. */
static struct virtio_queue_setup *selected_queue(struct virtio_mmio *mmio)
{
	if (mmio->queue_select >= mmio->device.queue_count)
		return NULL;
	return &mmio->queues[mmio->queue_select];
}

static void show_selected_queue(struct virtio_mmio *mmio)
{
	const struct virtio_queue_setup *queue = selected_queue(mmio);

	page_store(mmio, MMIO_QUEUE_SIZE_MAX, queue ? mmio->device.queue_size : 0);
	page_store(mmio, MMIO_QUEUE_READY, queue && queue->ready);
}

static void show_device_features(struct virtio_mmio *mmio, uint32_t select)
{
	uint64_t half = select > 1 ? 0 : mmio->features >> (32 * select);

	page_store(mmio, MMIO_DEVICE_FEATURES, (uint32_t)half);
}

/* virtio 1.2, 2.4: back to the state that the device had at first. */
static void reset_device(struct virtio_mmio *mmio)
{
	/* Also after an activation that failed: part of the device may have begun. */
	if (mmio->status & STATUS_DRIVER_OK)
		mmio->device.ops->reset(mmio->device.device);
	/* What was wrong with the queues that were: they are back by now. */
	if (mmio->error_fd >= 0)
		fd_drain_event(mmio->error_fd);
	mmio->status = 0;
	mmio->driver_features = 0;
	mmio->driver_features_select = 0;
	mmio->queue_select = 0;
	memset(mmio->queues, 0, sizeof(mmio->queues));
	show_device_features(mmio, 0);
	show_selected_queue(mmio);
	show_status(mmio);
}

static void activate_device(struct virtio_mmio *mmio)
{
	const struct virtio_activation activation = {
		.features = mmio->driver_features,
		.memory = mmio->memory,
		.queues = mmio->queues,
		.kick_fds = mmio->kick_fds,
		.interrupt_fd = mmio->interrupt_fd,
		.error_fd = mmio->error_fd,
	};

	if (mmio->device.ops->activate(mmio->device.device, &activation) < 0)
		mmio->status |= STATUS_NEEDS_RESET;
}

/* virtio 1.2, 2.2.2: the driver may take only what is offered, and must take VERSION_1 (6.1). */
static bool features_are_acceptable(const struct virtio_mmio *mmio)
{
	return !(mmio->driver_features & ~mmio->features) &&
	       (mmio->driver_features & FEATURE_VERSION_1);
}

/* Bits come in the order of 3.1.1, one or more with each write; a bit whose turn it is not stays
 * clear, and the driver that reads the status back sees it. A write that would clear a bit breaks
 * 2.1.1 and changes nothing. DEVICE_NEEDS_RESET is not the driver's to write. */
static void write_status(struct virtio_mmio *mmio, uint32_t value)
{
	uint32_t old = mmio->status;

	if (value == 0) {
		reset_device(mmio);
		return;
	}
	if (old & ~STATUS_NEEDS_RESET & ~value)
		return;
	mmio->status |= value & (STATUS_ACKNOWLEDGE | STATUS_FAILED);
	if ((value & STATUS_DRIVER) && (mmio->status & STATUS_ACKNOWLEDGE))
		mmio->status |= STATUS_DRIVER;
	if ((value & STATUS_FEATURES_OK) && (mmio->status & STATUS_DRIVER) &&
	    features_are_acceptable(mmio))
		mmio->status |= STATUS_FEATURES_OK;
	if ((value & STATUS_DRIVER_OK) && !(old & STATUS_DRIVER_OK) &&
	    (mmio->status & STATUS_FEATURES_OK) && !(mmio->status & STATUS_FAILED)) {
		mmio->status |= STATUS_DRIVER_OK;
		activate_device(mmio);
	}
	show_status(mmio);
}

static void write_driver_features(struct virtio_mmio *mmio, uint32_t value)
{
	unsigned int shift = 32 * mmio->driver_features_select;

	if ((mmio->status & STATUS_FEATURES_OK) || mmio->driver_features_select > 1)
		return;
	mmio->driver_features &= ~(UINT64_C(0xffffffff) << shift);
	mmio->driver_features |= (uint64_t)value << shift;
}

static void set_low(uint64_t *address, uint32_t value)
{
	*address = (*address & ~UINT64_C(0xffffffff)) | value;
}

static void set_high(uint64_t *address, uint32_t value)
{
	*address = (*address & UINT64_C(0xffffffff)) | (uint64_t)value << 32;
}

/* The queues' registers are frozen from DRIVER_OK to the reset: the device works on what it was
 * given then. A queue's own are frozen while it is ready (4.2.2.2), except QueueReady. */
static void write_queue_register(struct virtio_mmio *mmio, uint64_t offset, uint32_t value)
{
	struct virtio_queue_setup *queue = selected_queue(mmio);

	if (!queue || (mmio->status & STATUS_DRIVER_OK))
		return;
	if (offset == MMIO_QUEUE_READY) {
		queue->ready = value & 1;
		show_selected_queue(mmio);
		return;
	}
	if (queue->ready)
		return;
	switch (offset) {
	case MMIO_QUEUE_SIZE:
		queue->size = value <= mmio->device.queue_size ? (uint16_t)value : 0;
		break;
	case MMIO_QUEUE_DESCRIPTOR_LOW:
		set_low(&queue->descriptor_gpa, value);
		break;
	case MMIO_QUEUE_DESCRIPTOR_HIGH:
		set_high(&queue->descriptor_gpa, value);
		break;
	case MMIO_QUEUE_AVAILABLE_LOW:
		set_low(&queue->available_gpa, value);
		break;
	case MMIO_QUEUE_AVAILABLE_HIGH:
		set_high(&queue->available_gpa, value);
		break;
	case MMIO_QUEUE_USED_LOW:
		set_low(&queue->used_gpa, value);
		break;
	case MMIO_QUEUE_USED_HIGH:
		set_high(&queue->used_gpa, value);
		break;
	}
}

static void write_register(struct virtio_mmio *mmio, uint64_t offset, uint32_t value)
{
	switch (offset) {
	case MMIO_DEVICE_FEATURES_SELECT:
		show_device_features(mmio, value);
		break;
	case MMIO_DRIVER_FEATURES:
		write_driver_features(mmio, value);
		break;
	case MMIO_DRIVER_FEATURES_SELECT:
		mmio->driver_features_select = value;
		break;
	case MMIO_QUEUE_SELECT:
		mmio->queue_select = value;
		show_selected_queue(mmio);
		break;
	case MMIO_QUEUE_NOTIFY:
		if (value < mmio->device.queue_count)
			fd_signal_event(mmio->kick_fds[value]);
		break;
	case MMIO_STATUS:
		write_status(mmio, value);
		break;
	case MMIO_QUEUE_SIZE:
	case MMIO_QUEUE_READY:
	case MMIO_QUEUE_DESCRIPTOR_LOW:
	case MMIO_QUEUE_DESCRIPTOR_HIGH:
	case MMIO_QUEUE_AVAILABLE_LOW:
	case MMIO_QUEUE_AVAILABLE_HIGH:
	case MMIO_QUEUE_USED_LOW:
	case MMIO_QUEUE_USED_HIGH:
		write_queue_register(mmio, offset, value);
		break;
	}
}

void virtio_mmio_write(struct virtio_mmio *mmio, uint64_t offset, const void *data,
		       unsigned int length)
{
	uint32_t value;

	if (length != sizeof(value) || offset % sizeof(value) || offset >= MMIO_CONFIG)
		return;
	memcpy(&value, data, sizeof(value));
	pthread_mutex_lock(&mmio->lock);
	write_register(mmio, offset, le32toh(value));
	pthread_mutex_unlock(&mmio->lock);
}

void virtio_mmio_read(const struct virtio_mmio *mmio, uint64_t offset, void *data,
		      unsigned int length)
{
	const uint32_t *slot;
	uint32_t value;

	memset(data, 0, length);
	if (!bytes_range_fits(offset, length, VIRTIO_MMIO_PAGE_SIZE))
		return;
	if (offset >= MMIO_CONFIG) {
		memcpy(data, mmio->page + offset, length);
	} else if (length == sizeof(value) && offset % sizeof(value) == 0) {
		slot = (const uint32_t *)(const void *)(mmio->page + offset);
		value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		memcpy(data, &value, sizeof(value));
	}
}

/* On the loop thread. A kick that comes before the driver is ready, or after it reset the device,
 * has no meaning; one that raced with the reset is among these. */
static void kicked(struct loop_operation *operation, int result)
{
	struct mmio_kick *kick = CONTAINER_OF(operation, struct mmio_kick, watch);
	struct virtio_mmio *mmio = kick->mmio;

	if (result < 0) {
		if (result != -ECANCELED)
			log_errno(result, "cannot watch the kicks of virtio device %u, queue %u",
				  (unsigned int)mmio->device.id, kick->index);
		return;
	}
	pthread_mutex_lock(&mmio->lock);
	if ((mmio->status & (STATUS_DRIVER_OK | STATUS_NEEDS_RESET)) == STATUS_DRIVER_OK &&
	    mmio->queues[kick->index].ready &&
	    mmio->device.ops->process_queue(mmio->device.device, kick->index) < 0) {
		mmio->status |= STATUS_NEEDS_RESET;
		show_status(mmio);
	}
	pthread_mutex_unlock(&mmio->lock);
}

/* On the loop thread. The device process has given up a queue. What it says of queues that were
 * taken back meanwhile is gone with them: reset_device. */
static void broken(struct loop_operation *operation, int result)
{
	struct virtio_mmio *mmio = CONTAINER_OF(operation, struct virtio_mmio, watch_error);

	if (result < 0) {
		if (result != -ECANCELED)
			log_errno(result, "cannot watch the errors of virtio device %u",
				  (unsigned int)mmio->device.id);
		return;
	}
	pthread_mutex_lock(&mmio->lock);
	if (fd_drain_event(mmio->error_fd) && (mmio->status & STATUS_DRIVER_OK)) {
		mmio->status |= STATUS_NEEDS_RESET;
		show_status(mmio);
	}
	pthread_mutex_unlock(&mmio->lock);
}

static int open_error(struct virtio_mmio *mmio)
{
	if (mmio->device.ops->process_queue)
		return 0;
	mmio->error_fd = fd_create_event();
	if (mmio->error_fd < 0)
		return log_errno(mmio->error_fd, "cannot make an eventfd for a virtio device");
	return loop_watch(mmio->loop, &mmio->watch_error, mmio->error_fd, POLLIN, broken);
}

static void fill_page(struct virtio_mmio *mmio)
{
	page_store(mmio, MMIO_MAGIC_VALUE, MMIO_MAGIC);
	page_store(mmio, MMIO_VERSION, MMIO_DEVICE_VERSION);
	page_store(mmio, MMIO_DEVICE_ID, mmio->device.id);
	page_store(mmio, MMIO_VENDOR_ID, MMIO_VENDOR);
	page_store(mmio, MMIO_INTERRUPT_STATUS, MMIO_INTERRUPT_USED);
	/* 4.2.2: a length and base of all ones say that there is no shared memory region. */
	page_store(mmio, MMIO_SHARED_MEMORY_LENGTH_LOW, UINT32_MAX);
	page_store(mmio, MMIO_SHARED_MEMORY_LENGTH_HIGH, UINT32_MAX);
	page_store(mmio, MMIO_SHARED_MEMORY_BASE_LOW, UINT32_MAX);
	page_store(mmio, MMIO_SHARED_MEMORY_BASE_HIGH, UINT32_MAX);
	if (mmio->device.config_size)
		memcpy(mmio->page + MMIO_CONFIG, mmio->device.config, mmio->device.config_size);
}

static int open_kicks(struct virtio_mmio *mmio)
{
	unsigned int index;
	int result;

	for (index = 0; index < mmio->device.queue_count; index++) {
		result = fd_create_event();
		if (result < 0)
			return log_errno(result, "cannot make an eventfd for a virtio queue");
		mmio->kick_fds[index] = result;
		if (!mmio->device.ops->process_queue)
			continue;
		result = loop_watch(mmio->loop, &mmio->kicks[index].watch, result, POLLIN, kicked);
		if (result < 0)
			return log_errno(result, "cannot watch the kicks of a virtio queue");
	}
	return 0;
}

int virtio_mmio_create(struct virtio_mmio **mmio, const struct virtio_device_description *device,
		       const struct guest_memory *memory, struct loop *loop, void *page,
		       int interrupt_fd)
{
	struct virtio_mmio *made;
	unsigned int index;
	int result;

	if (device->queue_count > LIMIT_DEVICE_QUEUES || device->queue_size > LIMIT_QUEUE_SIZE ||
	    device->config_size > VIRTIO_MMIO_PAGE_SIZE - MMIO_CONFIG)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	made->device = *device;
	made->memory = memory;
	made->loop = loop;
	made->page = page;
	made->interrupt_fd = interrupt_fd;
	made->error_fd = -1;
	made->features = device->features | FEATURE_VERSION_1;
	for (index = 0; index < LIMIT_DEVICE_QUEUES; index++) {
		made->kick_fds[index] = -1;
		made->kicks[index].mmio = made;
		made->kicks[index].index = index;
	}
	fill_page(made);
	reset_device(made);
	result = open_kicks(made);
	if (!result)
		result = open_error(made);
	if (result < 0) {
		virtio_mmio_destroy(made);
		return result;
	}
	*mmio = made;
	return 0;
}

void virtio_mmio_destroy(struct virtio_mmio *mmio)
{
	unsigned int index;

	if (!mmio)
		return;
	pthread_mutex_lock(&mmio->lock);
	reset_device(mmio);
	pthread_mutex_unlock(&mmio->lock);
	for (index = 0; index < LIMIT_DEVICE_QUEUES; index++) {
		loop_end(mmio->loop, &mmio->kicks[index].watch);
		fd_close(&mmio->kick_fds[index]);
	}
	loop_end(mmio->loop, &mmio->watch_error);
	fd_close(&mmio->error_fd);
	pthread_mutex_destroy(&mmio->lock);
	free(mmio);
}

int virtio_mmio_kick_fd(const struct virtio_mmio *mmio, unsigned int index)
{
	return mmio->kick_fds[index];
}

unsigned int virtio_mmio_queue_count(const struct virtio_mmio *mmio)
{
	return mmio->device.queue_count;
}

const struct virtio_mmio_register_range *virtio_mmio_postponable(unsigned int *count)
{
	/* Reserved registers between those that count may be held back as well: they do nothing. */
	static const struct virtio_mmio_register_range ranges[] = {
		{MMIO_DRIVER_FEATURES, 8},
		{MMIO_QUEUE_SIZE, 4},
		{MMIO_QUEUE_READY, 4},
		{MMIO_QUEUE_DESCRIPTOR_LOW, MMIO_QUEUE_USED_HIGH + 4 - MMIO_QUEUE_DESCRIPTOR_LOW},
	};

	*count = ARRAY_SIZE(ranges);
	return ranges;
}
