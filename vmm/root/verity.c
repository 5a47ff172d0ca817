/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/verity.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "vmm/base/fd.h"

#define HASHES_OF_BLOCK (VERITY_BLOCK_BYTES / SHA256_BYTES)

/* How many blocks are read at once when a tree is made. */
#define BLOCKS_AT_ONCE 64U

static const uint8_t zeros[VERITY_BLOCK_BYTES];

/* dm-verity's superblock, as veritysetup(8) writes it (cryptsetup, lib/verity/verity.c). */
struct verity_superblock {
	char signature[8];
	uint32_t version;
	uint32_t hash_type;
	uint8_t uuid[16];
	char algorithm[32];
	uint32_t data_block_bytes;
	uint32_t hash_block_bytes;
	uint64_t data_blocks;
	uint16_t salt_bytes;
	uint8_t reserved[6];
	uint8_t salt[256];
	uint8_t reserved2[168];
};
static_assert(sizeof(struct verity_superblock) == 512, "as on disk");

struct verity {
	int fd;
	struct verity_layout layout;
	uint8_t root[SHA256_BYTES];
	uint8_t *blocks; /* of all levels; from level_start of the topmost one on */
	size_t bytes;
	uint8_t *known; /* for each: read, and as its parent says */
};

static uint64_t first_block(const struct verity_layout *layout)
{
	return layout->data_blocks + 1;
}

void verity_lay_out(uint64_t data_blocks, struct verity_layout *layout)
{
	uint64_t below = data_blocks;

	*layout = (struct verity_layout){.data_blocks = data_blocks};
	while (below > 1) {
		below = below / HASHES_OF_BLOCK + (below % HASHES_OF_BLOCK != 0);
		layout->level_blocks[layout->levels++] = below;
	}
	layout->end_block = first_block(layout);
	for (unsigned int level = layout->levels; level-- > 0;) {
		layout->level_start[level] = layout->end_block;
		layout->end_block += layout->level_blocks[level];
	}
}

static int write_block(int fd, uint64_t index, const void *block)
{
	size_t done = 0;

	while (done < VERITY_BLOCK_BYTES) {
		ssize_t count = pwrite(fd, (const uint8_t *)block + done, VERITY_BLOCK_BYTES - done,
				       (off_t)(index * VERITY_BLOCK_BYTES + done));

		if (count < 0 && errno != EINTR)
			return -errno;
		if (count > 0)
			done += (size_t)count;
	}
	return 0;
}

static int write_superblock(int fd, const struct verity_layout *layout)
{
	uint8_t block[VERITY_BLOCK_BYTES] = {0};
	const struct verity_superblock superblock = {
		.signature = "verity",
		.version = htole32(1),
		.hash_type = htole32(1),
		.uuid = "mvagent verity1",
		.algorithm = "sha256",
		.data_block_bytes = htole32(VERITY_BLOCK_BYTES),
		.hash_block_bytes = htole32(VERITY_BLOCK_BYTES),
		.data_blocks = htole64(layout->data_blocks),
	};

	memcpy(block, &superblock, sizeof(superblock));
	return write_block(fd, layout->data_blocks, block);
}

/* Images may have long holes: what a block of zeros hashes to is computed once. */
static void hash_block(const uint8_t *block, const uint8_t of_zeros[SHA256_BYTES],
		       uint8_t digest[SHA256_BYTES])
{
	if (memcmp(block, zeros, sizeof(zeros)) == 0)
		memcpy(digest, of_zeros, SHA256_BYTES);
	else
		sha256_of(block, VERITY_BLOCK_BYTES, digest);
}

/* Writes one level: the hashes of @count blocks from @from on. */
static int write_level(int fd, uint64_t from, uint64_t count, uint64_t to, uint8_t *buffer)
{
	uint8_t hashes[VERITY_BLOCK_BYTES], of_zeros[SHA256_BYTES];
	size_t used = 0;

	sha256_of(zeros, sizeof(zeros), of_zeros);
	for (uint64_t done = 0; done < count;) {
		uint64_t blocks = count - done < BLOCKS_AT_ONCE ? count - done : BLOCKS_AT_ONCE;
		int error = fd_pread_full(fd, buffer, blocks * VERITY_BLOCK_BYTES,
					  (off_t)((from + done) * VERITY_BLOCK_BYTES));

		for (uint64_t i = 0; i < blocks && !error; i++) {
			hash_block(buffer + i * VERITY_BLOCK_BYTES, of_zeros,
				   hashes + used * SHA256_BYTES);
			done++;
			if (++used < HASHES_OF_BLOCK && done < count)
				continue;
			memset(hashes + used * SHA256_BYTES, 0,
			       VERITY_BLOCK_BYTES - used * SHA256_BYTES);
			error = write_block(fd, to++, hashes);
			used = 0;
		}
		if (error)
			return error;
	}
	return 0;
}

