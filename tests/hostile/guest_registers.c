/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on what is decoded: registers, ports, and addresses that are nobody's. */
#include "tests/hostile/guest_virtio.h"

/* Values that somebody might have forgotten. */
static uint64_t odd_value(void)
{
	static const uint64_t values[] = {
		0,          1,
		2,          4,
		8,          15,
		16,         64,
		127,        128,
		255,        1024,
		0xfff0,     0xffff,
		RINGS,      LAYOUT_DEVICES,
		0x7fffffff, 0x80000000,
		~0UL,       0xfffffff0UL,
		RAM_BYTES,  RAM_BYTES - 16,
	};

	return random_below(4) ? values[random_below(ARRAY_COUNT(values))] : random_64();
}

static uint64_t random_page(void)
{
	return LAYOUT_DEVICES + random_below(LIMIT_MMIO_DEVICES) * LAYOUT_DEVICE_SIZE;
}

static void write_any(uint64_t address, uint64_t value)
{
	switch (random_below(5)) {
	case 0:
		write_8(address, (uint8_t)value);
		break;
	case 1:
		write_16(address, (uint16_t)value);
		break;
	case 2:
		write_64(address, value);
		break;
	default:
		write_32(address, (uint32_t)value);
		break;
	}
}

/* Every register of every device with each width, aligned or not, then random ones of all. */
static void attack_registers(void)
{
	for (unsigned int i = 0; i < 6000; i++) {
		bool known = random_below(8) != 0;
		uint64_t address = random_page();

		attempt();
		address += known ? random_below(0x120 / 4) * 4 : random_below(0xff8);
		if (random_below(16) == 0)
			address ^= 1UL << random_below(3);
		if (random_below(4) == 0)
			read_64(address);
		else
			write_any(address, odd_value());
	}
	behave_all();
}

/* Configuration space and everything that can only be read. */
static void attack_read_only(void)
{
	static const uint16_t offsets[] = {0x000, 0x004, 0x008, 0x00c, 0x060, 0x0b0, 0x100, 0x104};
	static uint8_t junk[512];
	uint64_t before[ARRAY_COUNT(offsets)];

	for (unsigned int i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i | 0x81);
	for (uint64_t page = 0; page < LIMIT_MMIO_DEVICES; page++) {
		uint64_t device = LAYOUT_DEVICES + page * LAYOUT_DEVICE_SIZE;

		for (unsigned int i = 0; i < ARRAY_COUNT(offsets); i++) {
			attempt();
			before[i] = read_64(device + offsets[i]);
			write_8(device + offsets[i], 0xa5);
			write_16(device + offsets[i], 0xa5a5);
			write_32(device + offsets[i], 0xa5a5a5a5);
			write_64(device + offsets[i], 0xa5a5a5a5a5a5a5a5UL);
		}
		memcpy((void *)(device + 0x100), junk, sizeof(junk)); /* rep movs */
		memset((void *)(device + 0xf00), 0x5a, 0x100);
		for (unsigned int i = 0; i < ARRAY_COUNT(offsets); i++)
			if (read_64(device + offsets[i]) != before[i])
				fail_number("a read-only register changed:", device + offsets[i]);
	}
	behave_all();
}

/* Every port there is, with every width, but not the byte that resets. The serial port's own are
 * another attack's. */
static void attack_ports(void)
{
	uint8_t bytes[64];

	for (uint32_t port = 0; port < 65536; port++, attempt()) {
		port_in((uint16_t)port);
		if (port == PORT_KEYBOARD || (port >= PORT_SERIAL && port <= PORT_SERIAL + 7))
			continue;
		port_out((uint16_t)port, (uint8_t)port);
		__asm__ volatile("outw %w0, %1" : : "a"(port), "d"((uint16_t)port));
		__asm__ volatile("outl %0, %1" : : "a"(port), "d"((uint16_t)port));
	}
	for (uint32_t port = 0; port < 65536; port += 997) {
		void *target = bytes;
		const void *source = bytes;
		uint64_t count = sizeof(bytes);

		if (port >= PORT_SERIAL && port <= PORT_SERIAL + 7)
			continue;
		__asm__ volatile("rep insb"
				 : "+D"(target), "+c"(count)
				 : "d"((uint16_t)port)
				 : "memory");
		count = sizeof(bytes) / 4;
		__asm__ volatile("rep outsl"
				 : "+S"(source), "+c"(count)
				 : "d"((uint16_t)port)
				 : "memory");
	}
	port_out(PORT_KEYBOARD, 0);
	port_out(PORT_KEYBOARD, 0xff);
	behave(find_device(ID_RNG));
}

