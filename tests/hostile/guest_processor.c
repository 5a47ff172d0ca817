/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on what KVM and the monitor do for a processor: its registers, clocks, interrupts. */
#include "tests/hostile/guest_fault.h"
#include "tests/hostile/guest_virtio.h"

#define MSR_TSC            0x10U
#define MSR_APIC_BASE      0x1bU
#define MSR_TSC_ADJUST     0x3bU
#define MSR_TSC_DEADLINE   0x6e0U
#define MSR_EFER           0xc0000080U
#define MSR_KVM_FIRST      0x4b564d00U /* clock, page faults, stolen time, end of interrupt */
#define MSR_KVM_COUNT      16U
#define APIC_TASK_PRIORITY 0x080U
#define APIC_SPURIOUS      0x0f0U
#define APIC_ICR_LOW       0x300U
#define APIC_ICR_HIGH      0x310U
#define APIC_TIMER         0x320U
#define APIC_TIMER_INITIAL 0x380U
#define APIC_TIMER_DIVIDE  0x3e0U
#define APIC_ENABLED       0x1ffU
#define ICR_SELF           0x40000U
#define ICR_ALL            0x80000U
#define ICR_NMI            0x400U
#define TIMER_PERIODIC     0x20000U
#define TIMER_DEADLINE     0x40000U
#define LVT_MASKED         0x10000U
#define IO_APIC_SELECT     LAYOUT_IO_APIC
#define IO_APIC_WINDOW     (LAYOUT_IO_APIC + 0x10)

static const struct {
	uint32_t first, count;
} msr_ranges[] = {
	{0, 0x1000},         {0x1000, 0x100},     {MSR_KVM_FIRST, MSR_KVM_COUNT},
	{0x40000000, 0x120}, {0xc0000000, 0x200}, {0xc0010000, 0x200},
	{0x80000000, 0x10},  {0xfffffff0, 0x10},
};

static void apic_write(uint32_t offset, uint32_t value)
{
	write_32(LAYOUT_LOCAL_APIC + offset, value);
}

/* Whether the guest's own going on depends on it. */
static bool msr_is_needed(uint32_t index)
{
	return index == MSR_EFER || index == MSR_TSC || index == MSR_TSC_ADJUST ||
	       index == MSR_APIC_BASE;
}

static void attack_msr(void)
{
	uint64_t value, ignored;

	fault_begin();
	for (unsigned int range = 0; range < ARRAY_COUNT(msr_ranges); range++) {
		for (uint32_t i = 0; i < msr_ranges[range].count; i++) {
			const uint32_t index = msr_ranges[range].first + i;

			if (!try_read_msr(index, &value) || msr_is_needed(index))
				continue;
			try_write_msr(index, random_64());
			try_write_msr(index, ~0UL);
			try_write_msr(index, 0);
			try_write_msr(index, value);
			try_read_msr(index, &ignored);
		}
	}
	need(fault_count != 0, "every register of the processor exists");
	behave_all();
}

/* Where KVM itself is asked to write: registers, the end of memory, beyond all of it. */
static void attack_kvm_msr(void)
{
	static const uint64_t places[] = {
		LAYOUT_DEVICES,      LAYOUT_DEVICES + 0xffc,
		RAM_BYTES - 4,       RAM_BYTES - 64,
		RAM_BYTES,           LAYOUT_LOCAL_APIC,
		LAYOUT_TSS,          LAYOUT_HOLE_END,
		LAYOUT_HOLE_END - 4, 1UL << 40,
		~0UL & ~63UL,        RINGS,
	};

	fault_begin();
	for (unsigned int i = 0; i < MSR_KVM_COUNT; i++) {
		for (unsigned int place = 0; place < ARRAY_COUNT(places); place++) {
			for (uint64_t flags = 0; flags < 16; flags += 1 + flags * 2)
				try_write_msr(MSR_KVM_FIRST + i, places[place] | flags);
			pause_guest(3); /* what is asked for is done at the next entry */
		}
		try_write_msr(MSR_KVM_FIRST + i, 0);
	}
	/* The old numbers of the clock. */
	for (uint32_t index = 0x11; index <= 0x12; index++) {
		for (unsigned int place = 0; place < ARRAY_COUNT(places); place++) {
			try_write_msr(index, places[place] | 1);
			pause_guest(3);
		}
		try_write_msr(index, 0);
	}
	need(read_32(LAYOUT_DEVICES) == 0x74726976, "KVM has written into a device's registers");
	behave_all();
}

