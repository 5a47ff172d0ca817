/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/boot.h"

#include <asm/bootparam.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/machine/elf.h"
#include "vmm/machine/layout.h"

#define PAGE_BYTES 4096U

/* "Boot protocol magic" and values that a boot loader sets (boot.rst, real-mode header). */
#define HEADER_MAGIC       0x53726448U
#define LOADER_UNDEFINED   0xffU
#define E820_RAM           1U
#define SELECTOR_CODE      0x10U /* __BOOT_CS */
#define SELECTOR_DATA      0x18U /* __BOOT_DS */
#define PAGE_PRESENT_WRITE 0x3ULL
#define PAGE_LARGE         0x80ULL

static int boot_load_kernel(const struct ram *ram, int fd, struct elf_image *image)
{
	const struct guest_memory_region *low = &ram->memory.regions[0];
	const char *complaint;
	uint8_t bytes[ELF_HEADER_BYTES];
	ssize_t length = pread(fd, bytes, sizeof(bytes), 0);
	int error;

	if (length < 0)
		return log_errno(-errno, "cannot read the guest kernel");
	error = elf_parse(bytes, (size_t)length, low->size, image, &complaint);
	if (error) {
		log_error("the guest kernel cannot be used: %s", complaint);
		return error;
	}
	error = elf_load(image, fd, &ram->memory);
	return error ? log_errno(error, "cannot load the guest kernel") : 0;
}

/* The initramfs goes to the end of low memory, where the kernel's own early allocations do not
 * reach. */
static int boot_load_initrd(const struct ram *ram, int fd, uint64_t kernel_end,
			    struct boot_params *params)
{
	const struct guest_memory_region *low = &ram->memory.regions[0];
	struct stat status;
	uint64_t size, gpa;
	int error;

	if (fstat(fd, &status) < 0)
		return log_errno(-errno, "cannot look at the initramfs");
	size = (uint64_t)status.st_size;
	if (size == 0 || size > low->size / 2 ||
	    low->size - bytes_align_up(size, PAGE_BYTES) < kernel_end) {
		log_error("the initramfs of %llu bytes does not fit into guest memory; give the "
			  "machine more --memory",
			  (unsigned long long)size);
		return -EFBIG;
	}
	gpa = low->size - bytes_align_up(size, PAGE_BYTES);
	error = fd_pread_full(fd, low->host + gpa, size, 0);
	if (error)
		return log_errno(error, "cannot load the initramfs");
	params->hdr.ramdisk_image = (uint32_t)gpa;
	params->hdr.ramdisk_size = (uint32_t)size;
	return 0;
}

static void boot_add_e820(struct boot_params *params, uint64_t gpa, uint64_t size)
{
	struct boot_e820_entry *entry = &params->e820_table[params->e820_entries++];

	*entry = (struct boot_e820_entry){.addr = gpa, .size = size, .type = E820_RAM};
}

static void boot_describe_memory(const struct ram *ram, struct boot_params *params)
{
	const struct guest_memory *memory = &ram->memory;

	boot_add_e820(params, 0, LAYOUT_LOW_RAM_END);
	boot_add_e820(params, LAYOUT_HIGH_RAM, memory->regions[0].size - LAYOUT_HIGH_RAM);
	for (unsigned int i = 1; i < memory->count; i++)
		boot_add_e820(params, memory->regions[i].gpa, memory->regions[i].size);
}

/* One node of the setup_data list: header and bytes, contiguous. */
static int boot_put_setup_data(const struct ram *ram, uint64_t gpa, uint64_t next, uint32_t type,
			       const void *bytes, uint32_t length)
{
	const struct setup_data header = {.next = next, .type = type, .len = length};
	int error = guest_memory_write(&ram->memory, gpa, &header, sizeof(header));

	return error ? error
		     : guest_memory_write(&ram->memory, gpa + sizeof(header), bytes, length);
}

