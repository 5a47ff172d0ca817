/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/guest_fault.h"

#define STUB_BYTES     16U
#define SELECTOR_CODE  0x10U
#define GATE_INTERRUPT 0x8e00U /* present, 64-bit interrupt gate */

struct gate {
	uint16_t offset_low, selector, flags, offset_middle;
	uint32_t offset_high, reserved;
};

struct table_register {
	uint16_t limit;
	uint64_t base;
} __attribute__((packed));

volatile uint64_t fault_count;
volatile uint64_t interrupt_count;
uint64_t fault_resume;
uint64_t fault_stack;

extern const uint8_t fault_stub[], interrupt_stub[], nmi_stub[];

/* A fault's frame is left where it is, and the instruction given up. An interrupt goes back without
 * IRET, which a KVM that emulates does not have: flags and place are put below the stack of what
 * was interrupted, over what the frame no longer needs, and popped from there. Then NMIs stay
 * blocked after the first; that is not what is tried here. */
__asm__(".pushsection .text\n"
	"fault_stub:\n\t"
	"incq fault_count(%rip)\n\t"
	"movq fault_stack(%rip), %rsp\n\t"
	"jmp *fault_resume(%rip)\n"
	"interrupt_stub:\n\t"
	"pushq %rax\n\t"
	"movl $0xfee000b0, %eax\n\t" /* EOI of the local APIC */
	"movl $0, (%rax)\n\t"
	"popq %rax\n"
	"nmi_stub:\n\t"
	"pushq %rax\n\t"
	"pushq %rbx\n\t"
	"incq interrupt_count(%rip)\n\t"
	"movq 40(%rsp), %rax\n\t" /* its stack */
	"movq 16(%rsp), %rbx\n\t"
	"movq %rbx, -8(%rax)\n\t" /* its place */
	"movq 32(%rsp), %rbx\n\t"
	"movq %rbx, -16(%rax)\n\t" /* its flags */
	"movq 8(%rsp), %rbx\n\t"
	"movq %rbx, -24(%rax)\n\t" /* its RAX */
	"popq %rbx\n\t"
	"leaq -24(%rax), %rsp\n\t"
	"popq %rax\n\t"
	"popfq\n\t"
	"ret\n"
	".popsection\n");

void fault_begin(void)
{
	static struct gate gates[VECTORS];
	static struct table_register table;

	for (unsigned int i = 0; i < VECTORS; i++) {
		const uint64_t handler = (uint64_t)(i >= FIRST_INTERRUPT ? interrupt_stub
						    : i == VECTOR_NMI    ? nmi_stub
									 : fault_stub);

		gates[i] = (struct gate){
			.offset_low = (uint16_t)handler,
			.selector = SELECTOR_CODE,
			.flags = GATE_INTERRUPT,
			.offset_middle = (uint16_t)(handler >> 16),
			.offset_high = (uint32_t)(handler >> 32),
		};
	}
	table = (struct table_register){.limit = sizeof(gates) - 1, .base = (uint64_t)gates};
	__asm__ volatile("lidt %0" : : "m"(table));
}

bool try_read_msr(uint32_t index, uint64_t *value)
{
	const uint64_t before = fault_count;
	uint32_t low = 0, high = 0;

	attempt();
	TRY("rdmsr", "+a"(low), "+d"(high) : "c"(index) : "r11", "memory");
	*value = (uint64_t)high << 32 | low;
	return fault_count == before;
}

bool try_write_msr(uint32_t index, uint64_t value)
{
	const uint64_t before = fault_count;

	attempt();
	TRY("wrmsr",
	    : "a"((uint32_t)value), "d"((uint32_t)(value >> 32)), "c"(index)
	    : "r11", "memory");
	return fault_count == before;
}