/* The serial port's own registers with values that no driver writes, and much text without ends. */
static void attack_serial(void)
{
	for (unsigned int i = 0; i < 500; i++, attempt())
		port_out((uint16_t)(PORT_SERIAL + 1 + random_below(7)), (uint8_t)random_64());
	port_out(PORT_SERIAL + 3, 0); /* DLAB off: what is written now is text again */
	for (unsigned int i = 0; i < 300; i++)
		port_out(PORT_SERIAL, (uint8_t)(i % 16 ? random_64() | 0x80 : '\n'));
	for (unsigned int i = 0; i < 20000; i++)
		port_out(PORT_SERIAL, 'x');
	port_out(PORT_SERIAL, '\n');
	behave(find_device(ID_RNG));
}

/* The hole between RAM and 4 GiB, and what is beyond. */
static void attack_address_space(void)
{
	for (uint64_t address = LAYOUT_HOLE_START; address < LAYOUT_HOLE_END; address += 0x3f000) {
		attempt();
		read_32(address);
		write_32(address, (uint32_t)address);
	}
	for (uint64_t address = LAYOUT_HOLE_END; address < 5UL << 30; address += 0x1000000) {
		attempt();
		read_64(address);
		write_64(address, address);
	}
	for (uint64_t address = RAM_BYTES; address < 1UL << 30; address += 0x400000) {
		attempt();
		read_64(address);
		write_64(address + 0xffc, address); /* over the end of a page */
	}
	/* The pages behind the last device, and the panic device in other widths than its own. */
	write_32(LAYOUT_PANIC_DEVICE, 3);
	write_64(LAYOUT_PANIC_DEVICE, 3);
	write_8(LAYOUT_PANIC_DEVICE + 1, 3);
	write_8(LAYOUT_PANIC_DEVICE, 0);
	behave_all();
}

/* Queues where no queue can be. The device must say so, at the latest when it is kicked. */
static void attack_queue_places(void)
{
	static const struct {
		uint32_t size;
		uint64_t descriptors, available, used;
	} places[] = {
		{16, LAYOUT_DEVICES, RINGS, RINGS + 0x1000},
		{16, RINGS, LAYOUT_DEVICES, RINGS + 0x1000},
		{16, RINGS, RINGS + 0x1000, LAYOUT_DEVICES},
		{16, RAM_BYTES, RINGS, RINGS + 0x1000},
		{16, RAM_BYTES - 16, RINGS, RINGS + 0x1000},
		{16, RINGS, RAM_BYTES - 4, RINGS + 0x1000},
		{16, RINGS, RINGS + 0x1000, RAM_BYTES - 8},
		{16, ~0UL & ~15UL, RINGS, RINGS + 0x1000},
		{16, RINGS, ~1UL, RINGS + 0x1000},
		{16, RINGS, RINGS + 0x1000, ~3UL},
		{16, 0x8000000000000000UL, RINGS, RINGS + 0x1000},
		{16, RINGS | 1UL << 63, RINGS, RINGS + 0x1000},
		{16, RINGS + 8, RINGS + 0x1000, RINGS + 0x2000},
		{16, RINGS, RINGS + 0x1001, RINGS + 0x2000},
		{16, RINGS, RINGS + 0x1000, RINGS + 0x2002},
		{0, RINGS, RINGS + 0x1000, RINGS + 0x2000},
		{3, RINGS, RINGS + 0x1000, RINGS + 0x2000},
		{2048, RINGS, RINGS + 0x10000, RINGS + 0x20000},
		{32768, RINGS, RINGS + 0x100000, RINGS + 0x200000},
		{65535, RINGS, RINGS + 0x100000, RINGS + 0x200000},
		{65536 + 16, RINGS, RINGS + 0x1000, RINGS + 0x2000},
		{0xffffffff, RINGS, RINGS + 0x1000, RINGS + 0x2000},
	};
	static const uint32_t ids[] = {ID_NET, ID_BLK, ID_RNG, ID_BALLOON, ID_VSOCK, ID_FS};

	for (unsigned int which = 0; which < ARRAY_COUNT(ids); which++) {
		uint64_t device = find_device(ids[which]);
		uint32_t count = count_queues(device);

		for (unsigned int i = 0; i < ARRAY_COUNT(places); i++) {
			begin_device(device, FEATURE_INDIRECT);
			for (uint32_t queue = 0; queue < count; queue++)
				place_queue(device, queue, places[i].size, places[i].descriptors,
					    places[i].available, places[i].used);
			go_device(device);
			if (!(reg_read(device, VIRTIO_MMIO_STATUS) & STATUS_NEEDS_RESET))
				fail_number("a queue in an impossible place is taken: place", i);
			for (uint32_t queue = 0; queue < count; queue++)
				reg_write(device, VIRTIO_MMIO_QUEUE_NOTIFY, queue);
		}
		behave(device);
	}
}