/* Identity map of the first GiB in 2 MiB pages, and flat 64-bit segments. */
static int boot_put_tables(const struct ram *ram)
{
	/* Null, unused, code (L, execute/read, accessed), data (read/write, accessed). */
	static const uint64_t descriptors[4] = {0, 0, 0x00af9b000000ffffULL, 0x00cf93000000ffffULL};
	const uint64_t pml4 = LAYOUT_PAGE_DIRECTORY_POINTERS | PAGE_PRESENT_WRITE;
	const uint64_t pointers = LAYOUT_PAGE_DIRECTORY | PAGE_PRESENT_WRITE;
	uint64_t directory[512];
	int error;

	for (unsigned int i = 0; i < ARRAY_SIZE(directory); i++)
		directory[i] = ((uint64_t)i << 21) | PAGE_PRESENT_WRITE | PAGE_LARGE;
	error = guest_memory_write(&ram->memory, LAYOUT_GDT, descriptors, sizeof(descriptors));
	error |= guest_memory_write(&ram->memory, LAYOUT_PML4, &pml4, sizeof(pml4));
	error |= guest_memory_write(&ram->memory, LAYOUT_PAGE_DIRECTORY_POINTERS, &pointers,
				    sizeof(pointers));
	error |= guest_memory_write(&ram->memory, LAYOUT_PAGE_DIRECTORY, directory,
				    sizeof(directory));
	return error ? -EFAULT : 0;
}

static int boot_put_parameters(const struct ram *ram, const struct boot_inputs *inputs,
			       struct boot_params *params)
{
	size_t length = strlen(inputs->command_line);
	int error;

	if (length >= LIMIT_COMMAND_LINE) {
		log_error("the kernel command line has %zu bytes; the kernel takes %d", length,
			  LIMIT_COMMAND_LINE - 1);
		return -E2BIG;
	}
	if (inputs->device_tree_size > LAYOUT_DEVICE_TREE_MAX - sizeof(struct setup_data))
		return -E2BIG;
	params->hdr.boot_flag = 0xaa55;
	params->hdr.header = HEADER_MAGIC;
	params->hdr.type_of_loader = LOADER_UNDEFINED;
	params->hdr.cmd_line_ptr = (uint32_t)LAYOUT_COMMAND_LINE;
	params->hdr.cmdline_size = (uint32_t)length;
	params->hdr.setup_data = LAYOUT_RNG_SEED;
	boot_describe_memory(ram, params);

	error = guest_memory_write(&ram->memory, LAYOUT_COMMAND_LINE, inputs->command_line,
				   length + 1);
	error |= boot_put_setup_data(ram, LAYOUT_RNG_SEED, LAYOUT_DEVICE_TREE, SETUP_RNG_SEED,
				     inputs->rng_seed, sizeof(inputs->rng_seed));
	error |= boot_put_setup_data(ram, LAYOUT_DEVICE_TREE, 0, SETUP_DTB, inputs->device_tree,
				     inputs->device_tree_size);
	error |= guest_memory_write(&ram->memory, LAYOUT_ZERO_PAGE, params, sizeof(*params));
	return error ? -EFAULT : 0;
}

int boot_load(const struct ram *ram, const struct boot_inputs *inputs, uint64_t *entry)
{
	struct boot_params params = {0};
	struct elf_image image = {0};
	int error;

	error = boot_load_kernel(ram, inputs->kernel_fd, &image);
	if (error)
		return error;
	error = boot_load_initrd(ram, inputs->initrd_fd, image.end, &params);
	if (error)
		return error;
	error = boot_put_parameters(ram, inputs, &params);
	if (!error)
		error = boot_put_tables(ram);
	if (error)
		return log_errno(error, "cannot lay out the boot data");
	*entry = image.entry;
	return 0;
}

static struct kvm_segment boot_segment(uint16_t selector, uint8_t type, bool code)
{
	return (struct kvm_segment){
		.base = 0,
		.limit = 0xffffffff,
		.selector = selector,
		.type = type,
		.present = 1,
		.db = !code,
		.s = 1,
		.l = code,
		.g = 1,
	};
}

void boot_set_registers(uint64_t entry, struct kvm_regs *regs, struct kvm_sregs *sregs)
{
	struct kvm_segment code = boot_segment(SELECTOR_CODE, 0xb, true);
	struct kvm_segment data = boot_segment(SELECTOR_DATA, 0x3, false);

	memset(regs, 0, sizeof(*regs));
	regs->rflags = 0x2; /* the bit that is always set; interrupts are off (boot.rst, 64-bit) */
	regs->rip = entry;
	regs->rsp = LAYOUT_STACK;
	regs->rbp = LAYOUT_STACK;
	regs->rsi = LAYOUT_ZERO_PAGE;

	sregs->cs = code;
	sregs->ds = sregs->es = sregs->fs = sregs->gs = sregs->ss = data;
	sregs->gdt.base = LAYOUT_GDT;
	sregs->gdt.limit = 4 * sizeof(uint64_t) - 1;
	sregs->idt.base = 0;
	sregs->idt.limit = 0;
	sregs->cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	sregs->cr3 = LAYOUT_PML4;
	sregs->cr4 = 0x20;   /* PAE */
	sregs->efer = 0x500; /* LMA, LME */
}
