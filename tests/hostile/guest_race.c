/* SPDX-License-Identifier: Apache-2.0 */
/* A second processor, started by INIT and SIPI, that attacks the same devices at the same time. */
#include "tests/hostile/guest_virtio.h"

#define TRAMPOLINE       0x8000UL /* below 1 MiB, as the SIPI wants it; the first stack was here */
#define APIC_ICR_LOW     (LAYOUT_LOCAL_APIC + 0x300)
#define APIC_ICR_HIGH    (LAYOUT_LOCAL_APIC + 0x310)
#define ICR_INIT         0x4500U
#define ICR_STARTUP      (0x4600U | (uint32_t)(TRAMPOLINE >> 12))
#define ICR_ALL_BUT_SELF 0xc0000U
#define ROUNDS           700U

extern const uint8_t trampoline_begin[], trampoline_end[];
uint8_t second_stack[16384] __attribute__((aligned(16)));
static volatile uint32_t second_state; /* 0 not there, 1 at work, 2 done */
static volatile bool second_is_to_die;
static volatile bool second_is_to_kick;

__attribute__((noreturn, used)) void second_main(void);

/* From real mode at once into long mode, on the tables that the first processor has. */
__asm__(".pushsection .rodata\n"
	".code16\n"
	"trampoline_begin:\n\t"
	"cli\n\t"
	"lgdtl %cs:(trampoline_gdt - trampoline_begin)\n\t"
	"movl $0x20, %eax\n\t" /* PAE */
	"movl %eax, %cr4\n\t"
	"movl $0x9000, %eax\n\t" /* LAYOUT_PML4 */
	"movl %eax, %cr3\n\t"
	"movl $0xc0000080, %ecx\n\t" /* EFER */
	"movl $0x100, %eax\n\t"      /* LME */
	"xorl %edx, %edx\n\t"
	"wrmsr\n\t"
	"movl $0x80000031, %eax\n\t" /* PG, NE, ET, PE */
	"movl %eax, %cr0\n\t"
	"ljmpl $0x10, $(0x8000 + trampoline_long - trampoline_begin)\n"
	".code64\n"
	"trampoline_long:\n\t"
	"movl $0x18, %eax\n\t"
	"movl %eax, %ds\n\t"
	"movl %eax, %es\n\t"
	"movl %eax, %ss\n\t"
	"movq $second_stack + 16384, %rsp\n\t"
	"movq $second_main, %rax\n\t"
	"call *%rax\n"
	"trampoline_gdt:\n\t"
	".word 31\n\t"
	".long 0x500\n" /* LAYOUT_GDT */
	"trampoline_end:\n"
	".popsection\n");

/* One access that a driver might make, at no time that it would. */
static void poke(void)
{
	static const uint32_t values[] = {
		0, 1, 3, 11, 15, 16, 64, RINGS, RINGS + 0x1000, RINGS + 0x2000, 0xffffffff};
	static const uint32_t registers[] = {
		VIRTIO_MMIO_STATUS,      VIRTIO_MMIO_QUEUE_SEL,       VIRTIO_MMIO_QUEUE_NUM,
		VIRTIO_MMIO_QUEUE_READY, VIRTIO_MMIO_QUEUE_NOTIFY,    VIRTIO_MMIO_QUEUE_DESC_LOW,
		VIRTIO_MMIO_STATUS,      VIRTIO_MMIO_DRIVER_FEATURES, VIRTIO_MMIO_QUEUE_USED_LOW,
		VIRTIO_MMIO_QUEUE_NOTIFY};
	uint64_t device = LAYOUT_DEVICES + random_below(6) * LAYOUT_DEVICE_SIZE;

	reg_write(device, registers[random_below(ARRAY_COUNT(registers))],
		  values[random_below(ARRAY_COUNT(values))]);
	if (random_below(32) == 0)
		port_out(PORT_SERIAL, '.');
}

