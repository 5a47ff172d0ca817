/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"

/* The unit in which a file can be mapped: hugetlbfs gives its page size here and maps only at
 * multiples of it; others give something that does no harm. */
static uint64_t mapping_granularity(const struct stat *status)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t block = (uint64_t)status->st_blksize;

	return block > page && (block & (block - 1)) == 0 ? block : page;
}

static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int vhost_memory_add(struct vhost_memory *table, const struct vhost_memory_region *region, int fd)
{
	struct guest_memory_region added = {
		.gpa = region->gpa,
		.size = region->size,
		.user_address = region->user_address,
	};
	unsigned int index = table->memory.count;
	struct stat status;
	uint64_t start;
	size_t length;
	struct mapping mapping;
	int error;

	if (fstat(fd, &status) < 0)
		return -errno;
	/* A mapping beyond the end of its file is a SIGBUS at first touch. This also bounds offset
	 * and size, so that nothing below can wrap. */
	if (!S_ISREG(status.st_mode) ||
	    !bytes_range_fits(region->mmap_offset, region->size, (uint64_t)status.st_size))
		return -EINVAL;
	/* And it must stay so, whoever else has the file: a memfd can promise that. */
	if (!is_sealed(fd))
		return -EPERM;
	start = region->mmap_offset & ~(mapping_granularity(&status) - 1);
	length = region->size + (region->mmap_offset - start);
	if (region->size == 0)
		return -EINVAL;
	error = mapping_create(&mapping, fd, (off_t)start, length, mapping_granularity(&status));
	if (error)
		return error;
	added.host = mapping.host + (region->mmap_offset - start);
	error = guest_memory_add(&table->memory, &added);
	if (error) {
		mapping_destroy(&mapping);
		return error;
	}
	table->mappings[index] = mapping;
	return 0;
}

int vhost_memory_remove(struct vhost_memory *table, const struct vhost_memory_region *region)
{
	struct guest_memory *memory = &table->memory;

	for (unsigned int i = 0; i < memory->count; i++) {
		if (memory->regions[i].gpa != region->gpa ||
		    memory->regions[i].user_address != region->user_address ||
		    memory->regions[i].size != region->size)
			continue;
		mapping_destroy(&table->mappings[i]);
		memory->count--;
		memory->regions[i] = memory->regions[memory->count];
		table->mappings[i] = table->mappings[memory->count];
		return 0;
	}
	return -ENOENT;
}

void vhost_memory_clear(struct vhost_memory *table)
{
	for (unsigned int i = 0; i < table->memory.count; i++)
		mapping_destroy(&table->mappings[i]);
	table->memory.count = 0;
}
