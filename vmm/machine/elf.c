/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/machine/layout.h"

static const char *elf_check_header(const Elf64_Ehdr *header, size_t length)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return "it is not an ELF file (an uncompressed vmlinux is wanted, not a bzImage)";
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_machine != EM_X86_64)
		return "it is not for x86-64";
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return "it is not an executable";
	if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0)
		return "it has no program headers";
	if (!bytes_range_fits(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr),
			      length))
		return "its program headers are not at its start";
	return NULL;
}

static const char *elf_add_segment(const Elf64_Phdr *program, uint64_t memory_limit,
				   struct elf_image *image)
{
	struct elf_segment *segment;

	if (program->p_type != PT_LOAD || program->p_memsz == 0)
		return NULL;
	if (image->segment_count == LIMIT_KERNEL_SEGMENTS)
		return "it has too many segments";
	if (program->p_filesz > program->p_memsz ||
	    program->p_offset + program->p_filesz < program->p_offset ||
	    program->p_offset + program->p_filesz > INT64_MAX)
		return "a segment has impossible sizes";
	if (program->p_paddr < LAYOUT_HIGH_RAM ||
	    !bytes_range_fits(program->p_paddr, program->p_memsz, memory_limit))
		return "a segment does not fit into guest memory; give the machine more --memory";
	for (unsigned int i = 0; i < image->segment_count; i++) {
		if (bytes_ranges_overlap(program->p_paddr, program->p_memsz, image->segments[i].gpa,
					 image->segments[i].size))
			return "its segments overlap";
	}
	segment = &image->segments[image->segment_count++];
	*segment = (struct elf_segment){program->p_offset, program->p_paddr, program->p_filesz,
					program->p_memsz};
	if (program->p_paddr + program->p_memsz > image->end)
		image->end = program->p_paddr + program->p_memsz;
	return NULL;
}

static bool elf_contains(const struct elf_image *image, uint64_t gpa)
{
	for (unsigned int i = 0; i < image->segment_count; i++) {
		if (gpa >= image->segments[i].gpa &&
		    gpa - image->segments[i].gpa < image->segments[i].file_size)
			return true;
	}
	return false;
}

int elf_parse(const uint8_t *bytes, size_t length, uint64_t memory_limit, struct elf_image *image,
	      const char **complaint)
{
	Elf64_Ehdr header;

	memset(image, 0, sizeof(*image));
	*complaint = "it is too short";
	if (length < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, bytes, sizeof(header));
	*complaint = elf_check_header(&header, length);
	if (*complaint)
		return -ENOEXEC;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr program;

		memcpy(&program, bytes + header.e_phoff + i * sizeof(program), sizeof(program));
		*complaint = elf_add_segment(&program, memory_limit, image);
		if (*complaint)
			return -ENOEXEC;
	}
	image->entry = header.e_entry;
	if (!elf_contains(image, image->entry)) {
		*complaint = "its entry point is in none of its segments";
		return -ENOEXEC;
	}
	return 0;
}

int elf_load(const struct elf_image *image, int fd, const struct guest_memory *memory)
{
	for (unsigned int i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segments[i];
		void *target;
		int error;

		if (segment->file_size == 0)
			continue;
		target = guest_memory_at(memory, segment->gpa, segment->size);
		if (!target)
			return -EFAULT;
		error = fd_pread_full(fd, target, segment->file_size, (off_t)segment->offset);
		if (error)
			return error;
	}
	return 0;
}