/* Time that jumps, and timers that are over before they begin. */
static void attack_tsc(void)
{
	static const uint64_t values[] = {0, 1, ~0UL, 1UL << 63, 1UL << 32, 0xffffffff};
	const uint64_t begin = read_clock();
	uint64_t ignored;

	fault_begin();
	apic_write(APIC_SPURIOUS, APIC_ENABLED);
	apic_write(APIC_TIMER, TIMER_DEADLINE | 0x40);
	for (unsigned int round = 0; round < 50; round++) {
		for (unsigned int i = 0; i < ARRAY_COUNT(values); i++) {
			try_write_msr(MSR_TSC, values[i]);
			try_write_msr(MSR_TSC_DEADLINE, values[random_below(ARRAY_COUNT(values))]);
			try_write_msr(MSR_TSC_ADJUST, values[random_below(ARRAY_COUNT(values))]);
			try_write_msr(MSR_TSC_DEADLINE, read_clock() + random_below(100000));
			let_interrupts_in();
			try_read_msr(MSR_TSC, &ignored);
		}
	}
	try_write_msr(MSR_TSC_DEADLINE, 0);
	apic_write(APIC_TIMER, LVT_MASKED);
	try_write_msr(MSR_TSC_ADJUST, 0);
	try_write_msr(MSR_TSC, begin);
	behave_all();
}

/* Every exception that a program can raise. */
static void attack_exceptions(void)
{
	uint64_t address = 1UL << 47; /* not canonical */
	uint64_t before;

	fault_begin();
	for (unsigned int round = 0; round < 100; round++) {
		before = fault_count;
		attempt();
		TRY("xorl %%eax, %%eax\n\txorl %%edx, %%edx\n\tdivl %%eax",
		    :
		    : "rax", "rdx", "r11", "memory", "cc");
		attempt();
		TRY("ud2", : : "r11", "memory");
		attempt();
		TRY("movq (%0), %%rax", : "r"(address) : "rax", "r11", "memory");
		attempt();
		TRY("movq (%0), %%rax", : "r"(2UL << 30) : "rax", "r11", "memory");
		attempt();
		TRY("movw %w0, %%ds", : "r"(0xfff8) : "r11", "memory");
		need(fault_count == before + 5, "a fault is not raised, or twice");
	}
	behave_all();
}

/* Interrupts by the thousand: sent to itself, and at the end of a timer. */
static void attack_interrupts(void)
{
	fault_begin();
	apic_write(APIC_SPURIOUS, APIC_ENABLED);
	apic_write(APIC_TASK_PRIORITY, 0);
	for (uint32_t round = 0; round < 2000; round++) {
		attempt();
		apic_write(APIC_ICR_LOW, ICR_SELF | (FIRST_INTERRUPT + round % 224));
		if (round % 16 == 0)
			apic_write(APIC_ICR_LOW, ICR_SELF | ICR_NMI);
		if (round % 64 == 0)
			apic_write(APIC_ICR_LOW, ICR_ALL | (FIRST_INTERRUPT + random_below(224)));
		let_interrupts_in();
	}
	if (interrupt_count <= 1500)
		fail_number("interrupts that are sent get lost; there came", interrupt_count);
	apic_write(APIC_TIMER_DIVIDE, 0xb);
	apic_write(APIC_TIMER, TIMER_PERIODIC | 0x60);
	for (unsigned int round = 0; round < 200; round++) {
		attempt();
		apic_write(APIC_TIMER_INITIAL, 1 + random_below(3));
		let_interrupts_in();
	}
	apic_write(APIC_TIMER_INITIAL, 0);
	apic_write(APIC_TIMER, LVT_MASKED);
	behave_all();
}

