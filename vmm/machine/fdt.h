/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device tree that describes the machine to Linux. On x86 it is an addition to boot_params,
 * handed over in setup_data (arch/x86/kernel/devicetree.c of Linux 6.12): processors, interrupt
 * controllers and virtio devices come from here; memory, command line and initramfs from
 * boot_params.
 */
#ifndef MVAGENT_MACHINE_FDT_H
#define MVAGENT_MACHINE_FDT_H

#include <stddef.h>

/* Writes the tree of a machine with @vcpu_count processors and virtio devices 0..@device_count - 1
 * of the layout to @buffer. Returns its size in bytes, or -ENOSPC when @capacity is too small. */
int fdt_build(void *buffer, size_t capacity, unsigned int vcpu_count, unsigned int device_count);

#endif
