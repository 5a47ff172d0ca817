/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a guest kernel: whatever is accepted lies inside guest memory and has its entry
 * there. */
#include <stdint.h>
#include <stdlib.h>

#include "vmm/machine/elf.h"

#define MEMORY_LIMIT (64ULL << 20)

static void require(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image image;
	const char *complaint;
	int found = 0;

	if (size > ELF_HEADER_BYTES)
		size = ELF_HEADER_BYTES;
	if (elf_parse(data, size, MEMORY_LIMIT, &image, &complaint) != 0) {
		require(complaint != NULL);
		return 0;
	}
	require(image.segment_count > 0 && image.segment_count <= LIMIT_KERNEL_SEGMENTS);
	for (unsigned int i = 0; i < image.segment_count; i++) {
		const struct elf_segment *segment = &image.segments[i];

		require(segment->gpa >= (1U << 20));
		require(segment->gpa <= MEMORY_LIMIT &&
			segment->size <= MEMORY_LIMIT - segment->gpa);
		require(segment->file_size <= segment->size);
		require(segment->gpa + segment->size <= image.end);
		found |= image.entry >= segment->gpa && image.entry - segment->gpa < segment->size;
	}
	require(found);
	return 0;
}
