/* SPDX-License-Identifier: Apache-2.0 */
/* Faults and interrupts that the guest outlives. */
#ifndef MVAGENT_TESTS_GUEST_FAULT_H
#define MVAGENT_TESTS_GUEST_FAULT_H

#include "tests/hostile/guest.h"

#define VECTORS         256U
#define FIRST_INTERRUPT 32U
#define VECTOR_NMI      2U

/* How many came, faults (each is over with its instruction) and interrupts. */
extern volatile uint64_t fault_count;
extern volatile uint64_t interrupt_count;

/* Where a fault goes on, and with which stack: set by TRY. */
extern uint64_t fault_resume;
extern uint64_t fault_stack;

/* Puts up a table of handlers for all vectors. Interrupts stay off. */
void fault_begin(void);

/* Executes assembly that may fault, and goes on behind it. It must leave the stack alone. */
#define TRY(assembly, ...)                                                        \
	__asm__ volatile("leaq 1f(%%rip), %%r11\n\t"                              \
			 "movq %%r11, fault_resume(%%rip)\n\t"                    \
			 "movq %%rsp, fault_stack(%%rip)\n\t" assembly "\n1:\n\t" \
			 : __VA_ARGS__)

/* Reads or writes a register of the processor. Whether it exists, for all that can be seen. */
bool try_read_msr(uint32_t index, uint64_t *value);
bool try_write_msr(uint32_t index, uint64_t value);

/* Lets interrupts in for a moment: also where they only come when the guest is left and entered. */
static inline void let_interrupts_in(void)
{
	__asm__ volatile("sti\n\tinb %0, %%al\n\tcli" : : "i"(PORT_KEYBOARD) : "rax", "memory");
}

#endif
