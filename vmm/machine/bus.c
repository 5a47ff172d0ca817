/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/bus.h"

#include <linux/kvm.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/machine/layout.h"

/* The keyboard controller of a PC, as far as Linux's reboot=k uses it (mach_reboot_fixups): status
 * says "input buffer empty", command 0xfe pulses the processor's reset line. */
#define PORT_KEYBOARD_COMMAND 0x64U
#define KEYBOARD_RESET        0xfeU

/* qemu,pvpanic-mmio: bits of its one register (Documentation/misc-devices/pvpanic.rst). */
#define PANIC_PANICKED   0x1U
#define PANIC_CRASH_LOAD 0x2U

void bus_port_write(struct bus *bus, uint16_t port, const void *data, unsigned int length)
{
	uint8_t value = *(const uint8_t *)data;

	exits_count_port(bus->exits, port);
	if (length != 1)
		return;
	if (port >= CONSOLE_PORT && port < CONSOLE_PORT + CONSOLE_PORT_COUNT)
		console_write(bus->console, (uint16_t)(port - CONSOLE_PORT), value);
	else if (port == PORT_KEYBOARD_COMMAND && value == KEYBOARD_RESET)
		ending_give(bus->ending, MONITOR_REASON_RESET, "the guest reset the machine");
}

void bus_port_read(struct bus *bus, uint16_t port, void *data, unsigned int length)
{
	exits_count_port(bus->exits, port);
	memset(data, 0xff, length);
	if (length != 1)
		return;
	if (port >= CONSOLE_PORT && port < CONSOLE_PORT + CONSOLE_PORT_COUNT)
		*(uint8_t *)data = console_read((uint16_t)(port - CONSOLE_PORT));
	else if (port == PORT_KEYBOARD_COMMAND)
		*(uint8_t *)data = 0;
}

static void bus_panic_write(struct bus *bus, uint8_t value)
{
	if (value & PANIC_PANICKED)
		ending_give(bus->ending, MONITOR_REASON_PANIC, "the guest kernel panicked");
	else if (value & PANIC_CRASH_LOAD)
		ending_give(bus->ending, MONITOR_REASON_PANIC, "the guest kernel crashed");
}

static void bus_dispatch_write(struct bus *bus, uint64_t gpa, const void *data, unsigned int length)
{
	uint64_t index = (gpa - LAYOUT_DEVICES) / LAYOUT_DEVICE_SIZE;

	if (gpa < LAYOUT_DEVICES)
		return;
	if (gpa == LAYOUT_PANIC_DEVICE && length == 1)
		bus_panic_write(bus, *(const uint8_t *)data);
	else if (index < bus->device_count)
		virtio_mmio_write(bus->devices[index], gpa % LAYOUT_DEVICE_SIZE, data, length);
}

/* Delivers the writes that KVM held back. Called with the lock held, before anything that came
 * after them: the order that the guest wrote in is the order that devices see. */
static void bus_deliver_postponed(struct bus *bus)
{
	struct kvm_coalesced_mmio_ring *ring = bus->postponed;

	if (!ring)
		return;
	/* KVM stores the entry, then `last` (coalesced_mmio_write): acquire pairs with that. */
	while (ring->first != __atomic_load_n(&ring->last, __ATOMIC_ACQUIRE)) {
		const struct kvm_coalesced_mmio *entry =
			&ring->coalesced_mmio[ring->first % bus->postponed_capacity];

		if (entry->len <= sizeof(entry->data))
			bus_dispatch_write(bus, entry->phys_addr, entry->data, entry->len);
		/* The slot may be used again only after it was read. */
		__atomic_store_n(&ring->first, (ring->first + 1) % bus->postponed_capacity,
				 __ATOMIC_RELEASE);
	}
}

/* What this processor does next comes after its own writes that were held back, and after those of
 * others that it can know of: all of them were in the ring before it left the guest. It waits for
 * no other device than its own: the lock is not held meanwhile, because a device whose process is
 * slow takes its time. */
static void bus_catch_up(struct bus *bus)
{
	pthread_mutex_lock(&bus->postponed_lock);
	bus_deliver_postponed(bus);
	pthread_mutex_unlock(&bus->postponed_lock);
}

void bus_write(struct bus *bus, uint64_t gpa, const void *data, unsigned int length)
{
	exits_count_mmio(bus->exits, gpa, true);
	bus_catch_up(bus);
	bus_dispatch_write(bus, gpa, data, length);
}

void bus_read(struct bus *bus, uint64_t gpa, void *data, unsigned int length)
{
	uint64_t index = (gpa - LAYOUT_DEVICES) / LAYOUT_DEVICE_SIZE;

	exits_count_mmio(bus->exits, gpa, false);
	memset(data, 0xff, length);
	bus_catch_up(bus);
	if (gpa == LAYOUT_PANIC_DEVICE && length == 1)
		*(uint8_t *)data = PANIC_PANICKED | PANIC_CRASH_LOAD;
	else if (gpa >= LAYOUT_DEVICES && index < bus->device_count)
		virtio_mmio_read(bus->devices[index], gpa % LAYOUT_DEVICE_SIZE, data, length);
}
