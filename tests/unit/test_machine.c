/* SPDX-License-Identifier: Apache-2.0 */
/* ELF loading, boot parameters, device tree and CPUID: what a guest finds before its first
 * instruction. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <asm/bootparam.h>
#include <asm/kvm_para.h>
#include <elf.h>
#include <errno.h>
#include <libfdt.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/machine/boot.h"
#include "vmm/machine/cpuid.h"
#include "vmm/machine/elf.h"
#include "vmm/machine/fdt.h"
#include "vmm/machine/layout.h"

#define MEBIBYTE (1ULL << 20)

struct small_kernel {
	Elf64_Ehdr header;
	Elf64_Phdr programs[2];
	uint8_t text[64];
};

/* A vmlinux of two segments: 64 bytes of text at 16 MiB, 4 KiB of zeroes at 17 MiB. */
static struct small_kernel make_kernel(void)
{
	struct small_kernel kernel = {
		.header = {.e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_entry = 16 * MEBIBYTE + 8,
			   .e_phoff = offsetof(struct small_kernel, programs),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.programs = {{.p_type = PT_LOAD,
			      .p_offset = offsetof(struct small_kernel, text),
			      .p_paddr = 16 * MEBIBYTE,
			      .p_filesz = 64,
			      .p_memsz = 64},
			     {.p_type = PT_LOAD, .p_paddr = 17 * MEBIBYTE, .p_memsz = 4096}},
	};

	memcpy(kernel.header.e_ident, ELFMAG, SELFMAG);
	kernel.header.e_ident[EI_CLASS] = ELFCLASS64;
	kernel.header.e_ident[EI_DATA] = ELFDATA2LSB;
	memset(kernel.text, 0x90, sizeof(kernel.text));
	return kernel;
}

static int parse(const struct small_kernel *kernel, struct elf_image *image)
{
	const char *complaint;
	int error = elf_parse((const uint8_t *)kernel, sizeof(*kernel), 64 * MEBIBYTE, image,
			      &complaint);

	/* Every refusal has its words. */
	assert_int_equal(error != 0, complaint != NULL);
	return error;
}

static void elf_accepts_a_kernel(void **state)
{
	struct small_kernel kernel = make_kernel();
	struct elf_image image;

	(void)state;
	assert_int_equal(parse(&kernel, &image), 0);
	assert_int_equal(image.segment_count, 2);
	assert_int_equal(image.entry, 16 * MEBIBYTE + 8);
	assert_int_equal(image.end, 17 * MEBIBYTE + 4096);
}

static void elf_refuses_what_does_not_fit(void **state)
{
	struct small_kernel kernel;
	struct elf_image image;

	(void)state;
#define REFUSED(change)         \
	kernel = make_kernel(); \
	kernel.change;          \
	assert_int_equal(parse(&kernel, &image), -ENOEXEC)

	REFUSED(header.e_ident[0] = 'M');
	REFUSED(header.e_machine = EM_AARCH64);
	REFUSED(header.e_type = ET_REL);
	REFUSED(header.e_phnum = 0);
	REFUSED(header.e_phnum = 65535);
	REFUSED(header.e_phoff = UINT64_MAX);
	REFUSED(header.e_phentsize = 1);
	REFUSED(header.e_entry = 16 * MEBIBYTE + 64);
	REFUSED(programs[0].p_paddr = 0x1000);
	REFUSED(programs[0].p_paddr = 64 * MEBIBYTE - 1);
	REFUSED(programs[0].p_paddr = UINT64_MAX - 8);
	REFUSED(programs[0].p_filesz = 65);
	REFUSED(programs[0].p_offset = UINT64_MAX);
	REFUSED(programs[1].p_memsz = UINT64_MAX);
	REFUSED(programs[1].p_memsz = 48 * MEBIBYTE);
	REFUSED(programs[1].p_paddr = 16 * MEBIBYTE + 63);
#undef REFUSED
}

static void elf_refuses_short_files(void **state)
{
	struct small_kernel kernel = make_kernel();
	struct elf_image image;
	const char *complaint;

	(void)state;
	for (size_t length = 0; length < offsetof(struct small_kernel, text); length++)
		assert_int_equal(elf_parse((const uint8_t *)&kernel, length, 64 * MEBIBYTE, &image,
					   &complaint),
				 -ENOEXEC);
}

static int memory_file(const void *bytes, size_t length)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), (ssize_t)length);
	return fd;
}

