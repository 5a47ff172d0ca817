/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything is in guest physical address space, x86-64. */
#ifndef MVAGENT_MACHINE_LAYOUT_H
#define MVAGENT_MACHINE_LAYOUT_H

#include <assert.h>
#include <stdint.h>

#include "vmm/base/limits.h"

/* Below 640 KiB: what the boot protocol needs, all in e820 RAM. */
#define LAYOUT_GDT                     0x500UL
#define LAYOUT_ZERO_PAGE               0x7000UL /* struct boot_params */
#define LAYOUT_STACK                   0x8ff0UL
#define LAYOUT_PML4                    0x9000UL
#define LAYOUT_PAGE_DIRECTORY_POINTERS 0xa000UL
#define LAYOUT_PAGE_DIRECTORY          0xb000UL
#define LAYOUT_COMMAND_LINE            0x20000UL
#define LAYOUT_RNG_SEED                0x30000UL /* setup_data */
#define LAYOUT_DEVICE_TREE             0x40000UL /* setup_data: header and blob */
#define LAYOUT_DEVICE_TREE_MAX         0x10000UL
#define LAYOUT_LOW_RAM_END             0x9fc00UL
#define LAYOUT_HIGH_RAM                0x100000UL

/* RAM stops here and goes on at 4 GiB; devices live in between. */
#define LAYOUT_HOLE_START 0xc0000000UL
#define LAYOUT_HOLE_END   0x100000000UL

/* virtio-mmio register pages, one after the other, then the panic device's page: one read-only
 * slot. */
#define LAYOUT_DEVICES      0xd0000000UL
#define LAYOUT_DEVICE_SIZE  0x1000UL
#define LAYOUT_PANIC_DEVICE (LAYOUT_DEVICES + LIMIT_MMIO_DEVICES * LAYOUT_DEVICE_SIZE)
#define LAYOUT_DEVICES_END  (LAYOUT_PANIC_DEVICE + LAYOUT_DEVICE_SIZE)
#define LAYOUT_FIRST_GSI    5U /* 0..4 have meanings on a PC; the IO-APIC has pins 0..23 */
#define LAYOUT_IO_APIC      0xfec00000UL
#define LAYOUT_LOCAL_APIC   0xfee00000UL
static_assert(LAYOUT_FIRST_GSI + LIMIT_MMIO_DEVICES <= 24, "more devices than IO-APIC pins");

/* Three pages below the local APIC that KVM needs on Intel hosts (KVM_SET_TSS_ADDR). */
#define LAYOUT_TSS 0xfffbd000UL

#endif