/* Every register of both interrupt controllers, with anything. */
static void attack_interrupt_controllers(void)
{
	fault_begin();
	for (unsigned int round = 0; round < 3000; round++) {
		uint32_t offset = random_below(0x400) & ~15U;

		attempt();
		/* Not the command that resets or stops the processor itself. */
		if (offset == APIC_ICR_LOW || offset == APIC_ICR_HIGH)
			continue;
		if (random_below(8) == 0)
			write_16(LAYOUT_LOCAL_APIC + random_below(0xff0), (uint16_t)random_64());
		else
			apic_write(offset, (uint32_t)random_64());
		read_32(LAYOUT_LOCAL_APIC + offset);
	}
	for (unsigned int round = 0; round < 2000; round++) {
		attempt();
		write_32(IO_APIC_SELECT,
			 random_below(4) ? random_below(0x40) : (uint32_t)random_64());
		write_32(IO_APIC_WINDOW, (uint32_t)random_64());
		read_32(IO_APIC_WINDOW);
		read_64(LAYOUT_IO_APIC + (random_below(0x100) & ~7U));
	}
	for (uint32_t pin = 0; pin < 24; pin++) {
		write_32(IO_APIC_SELECT, 0x10 + pin * 2);
		write_32(IO_APIC_WINDOW, LVT_MASKED);
	}
	apic_write(APIC_TIMER_INITIAL, 0);
	apic_write(APIC_SPURIOUS, APIC_ENABLED);
	behave_all();
}

/* Interrupts that a program raises, with a handler and without. */
static void end_software_interrupts(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	fault_begin();
	for (unsigned int round = 0; round < 20000; round++)
		TRY("int $0x50", : : "rax", "r11", "memory");
	for (unsigned int round = 0; round < 20000; round++)
		TRY("int3", : : "r11", "memory");
	TRY("movq %%rsp, %%rax\n\txorl %%esp, %%esp\n\tint $0x80", : : "rax", "r11", "memory");
	for (;;)
		port_out(PORT_KEYBOARD, RESET_COMMAND);
}

/* Page tables where registers are, and where nothing is. */
static void end_page_tables(void)
{
	static const uint64_t places[] = {LAYOUT_DEVICES, RAM_BYTES, LAYOUT_LOCAL_APIC, LAYOUT_TSS,
					  LAYOUT_HOLE_END};
	volatile uint64_t *pointers = (volatile uint64_t *)LAYOUT_PAGE_DIRECTORY_POINTERS;

	attempt();
	say_report(SELFTEST_LAST);
	fault_begin();
	for (unsigned int i = 0; i < ARRAY_COUNT(places); i++) {
		pointers[6 + i] = places[i] | 3;
		TRY("movq (%0), %%rax\n\tmovq %%rax, 8(%0)",
		    : "r"((6UL + i) << 30)
		    : "rax", "r11", "memory");
	}
	__asm__ volatile("movq %0, %%cr3" : : "r"(LAYOUT_DEVICES) : "memory");
	for (;;)
		port_out(PORT_KEYBOARD, RESET_COMMAND);
}

const struct attack processor_attacks[] = {
	{"msr", attack_msr},
	{"kvm-msr", attack_kvm_msr},
	{"tsc", attack_tsc},
	{"exceptions", attack_exceptions},
	{"interrupts", attack_interrupts},
	{"interrupt-controllers", attack_interrupt_controllers},
	{"software-interrupts", end_software_interrupts},
	{"page-tables", end_page_tables},
	{0},
};
