/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/fdt.h"

#include <errno.h>
#include <libfdt.h>
#include <stdint.h>
#include <stdio.h>

#include "vmm/machine/layout.h"

#define PHANDLE_IO_APIC 1U

/* Second interrupt cell of intel,ce4100-ioapic (dt_irqdomain_alloc, Linux 6.12): 3 is edge, rising.
 */
#define INTERRUPT_EDGE_RISING 3U

/* libfdt's sequential writer reports the first error from each later call too, so that a chain of
 * calls may be or-ed and looked at once. */
static int fdt_put_reg(void *fdt, uint64_t gpa, uint64_t size)
{
	const fdt64_t cells[2] = {cpu_to_fdt64(gpa), cpu_to_fdt64(size)};

	return fdt_property(fdt, "reg", cells, sizeof(cells));
}

static int fdt_put_processors(void *fdt, unsigned int count)
{
	int error = fdt_begin_node(fdt, "cpus");

	error |= fdt_property_u32(fdt, "#address-cells", 1);
	error |= fdt_property_u32(fdt, "#size-cells", 0);
	for (unsigned int id = 0; id < count; id++) {
		char name[16];

		snprintf(name, sizeof(name), "cpu@%x", id);
		error |= fdt_begin_node(fdt, name);
		error |= fdt_property_string(fdt, "device_type", "cpu");
		error |= fdt_property_u32(fdt, "reg", id); /* its APIC id */
		error |= fdt_end_node(fdt);
	}
	return error | fdt_end_node(fdt);
}

static int fdt_put_interrupt_controllers(void *fdt)
{
	int error = fdt_begin_node(fdt, "interrupt-controller@fec00000");

	error |= fdt_property_string(fdt, "compatible", "intel,ce4100-ioapic");
	error |= fdt_put_reg(fdt, LAYOUT_IO_APIC, 0x1000);
	error |= fdt_property(fdt, "interrupt-controller", NULL, 0);
	error |= fdt_property_u32(fdt, "#interrupt-cells", 2);
	error |= fdt_property_u32(fdt, "#address-cells", 0);
	error |= fdt_property_u32(fdt, "phandle", PHANDLE_IO_APIC);
	error |= fdt_end_node(fdt);

	error |= fdt_begin_node(fdt, "interrupt-controller@fee00000");
	error |= fdt_property_string(fdt, "compatible", "intel,ce4100-lapic");
	error |= fdt_put_reg(fdt, LAYOUT_LOCAL_APIC, 0x1000);
	/* Without this Linux assumes PIC mode and pokes the IMCR ports. */
	error |= fdt_property(fdt, "intel,virtual-wire-mode", NULL, 0);
	return error | fdt_end_node(fdt);
}

static int fdt_put_virtio(void *fdt, unsigned int index)
{
	const fdt32_t interrupt[2] = {cpu_to_fdt32(LAYOUT_FIRST_GSI + index),
				      cpu_to_fdt32(INTERRUPT_EDGE_RISING)};
	uint64_t gpa = LAYOUT_DEVICES + index * LAYOUT_DEVICE_SIZE;
	char name[32];
	int error;

	snprintf(name, sizeof(name), "virtio@%llx", (unsigned long long)gpa);
	error = fdt_begin_node(fdt, name);
	error |= fdt_property_string(fdt, "compatible", "virtio,mmio");
	error |= fdt_put_reg(fdt, gpa, LAYOUT_DEVICE_SIZE);
	error |= fdt_property(fdt, "interrupts", interrupt, sizeof(interrupt));
	error |= fdt_property(fdt, "dma-coherent", NULL, 0);
	return error | fdt_end_node(fdt);
}

static int fdt_put_panic_device(void *fdt)
{
	char name[32];
	int error;

	snprintf(name, sizeof(name), "pvpanic@%lx", LAYOUT_PANIC_DEVICE);
	error = fdt_begin_node(fdt, name);
	error |= fdt_property_string(fdt, "compatible", "qemu,pvpanic-mmio");
	error |= fdt_put_reg(fdt, LAYOUT_PANIC_DEVICE, 2);
	return error | fdt_end_node(fdt);
}

int fdt_build(void *buffer, size_t capacity, unsigned int vcpu_count, unsigned int device_count)
{
	int error = fdt_create(buffer, (int)capacity);

	error |= fdt_finish_reservemap(buffer);
	error |= fdt_begin_node(buffer, "");
	error |= fdt_property_u32(buffer, "#address-cells", 2);
	error |= fdt_property_u32(buffer, "#size-cells", 2);
	error |= fdt_property_u32(buffer, "interrupt-parent", PHANDLE_IO_APIC);
	error |= fdt_property_string(buffer, "compatible", "mvagent,machine");
	error |= fdt_put_processors(buffer, vcpu_count);
	error |= fdt_put_interrupt_controllers(buffer);
	for (unsigned int index = 0; index < device_count; index++)
		error |= fdt_put_virtio(buffer, index);
	error |= fdt_put_panic_device(buffer);
	error |= fdt_end_node(buffer);
	error |= fdt_finish(buffer);
	return error ? -ENOSPC : (int)fdt_totalsize(buffer);
}
