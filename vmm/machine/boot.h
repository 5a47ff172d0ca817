/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 64-bit Linux boot protocol (Documentation/arch/x86/boot.rst): what lies in memory when the
 * first instruction of vmlinux runs, and the registers of the processor that runs it.
 */
#ifndef MVAGENT_MACHINE_BOOT_H
#define MVAGENT_MACHINE_BOOT_H

#include <linux/kvm.h>
#include <stdint.h>

#include "vmm/machine/ram.h"

#define BOOT_RNG_SEED_BYTES 32U

struct boot_inputs {
	int kernel_fd; /* vmlinux; read by pread, stays the caller's */
	int initrd_fd; /* cpio archive; likewise */
	const char *command_line;
	const void *device_tree; /* at most LAYOUT_DEVICE_TREE_MAX less a header */
	uint32_t device_tree_size;
	uint8_t rng_seed[BOOT_RNG_SEED_BYTES];
};

/* Fills guest memory. Returns 0 and the entry point, or -errno with the sentence printed. */
int boot_load(const struct ram *ram, const struct boot_inputs *inputs, uint64_t *entry);

/* Sets the registers of the boot processor for @entry. */
void boot_set_registers(uint64_t entry, struct kvm_regs *regs, struct kvm_sregs *sregs);

#endif
