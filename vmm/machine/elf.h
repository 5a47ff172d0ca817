/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an ELF64 vmlinux that a loader needs. */
#ifndef MVAGENT_MACHINE_ELF_H
#define MVAGENT_MACHINE_ELF_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/virtio/memory.h"

/* The ELF header and all program headers must lie in this many bytes at the start of the file. */
#define ELF_HEADER_BYTES 4096U

struct elf_segment {
	uint64_t offset;    /* in the file */
	uint64_t gpa;       /* p_paddr */
	uint64_t file_size; /* bytes to copy */
	uint64_t size;      /* bytes in memory; the rest is zero */
};

struct elf_image {
	uint64_t entry; /* guest physical address of the first instruction */
	uint64_t end;   /* first byte after the highest segment */
	unsigned int segment_count;
	struct elf_segment segments[LIMIT_KERNEL_SEGMENTS];
};

/* Parses the first @length bytes of a file. Pure. Returns 0, or -ENOEXEC when it is not an x86-64
 * ELF executable whose segments fit between 1 MiB and @memory_limit without wrapping, with its
 * entry in one of them; *@complaint then says what is wrong. */
int elf_parse(const uint8_t *bytes, size_t length, uint64_t memory_limit, struct elf_image *image,
	      const char **complaint);

/* Copies the segments of the file @fd into guest memory (zero until now). 0 or -errno. */
int elf_load(const struct elf_image *image, int fd, const struct guest_memory *memory);

#endif