/* Queues whose parts lie on top of each other, at address 0, and on the running program's tables:
 * all of it is the guest's own memory, so it is the guest's own loss. */
static void attack_queue_overlaps(void)
{
	static const uint64_t ids[] = {ID_NET, ID_BLK, ID_RNG, ID_BALLOON, ID_VSOCK, ID_FS};

	for (unsigned int which = 0; which < ARRAY_COUNT(ids); which++) {
		uint64_t device = find_device((uint32_t)ids[which]);
		uint32_t count = count_queues(device);

		for (unsigned int round = 0; round < 4; round++) {
			memset((void *)RINGS, (int)(round * 0x11), 0x400);
			write_16(RINGS + 2, (uint16_t)(round + 1));
			begin_device(device,
				     FEATURE_INDIRECT | (round & 1 ? FEATURE_EVENT_IDX : 0));
			for (uint32_t queue = 0; queue < count; queue++)
				place_queue(device, queue, 16, RINGS, RINGS + 16 * (round & 2),
					    round == 3 ? 0x600 : RINGS);
			go_device(device);
			for (uint32_t queue = 0; queue < count; queue++)
				reg_write(device, VIRTIO_MMIO_QUEUE_NOTIFY, queue);
			pause_guest(100);
		}
		behave(device);
	}
}

/* The order of 3.1.1 broken in every way. */
static void attack_status(void)
{
	uint64_t device = find_device(ID_RNG);
	struct ring ring;

	reg_write(device, VIRTIO_MMIO_STATUS, 0);
	reg_write(device, VIRTIO_MMIO_STATUS, STATUS_DRIVER_OK);
	need(!(reg_read(device, VIRTIO_MMIO_STATUS) & STATUS_DRIVER_OK), "DRIVER_OK came first");
	reg_write(device, VIRTIO_MMIO_STATUS, 0xffffffff);
	need(!(reg_read(device, VIRTIO_MMIO_STATUS) & (STATUS_DRIVER_OK | STATUS_NEEDS_RESET)),
	     "a status of all ones is taken");
	reg_write(device, VIRTIO_MMIO_STATUS, 0);
	reg_write(device, VIRTIO_MMIO_STATUS, 3);
	for (uint32_t half = 0; half < 2; half++) {
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, 0xffffffff);
	}
	reg_write(device, VIRTIO_MMIO_STATUS, 11);
	need(reg_read(device, VIRTIO_MMIO_STATUS) == 3, "features that were not offered are taken");
	reg_write(device, VIRTIO_MMIO_STATUS, 15);
	need(reg_read(device, VIRTIO_MMIO_STATUS) == 3, "DRIVER_OK came without FEATURES_OK");

	/* Moved after DRIVER_OK: the queue stays where it was. */
	begin_device(device, 0);
	make_ring(&ring, device, 0, 16);
	go_device(device);
	reg_write(device, VIRTIO_MMIO_QUEUE_READY, 0);
	place_queue(device, 0, 8, LAYOUT_DEVICES, ~0UL, 1);
	reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
	reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, 0xffffffff);
	set_descriptor(&ring, 0, BUFFERS, 64, WRITE, 0);
	show_chain(&ring, 0);
	kick_ring(&ring);
	need(wait_used(&ring) == 64, "a queue moved after DRIVER_OK");
	behave(device);
}

const struct attack register_attacks[] = {
	{"registers", attack_registers},
	{"read-only-registers", attack_read_only},
	{"ports", attack_ports},
	{"serial", attack_serial},
	{"address-space", attack_address_space},
	{"queue-places", attack_queue_places},
	{"queue-overlaps", attack_queue_overlaps},
	{"status", attack_status},
	{0},
};