static void boot_lays_out_what_the_protocol_says(void **state)
{
	struct small_kernel kernel = make_kernel();
	struct boot_inputs inputs = {
		.command_line = "panic=-1", .device_tree = "tree", .device_tree_size = 4};
	const struct boot_params *params;
	const struct setup_data *seed, *tree;
	struct ram ram;
	uint64_t entry;

	(void)state;
	assert_int_equal(ram_create(&ram, 64 * MEBIBYTE), 0);
	inputs.kernel_fd = memory_file(&kernel, sizeof(kernel));
	inputs.initrd_fd = memory_file("archive", 7);
	memset(inputs.rng_seed, 0xa5, sizeof(inputs.rng_seed));
	assert_int_equal(boot_load(&ram, &inputs, &entry), 0);
	assert_int_equal(entry, kernel.header.e_entry);
	assert_memory_equal(ram.host + 16 * MEBIBYTE, kernel.text, sizeof(kernel.text));

	params = (const struct boot_params *)(ram.host + LAYOUT_ZERO_PAGE);
	assert_string_equal((const char *)ram.host + params->hdr.cmd_line_ptr, "panic=-1");
	assert_int_equal(params->hdr.ramdisk_size, 7);
	assert_memory_equal(ram.host + params->hdr.ramdisk_image, "archive", 7);
	assert_int_equal(params->e820_entries, 2);
	assert_int_equal(params->e820_table[1].addr + params->e820_table[1].size, 64 * MEBIBYTE);
	seed = (const struct setup_data *)(ram.host + params->hdr.setup_data);
	assert_int_equal(seed->type, SETUP_RNG_SEED);
	assert_int_equal(seed->len, BOOT_RNG_SEED_BYTES);
	tree = (const struct setup_data *)(ram.host + seed->next);
	assert_int_equal(tree->type, SETUP_DTB);
	assert_memory_equal(tree->data, "tree", 4);
	assert_int_equal(tree->next, 0);
	close(inputs.kernel_fd);
	close(inputs.initrd_fd);
	ram_destroy(&ram);
}

static void boot_describes_memory_above_the_hole(void **state)
{
	struct small_kernel kernel = make_kernel();
	struct boot_inputs inputs = {.command_line = "", .device_tree = "", .device_tree_size = 0};
	const struct boot_params *params;
	struct ram ram;
	uint64_t entry;

	(void)state;
	assert_int_equal(ram_create(&ram, 5120 * MEBIBYTE), 0);
	inputs.kernel_fd = memory_file(&kernel, sizeof(kernel));
	inputs.initrd_fd = memory_file("a", 1);
	assert_int_equal(boot_load(&ram, &inputs, &entry), 0);
	params = (const struct boot_params *)(ram.host + LAYOUT_ZERO_PAGE);
	assert_int_equal(params->e820_entries, 3);
	assert_int_equal(params->e820_table[1].addr + params->e820_table[1].size,
			 LAYOUT_HOLE_START);
	assert_int_equal(params->e820_table[2].addr, LAYOUT_HOLE_END);
	assert_int_equal(params->e820_table[2].size, 2048 * MEBIBYTE);
	assert_true(params->hdr.ramdisk_image < LAYOUT_HOLE_START);
	close(inputs.kernel_fd);
	close(inputs.initrd_fd);
	ram_destroy(&ram);
}

static void boot_refuses_what_does_not_fit(void **state)
{
	static char line[LIMIT_COMMAND_LINE + 1];
	struct small_kernel kernel = make_kernel();
	struct boot_inputs inputs = {.command_line = line, .device_tree = ""};
	struct ram ram;
	uint64_t entry;

	(void)state;
	memset(line, 'x', LIMIT_COMMAND_LINE);
	assert_int_equal(ram_create(&ram, 64 * MEBIBYTE), 0);
	inputs.kernel_fd = memory_file(&kernel, sizeof(kernel));
	inputs.initrd_fd = memory_file("a", 1);
	assert_int_equal(boot_load(&ram, &inputs, &entry), -E2BIG);
	inputs.command_line = "";
	assert_int_equal(ftruncate(inputs.initrd_fd, 60 * MEBIBYTE), 0);
	assert_int_equal(boot_load(&ram, &inputs, &entry), -EFBIG);
	assert_int_equal(ftruncate(inputs.initrd_fd, 0), 0);
	assert_int_equal(boot_load(&ram, &inputs, &entry), -EFBIG);
	close(inputs.kernel_fd);
	close(inputs.initrd_fd);
	ram_destroy(&ram);
}

