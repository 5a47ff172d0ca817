/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by looking everywhere: each width of each register, the edges of memory, all addresses.
 */
#include "tests/hostile/guest_virtio.h"

#define DEVICES     6U
#define WINDOW      (5UL << 30)
#define PAGE_WRITE  3UL
#define PAGE_LARGE  0x80UL
#define BOOT_DATA   LAYOUT_COMMAND_LINE
#define BOOT_END    LAYOUT_LOW_RAM_END
#define TREE_MAGIC  0xedfe0dd0U /* 0xd00dfeed, big endian */
#define TREE_HEADER 16U         /* struct setup_data before it */
#define SCAN_STEP   0x4000UL
#define RAM_MARK    0x5ca1ab1e0badcafeUL

/* Accesses of all widths but the right one, at all places: none may do anything. */
static void attack_register_widths(void)
{
	for (uint64_t index = 0; index < DEVICES; index++) {
		const uint64_t device = LAYOUT_DEVICES + index * LAYOUT_DEVICE_SIZE;
		const uint32_t queues = count_queues(device);

		reg_write(device, VIRTIO_MMIO_STATUS, 0);
		for (uint64_t offset = 0; offset < 0x110; offset++) {
			attempt();
			write_8(device + offset, 0xff);
			write_16(device + offset, 0xffff);
			write_64(device + offset, ~0UL);
			if (offset % 4)
				write_32(device + offset, 0xffffffff);
			need(reg_read(device, VIRTIO_MMIO_STATUS) == 0, "a part of a register");
			read_64(device + offset);
		}
		need(count_queues(device) == queues, "queues come or go");
		behave(device);
	}
}

/* Every address at which something begins or ends, from both sides and across. */
static void attack_memory_slots(void)
{
	static const uint64_t edges[] = {
		LAYOUT_LOW_RAM_END,
		LAYOUT_HIGH_RAM,
		RAM_BYTES,
		LAYOUT_HOLE_START + 32, /* what is before is not mapped */
		LAYOUT_DEVICES,
		LAYOUT_PANIC_DEVICE,
		LAYOUT_DEVICES_END,
		LAYOUT_IO_APIC,
		LAYOUT_IO_APIC + 0x1000,
		LAYOUT_LOCAL_APIC + 0x1000,
		LAYOUT_TSS - 0x1000, /* KVM's own, on some hosts */
		LAYOUT_TSS,
		LAYOUT_TSS + 0x3000,
		LAYOUT_HOLE_END,
	};
	static uint8_t bytes[64];

	write_64(RAM_BYTES - 8, RAM_MARK);
	write_64(LAYOUT_HIGH_RAM, RAM_MARK);
	for (unsigned int i = 0; i < ARRAY_COUNT(edges); i++) {
		const bool is_ram = edges[i] <= RAM_BYTES;

		for (uint64_t address = edges[i] - 16; address < edges[i] + 16; address++) {
			/* A write of the panic device's one byte would end the run. */
			if (edges[i] == LAYOUT_PANIC_DEVICE && address + 8 > LAYOUT_PANIC_DEVICE)
				break;
			attempt();
			read_64(address);
			read_32(address);
			if (is_ram && address < RAM_BYTES)
				continue;
			write_64(address, ~0UL);
			write_8(address, 0xff);
		}
		memcpy(bytes, (void *)(edges[i] - 32), sizeof(bytes)); /* rep movs, across */
	}
	need(read_64(RAM_BYTES - 8) == RAM_MARK && read_64(LAYOUT_HIGH_RAM) == RAM_MARK,
	     "what is written beyond memory is in memory");
	behave_all();
}

/* A large page of virtual memory for any physical address. */
static uint64_t look_through_window(uint64_t address)
{
	static uint64_t directory[512] __attribute__((aligned(4096)));
	volatile uint64_t *pointers = (volatile uint64_t *)LAYOUT_PAGE_DIRECTORY_POINTERS;

	directory[0] = (address & ~0x1fffffUL) | PAGE_LARGE | PAGE_WRITE;
	pointers[5] = (uint64_t)directory | PAGE_WRITE;
	__asm__ volatile("invlpg (%0)" : : "r"(WINDOW) : "memory");
	return WINDOW + (address & 0x1fffff);
}

static unsigned int physical_bits(void)
{
	uint32_t a = 0x80000008, b, c = 0, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return a & 0xff;
}

/* All of the hole, and all of what there is above, in steps that double. */
static void attack_all_addresses(void)
{
	const unsigned int bits = physical_bits();

	need(bits >= 32 && bits <= 52, "physical addresses of an impossible size");
	for (uint64_t address = LAYOUT_HOLE_START; address < LAYOUT_HOLE_END;
	     address += SCAN_STEP) {
		attempt();
		read_32(address);
	}
	for (unsigned int bit = 33; bit < bits; bit++) {
		for (int side = -1; side <= 1; side++) {
			uint64_t address = (1UL << bit) + (uint64_t)(int64_t)(side * 0x200000L);
			uint64_t place = look_through_window(address);

			attempt();
			for (uint64_t step = 0; step < 0x200000; step += 0x40000) {
				read_64(place + step);
				write_64(place + step, ~0UL);
			}
		}
	}
	behave_all();
}

static uint32_t big_endian(uint32_t value)
{
	return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}

/* What the machine told its guest at the start is the guest's own from then on: the tree is looked
 * through, and then all of it is overwritten. */
static void attack_device_tree(void)
{
	const uint64_t tree = LAYOUT_DEVICE_TREE + TREE_HEADER;
	const uint32_t size = big_endian(read_32(tree + 4));

	need(read_32(tree) == TREE_MAGIC, "there is no device tree");
	need(size > 0x100 && size < LAYOUT_DEVICE_TREE_MAX, "a device tree of an impossible size");
	for (uint64_t address = tree + size; address < LAYOUT_DEVICE_TREE + LAYOUT_DEVICE_TREE_MAX;
	     address += 8)
		need(read_64(address & ~7UL) == 0 || address < tree + size + 8,
		     "something lies behind the device tree");
	for (uint64_t address = BOOT_DATA; address + 8 <= BOOT_END; address += 8) {
		attempt();
		write_64(address, random_64());
	}
	memset((void *)LAYOUT_ZERO_PAGE, 0xff, 0x1000);
	behave_all();
}

const struct attack probe_attacks[] = {
	{"register-widths", attack_register_widths},
	{"memory-slots", attack_memory_slots},
	{"all-addresses", attack_all_addresses},
	{"device-tree", attack_device_tree},
	{0},
};
