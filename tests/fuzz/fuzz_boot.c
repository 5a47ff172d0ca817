/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as guest kernel, initramfs and command line together: boot_load either refuses, or the
 * boot parameters that it leaves in guest memory describe memory that exists.
 */
#include <asm/bootparam.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/machine/boot.h"
#include "vmm/machine/layout.h"

#define MEMORY_BYTES (64ULL << 20)
#define LINE_BYTES   64U

static void require(int condition)
{
	if (!condition)
		abort();
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

static void check_parameters(const struct ram *ram, uint64_t entry)
{
	struct boot_params params;

	memcpy(&params, ram->host + LAYOUT_ZERO_PAGE, sizeof(params));
	require(params.e820_entries >= 2 && params.e820_entries < 8);
	for (unsigned int i = 0; i < params.e820_entries; i++)
		require(params.e820_table[i].addr + params.e820_table[i].size <= MEMORY_BYTES);
	require((uint64_t)params.hdr.ramdisk_image + params.hdr.ramdisk_size <= MEMORY_BYTES);
	require(params.hdr.setup_data == LAYOUT_RNG_SEED);
	require(strnlen((const char *)ram->host + LAYOUT_COMMAND_LINE, LIMIT_COMMAND_LINE) <
		LIMIT_COMMAND_LINE);
	require(entry >= LAYOUT_HIGH_RAM && entry < MEMORY_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Byte 0: how much of the rest is the initramfs (in 1/256); then a command line; then kernel and
 * initramfs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct boot_inputs inputs = {.device_tree = data};
	char line[LINE_BYTES + 1] = {0};
	struct ram ram;
	uint64_t entry;
	size_t kernel;

	if (size < 1 + LINE_BYTES)
		return 0;
	memcpy(line, data + 1, LINE_BYTES);
	kernel = (size - 1 - LINE_BYTES) - (size - 1 - LINE_BYTES) * data[0] / 256;
	inputs.command_line = line;
	inputs.device_tree_size = (uint32_t)(size < 4096 ? size : 4096);
	inputs.kernel_fd = file_of(data + 1 + LINE_BYTES, kernel);
	inputs.initrd_fd = file_of(data + 1 + LINE_BYTES + kernel, size - 1 - LINE_BYTES - kernel);
	require(ram_create(&ram, MEMORY_BYTES) == 0);
	if (boot_load(&ram, &inputs, &entry) == 0)
		check_parameters(&ram, entry);
	ram_destroy(&ram);
	close(inputs.kernel_fd);
	close(inputs.initrd_fd);
	return 0;
}