int verity_write(int fd, const struct verity_layout *layout, uint8_t root[SHA256_BYTES])
{
	uint8_t *buffer = malloc((size_t)BLOCKS_AT_ONCE * VERITY_BLOCK_BYTES);
	uint64_t from = 0, count = layout->data_blocks;
	int error = buffer ? write_superblock(fd, layout) : -ENOMEM;

	for (unsigned int level = 0; level < layout->levels && !error; level++) {
		error = write_level(fd, from, count, layout->level_start[level], buffer);
		from = layout->level_start[level];
		count = layout->level_blocks[level];
	}
	if (!error)
		error = fd_pread_full(fd, buffer, VERITY_BLOCK_BYTES,
				      (off_t)(from * VERITY_BLOCK_BYTES));
	if (!error)
		sha256_of(buffer, VERITY_BLOCK_BYTES, root);
	free(buffer);
	return error;
}

int verity_open(struct verity **verity, int fd, const struct verity_layout *layout,
		const uint8_t root[SHA256_BYTES])
{
	struct verity *opened = calloc(1, sizeof(*opened));
	uint64_t blocks = layout->end_block - first_block(layout);

	if (!opened)
		return -ENOMEM;
	opened->fd = fd;
	opened->layout = *layout;
	memcpy(opened->root, root, SHA256_BYTES);
	opened->bytes = blocks * VERITY_BLOCK_BYTES;
	opened->known = calloc(blocks + 1, 1);
	/* Pages that are not needed are not there. */
	opened->blocks = mmap(NULL, opened->bytes + VERITY_BLOCK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (opened->known && opened->blocks != MAP_FAILED) {
		*verity = opened;
		return 0;
	}
	if (opened->blocks == MAP_FAILED)
		opened->blocks = NULL;
	verity_close(opened);
	return -ENOMEM;
}

void verity_close(struct verity *verity)
{
	if (!verity)
		return;
	if (verity->blocks)
		munmap(verity->blocks, verity->bytes + VERITY_BLOCK_BYTES);
	free(verity->known);
	free(verity);
}

/* Compares a block with what block @index of @level is to be: @level 0 has the hashes of the data,
 * and the root those of the topmost one. Blocks above it are known. */
static int check_block(const struct verity *verity, unsigned int level, uint64_t index,
		       const uint8_t *block)
{
	const struct verity_layout *layout = &verity->layout;
	const uint8_t *wanted = verity->root;
	uint8_t digest[SHA256_BYTES];

	if (level < layout->levels) {
		uint64_t parent =
			layout->level_start[level] + index / HASHES_OF_BLOCK - first_block(layout);

		wanted = verity->blocks + parent * VERITY_BLOCK_BYTES +
			 index % HASHES_OF_BLOCK * SHA256_BYTES;
	}
	sha256_of(block, VERITY_BLOCK_BYTES, digest);
	return memcmp(digest, wanted, SHA256_BYTES) == 0 ? 0 : -EBADMSG;
}

/* Makes one block of the tree known. It is kept where nobody else can change it. */
static int learn_block(struct verity *verity, unsigned int level, uint64_t index)
{
	uint64_t place = verity->layout.level_start[level] + index;
	uint64_t number = place - first_block(&verity->layout);
	uint8_t *block = verity->blocks + number * VERITY_BLOCK_BYTES;
	int error;

	if (verity->known[number])
		return 0;
	error = fd_pread_full(verity->fd, block, VERITY_BLOCK_BYTES,
			      (off_t)(place * VERITY_BLOCK_BYTES));
	if (!error)
		error = check_block(verity, level + 1, index, block);
	verity->known[number] = !error;
	return error == -ENODATA ? -EBADMSG : error;
}

int verity_check(struct verity *verity, uint64_t index, const uint8_t *data)
{
	uint64_t path[VERITY_LEVELS_MAX];
	uint64_t block = index;
	int error = 0;

	for (unsigned int level = 0; level < verity->layout.levels; level++) {
		block /= HASHES_OF_BLOCK;
		path[level] = block;
	}
	for (unsigned int level = verity->layout.levels; level-- > 0 && !error;)
		error = learn_block(verity, level, path[level]);
	return error ? error : check_block(verity, 0, index, data);
}
