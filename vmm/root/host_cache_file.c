/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_cache_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/root/erofs_format.h"

enum part { PART_KEY, PART_METADATA, PART_NODES, PART_EXTENTS, PART_POOL, PART_COUNT };

/* At the beginning of the file. Parts follow in their order, each at the next whole page. */
struct file_header {
	char magic[16];
	uint64_t part_bytes[PART_COUNT];
	struct erofs_layout layout;
	struct host_counts counts;
	uint8_t metadata_hash[SHA256_BYTES];
};

static const char magic[16] = "mvagent root 2\n";

#define PAGE_BYTES 4096U

static uint64_t offset_of(const struct file_header *header, unsigned int part)
{
	uint64_t offset = PAGE_BYTES;

	for (unsigned int i = 0; i < part; i++)
		offset += bytes_align_up(header->part_bytes[i], PAGE_BYTES);
	return offset;
}

/* None of the parts is longer than it can be, all of them are there, and it is about @key. */
static bool header_is_good(const struct file_header *header, uint64_t file_bytes,
			   const uint8_t *file, const char *key, size_t key_length)
{
	const uint64_t *bytes = header->part_bytes;

	if (memcmp(header->magic, magic, sizeof(magic)) != 0)
		return false;
	for (unsigned int i = 0; i < PART_COUNT; i++) {
		if (bytes[i] > file_bytes)
			return false;
	}
	return offset_of(header, PART_COUNT) == file_bytes && bytes[PART_KEY] == key_length &&
	       memcmp(file + offset_of(header, PART_KEY), key, key_length) == 0 &&
	       bytes[PART_METADATA] == header->layout.metadata_bytes &&
	       bytes[PART_METADATA] % EROFS_BLOCK_BYTES == 0 &&
	       bytes[PART_NODES] % sizeof(struct tree_node) == 0 &&
	       bytes[PART_NODES] / sizeof(struct tree_node) <= LIMIT_ROOT_NODES &&
	       bytes[PART_EXTENTS] % sizeof(struct host_extent) == 0 &&
	       bytes[PART_EXTENTS] / sizeof(struct host_extent) <= LIMIT_ROOT_NODES &&
	       bytes[PART_POOL] <= LIMIT_ROOT_POOL_BYTES;
}

int host_cache_file_map(int fd, const char *key, size_t key_length, struct host_image *image)
{
	struct file_header header;
	struct stat status;
	uint8_t *file;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (status.st_size < PAGE_BYTES)
		return -EINVAL;
	/* All of it is looked at anyway: mapping it at once saves thousands of faults. */
	file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (file == MAP_FAILED)
		return -errno;
	memcpy(&header, file, sizeof(header));
	if (!header_is_good(&header, (uint64_t)status.st_size, file, key, key_length)) {
		munmap(file, (size_t)status.st_size);
		return -EINVAL;
	}
	*image = (struct host_image){
		.tree =
			{
				.nodes = (void *)(file + offset_of(&header, PART_NODES)),
				.node_count = (uint32_t)(header.part_bytes[PART_NODES] /
							 sizeof(struct tree_node)),
				.pool = (void *)(file + offset_of(&header, PART_POOL)),
				.pool_bytes = (uint32_t)header.part_bytes[PART_POOL],
			},
		.layout = header.layout,
		.counts = header.counts,
		.metadata = file + offset_of(&header, PART_METADATA),
		.extents = (void *)(file + offset_of(&header, PART_EXTENTS)),
		.extent_count =
			(uint32_t)(header.part_bytes[PART_EXTENTS] / sizeof(struct host_extent)),
		.mapping = file,
		.mapping_bytes = (size_t)status.st_size,
	};
	memcpy(image->metadata_hash, header.metadata_hash, sizeof(image->metadata_hash));
	return 0;
}

int host_cache_file_write(int fd, const char *key, size_t key_length,
			  const struct host_image *image)
{
	static const uint8_t zeros[PAGE_BYTES];
	const void *const parts[PART_COUNT] = {
		[PART_KEY] = key,
		[PART_METADATA] = image->metadata,
		[PART_NODES] = image->tree.nodes,
		[PART_EXTENTS] = image->extents,
		[PART_POOL] = image->tree.pool,
	};
	struct file_header header = {
		.part_bytes =
			{
				[PART_KEY] = key_length,
				[PART_METADATA] = image->layout.metadata_bytes,
				[PART_NODES] = image->tree.node_count * sizeof(struct tree_node),
				[PART_EXTENTS] = image->extent_count * sizeof(struct host_extent),
				[PART_POOL] = image->tree.pool_bytes,
			},
		.layout = image->layout,
		.counts = image->counts,
	};
	int error;

	memcpy(header.metadata_hash, image->metadata_hash, sizeof(header.metadata_hash));
	memcpy(header.magic, magic, sizeof(magic));
	error = fd_write_full(fd, &header, sizeof(header));
	if (!error)
		error = fd_write_full(fd, zeros, PAGE_BYTES - sizeof(header));
	for (unsigned int i = 0; i < PART_COUNT && !error; i++) {
		uint64_t bytes = header.part_bytes[i];

		error = fd_write_full(fd, parts[i], bytes);
		if (!error)
			error = fd_write_full(fd, zeros, bytes_align_up(bytes, PAGE_BYTES) - bytes);
	}
	return error;
}

/* Removes the one that was made first, if there are as many as may be. Whether it did. */
static bool remove_oldest(DIR *directory)
{
	char oldest[NAME_MAX + 1] = "";
	struct timespec oldest_time = {0};
	const struct dirent *entry;
	unsigned int count = 0;

	rewinddir(directory);
	while ((entry = readdir(directory))) {
		struct stat status;

		if (strncmp(entry->d_name, HOST_CACHE_PREFIX, strlen(HOST_CACHE_PREFIX)) != 0 ||
		    fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		count++;
		if (!oldest[0] || status.st_mtim.tv_sec < oldest_time.tv_sec ||
		    (status.st_mtim.tv_sec == oldest_time.tv_sec &&
		     status.st_mtim.tv_nsec < oldest_time.tv_nsec)) {
			memcpy(oldest, entry->d_name, sizeof(oldest));
			oldest_time = status.st_mtim;
		}
	}
	return count >= HOST_CACHE_FILES && unlinkat(dirfd(directory), oldest, 0) == 0;
}

void host_cache_file_prune(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory) {
		fd_close(&fd);
		return;
	}
	while (remove_oldest(directory))
		;
	closedir(directory);
}