/* Sets a device up and uses it, as far as the other processor lets it. */
static void use(void)
{
	uint64_t device = LAYOUT_DEVICES + random_below(6) * LAYOUT_DEVICE_SIZE;
	struct ring ring;

	attempt();
	reg_write(device, VIRTIO_MMIO_STATUS, 0);
	reg_write(device, VIRTIO_MMIO_STATUS, 3);
	reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
	reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, 1);
	reg_write(device, VIRTIO_MMIO_STATUS, 11);
	for (uint32_t queue = 0; queue < 3; queue++) {
		make_ring(&ring, device, queue, 16);
		set_descriptor(&ring, 0, BUFFERS, 64, NEXT, 1);
		set_descriptor(&ring, 1, BUFFERS + 4096, 4096, WRITE, 0);
		show_chain(&ring, 0);
	}
	go_device(device);
	for (uint32_t queue = 0; queue < 3; queue++)
		reg_write(device, VIRTIO_MMIO_QUEUE_NOTIFY, queue);
}

void second_main(void)
{
	second_state = 1;
	if (second_is_to_die)
		read_32(2UL << 30); /* not mapped, and no interrupt table */
	for (unsigned int i = 0; i < ROUNDS * 20; i++) {
		if (second_is_to_kick)
			reg_write(LAYOUT_DEVICES + i % 6 * LAYOUT_DEVICE_SIZE,
				  VIRTIO_MMIO_QUEUE_NOTIFY, i / 6 % 3);
		else
			poke();
	}
	second_state = 2;
	for (;;)
		__asm__ volatile("cli; hlt");
}

static void start_second(void)
{
	struct patience patience = patience_begin();

	memcpy((void *)TRAMPOLINE, trampoline_begin, (size_t)(trampoline_end - trampoline_begin));
	write_32(APIC_ICR_HIGH, 1U << 24);
	write_32(APIC_ICR_LOW, ICR_INIT);
	pause_guest(1000);
	write_32(APIC_ICR_HIGH, 1U << 24);
	write_32(APIC_ICR_LOW, ICR_STARTUP);
	while (second_state == 0)
		need(patience_left(&patience), "the second processor does not start");
}

static void attack_race(void)
{
	struct patience patience;

	start_second();
	for (unsigned int i = 0; i < ROUNDS || second_state == 1; i++)
		use();
	patience = patience_begin();
	while (second_state != 2)
		need(patience_left(&patience), "the second processor does not come to its end");
	port_out(PORT_SERIAL, '\n');
	behave_all();
}

/* The second processor has a triple fault while the first is at work. */
static void attack_second_dies(void)
{
	second_is_to_die = true;
	attempt();
	say_report(SELFTEST_LAST);
	start_second();
	for (;;)
		use();
}

static void send_to(uint32_t id, uint32_t command)
{
	attempt();
	write_32(APIC_ICR_HIGH, id << 24);
	write_32(APIC_ICR_LOW, command);
}

/* Processors that are stopped and started over and over while they are at work, that do not exist,
 * and that are addressed all at once. Where KVM emulates, it gives up on one that was stopped in
 * the middle of its start. */
static void end_processor_storm(void)
{
	struct patience patience;

	attempt();
	say_report(SELFTEST_LAST);
	memcpy((void *)TRAMPOLINE, trampoline_begin, (size_t)(trampoline_end - trampoline_begin));
	for (uint32_t round = 0; round < 150; round++) {
		send_to(1, ICR_INIT);
		for (uint32_t i = 0; i < 4; i++) {
			send_to(2 + random_below(253), ICR_INIT);
			send_to(2 + random_below(253), ICR_STARTUP);
		}
		send_to(1, ICR_STARTUP);
		send_to(1, ICR_STARTUP);
		send_to(0, ICR_ALL_BUT_SELF | ICR_STARTUP);
		pause_guest(random_below(200));
		use();
	}
	send_to(0, ICR_ALL_BUT_SELF | ICR_INIT);
	second_state = 0;
	start_second();
	patience = patience_begin();
	while (second_state != 2)
		need(patience_left(&patience), "the second processor does not come to its end");
	port_out(PORT_SERIAL, '\n');
	behave_all();
	for (;;)
		port_out(PORT_KEYBOARD, RESET_COMMAND);
}

/* One processor kicks all the time, while the other resets and sets up. */
static void attack_kick_race(void)
{
	second_is_to_kick = true;
	attack_race();
}

const struct attack race_attacks[] = {
	{"kick-race", attack_kick_race},
	{"processor-storm", end_processor_storm},
	{"race", attack_race},
	{"second-dies", attack_second_dies},
	{0},
};