static void ram_cannot_change_its_size(void **state)
{
	struct ram ram;

	(void)state;
	assert_int_equal(ram_create(&ram, 64 * MEBIBYTE), 0);
	assert_int_equal(ftruncate(ram.fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(ram.fd, 128 * MEBIBYTE), -1);
	ram_destroy(&ram);
}

static int child_count(const void *tree, const char *prefix, const char *path)
{
	int parent = fdt_path_offset(tree, path), node, count = 0;

	fdt_for_each_subnode(node, tree, parent)
	{
		if (strncmp(fdt_get_name(tree, node, NULL), prefix, strlen(prefix)) == 0)
			count++;
	}
	return count;
}

static void fdt_describes_every_device_and_processor(void **state)
{
	static uint8_t tree[16384];
	const fdt32_t *interrupts;
	const void *reg; /* aligned to 4 bytes */
	int node, length;

	(void)state;
	assert_true(fdt_build(tree, sizeof(tree), LIMIT_VCPUS, LIMIT_MMIO_DEVICES) > 0);
	assert_int_equal(fdt_check_full(tree, sizeof(tree)), 0);
	assert_int_equal(child_count(tree, "cpu@", "/cpus"), LIMIT_VCPUS);
	assert_int_equal(child_count(tree, "virtio@", "/"), LIMIT_MMIO_DEVICES);
	node = fdt_path_offset(tree, "/virtio@d0001000");
	assert_true(node > 0);
	interrupts = fdt_getprop(tree, node, "interrupts", &length);
	assert_int_equal(length, 8);
	assert_int_equal(fdt32_to_cpu(interrupts[0]), LAYOUT_FIRST_GSI + 1);
	assert_int_equal(fdt32_to_cpu(interrupts[1]), 3);
	reg = fdt_getprop(tree, node, "reg", &length);
	assert_int_equal(fdt64_ld(reg), LAYOUT_DEVICES + LAYOUT_DEVICE_SIZE);
	assert_int_equal(fdt_build(tree, 512, 1, 1), -ENOSPC);
}

static struct cpuid_table make_table(void)
{
	static const struct kvm_cpuid_entry2 entries[] = {
		{.function = 0x1, .ecx = 1U << 5},
		{.function = 0x6},
		{.function = 0xa, .eax = 0x05300805},
		{.function = 0xb, .index = 0, .flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX},
		{.function = KVM_CPUID_FEATURES, .eax = 1U << KVM_FEATURE_CLOCKSOURCE2},
		{.function = 0x80000001, .ecx = 1U << 2},
		{.function = 0x80000008, .ecx = 0x7fff},
		{.function = 0x8000000a, .edx = 1},
	};
	struct cpuid_table table = {.header.nent = sizeof(entries) / sizeof(entries[0])};

	memcpy(table.entries, entries, sizeof(entries));
	return table;
}

static const struct kvm_cpuid_entry2 *entry_of(const struct cpuid_table *table, uint32_t function,
					       uint32_t index)
{
	for (uint32_t i = 0; i < table->header.nent; i++) {
		if (table->entries[i].function == function && table->entries[i].index == index)
			return &table->entries[i];
	}
	return NULL;
}

static void cpuid_fits_the_machine(void **state)
{
	struct cpuid_table table = make_table();
	const char *complaint;

	(void)state;
	assert_int_equal(cpuid_adjust(&table, 2, 3, true, &complaint), 0);
	assert_int_equal(entry_of(&table, 0x1, 0)->ebx >> 24, 2);
	assert_int_equal(entry_of(&table, 0x1, 0)->ebx >> 16 & 0xff, 3);
	/* Hypervisor and TSC deadline are shown, VMX is not. */
	assert_true(entry_of(&table, 0x1, 0)->ecx & (1U << 31));
	assert_true(entry_of(&table, 0x1, 0)->ecx & (1U << 24));
	assert_false(entry_of(&table, 0x1, 0)->ecx & (1U << 5));
	assert_true(entry_of(&table, 0x6, 0)->eax & (1U << 2));
	assert_int_equal(entry_of(&table, 0xa, 0)->eax, 0);
	assert_int_equal(entry_of(&table, 0x80000001, 0)->ecx, 0);
	assert_null(entry_of(&table, 0x8000000a, 0));
	assert_int_equal(entry_of(&table, 0x80000008, 0)->ecx & 0xff, 2);
	/* Topology: one thread a core, three cores numbered in two bits, x2APIC id 2. */
	assert_int_equal(entry_of(&table, 0xb, 0)->ebx, 1);
	assert_int_equal(entry_of(&table, 0xb, 1)->ebx, 3);
	assert_int_equal(entry_of(&table, 0xb, 1)->eax, 2);
	assert_int_equal(entry_of(&table, 0xb, 1)->edx, 2);
	assert_int_equal(entry_of(&table, 0xb, 2)->ebx, 0);
}

static void cpuid_refuses_hosts_that_cannot_boot_it(void **state)
{
	struct cpuid_table table = make_table();
	const char *complaint;

	(void)state;
	assert_int_equal(cpuid_adjust(&table, 0, 1, false, &complaint), -EOPNOTSUPP);
	assert_non_null(strstr(complaint, "deadline"));
	table = make_table();
	table.entries[4].eax = 0;
	assert_int_equal(cpuid_adjust(&table, 0, 1, true, &complaint), -EOPNOTSUPP);
	assert_non_null(strstr(complaint, "kvmclock"));
	table = make_table();
	table.header.nent = CPUID_MAX_ENTRIES;
	for (uint32_t i = 8; i < CPUID_MAX_ENTRIES; i++)
		table.entries[i].function = 0x40000100;
	table.entries[7].function = 0x40000100;
	assert_int_equal(cpuid_adjust(&table, 0, 1, true, &complaint), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_accepts_a_kernel),
		cmocka_unit_test(elf_refuses_what_does_not_fit),
		cmocka_unit_test(elf_refuses_short_files),
		cmocka_unit_test(boot_lays_out_what_the_protocol_says),
		cmocka_unit_test(boot_describes_memory_above_the_hole),
		cmocka_unit_test(boot_refuses_what_does_not_fit),
		cmocka_unit_test(ram_cannot_change_its_size),
		cmocka_unit_test(fdt_describes_every_device_and_processor),
		cmocka_unit_test(cpuid_fits_the_machine),
		cmocka_unit_test(cpuid_refuses_hosts_that_cannot_boot_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
