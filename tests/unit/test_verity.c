/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of hashes behind an image, also as veritysetup of cryptsetup reads it. */
#include "vmm/root/verity.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/erofs_image.h"
#include "vmm/base/bytes.h"
#include "vmm/base/digest.h"

static char path[] = "/tmp/mvagent-verity-XXXXXX";
static int fd;

static int make_file(void **state)
{
	(void)state;
	fd = mkostemp(path, O_CLOEXEC);
	return fd < 0 ? -1 : 0;
}

static int remove_file(void **state)
{
	(void)state;
	close(fd);
	return unlink(path);
}

static void fill_block(uint64_t index, uint8_t *block)
{
	for (unsigned int i = 0; i < VERITY_BLOCK_BYTES; i++)
		block[i] = index % 5 ? (uint8_t)(index * 7 + i * 13 + index / 256) : 0;
}

/* Writes @count blocks and their tree. */
static void make_image(uint64_t count, struct verity_layout *layout, uint8_t *root)
{
	uint8_t block[VERITY_BLOCK_BYTES];

	assert_int_equal(ftruncate(fd, 0), 0);
	for (uint64_t i = 0; i < count; i++) {
		fill_block(i, block);
		assert_int_equal(pwrite(fd, block, sizeof(block), (off_t)(i * sizeof(block))),
				 sizeof(block));
	}
	verity_lay_out(count, layout);
	assert_int_equal(verity_write(fd, layout, root), 0);
}

static int check_all(struct verity *verity, uint64_t count)
{
	uint8_t block[VERITY_BLOCK_BYTES];
	int error = 0;

	for (uint64_t i = count; i-- > 0 && !error;) {
		assert_int_equal(
			fd_pread_full(fd, block, sizeof(block), (off_t)(i * sizeof(block))), 0);
		error = verity_check(verity, i, block);
	}
	return error;
}

static void veritysetup_reads_what_we_write(void **state)
{
	static const uint64_t counts[] = {2, 127, 128, 129, 300, 16384, 16385};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct verity_layout layout;
		struct verity *verity;
		uint8_t root[SHA256_BYTES];
		char text[DIGEST_TEXT_BYTES];

		make_image(counts[i], &layout, root);
		digest_to_text(root, text);
		assert_int_equal(shell(NULL, "veritysetup verify %s %s %s --hash-offset=%llu 2>&1",
				       path, path, text + 7, (unsigned long long)counts[i] * 4096),
				 0);
		assert_int_equal(lseek(fd, 0, SEEK_END), layout.end_block * 4096);
		assert_int_equal(verity_open(&verity, fd, &layout, root), 0);
		assert_int_equal(check_all(verity, counts[i]), 0);
		verity_close(verity);
	}
}

static void every_changed_byte_is_found(void **state)
{
	const uint64_t count = 300;
	struct verity_layout layout;
	struct verity *verity;
	uint8_t root[SHA256_BYTES], byte;

	(void)state;
	make_image(count, &layout, root);
	for (uint64_t at = 5; at < layout.end_block * 4096; at += 4093) {
		bool is_used = at < count * 4096;

		/* Of the tree: the hashes, not the superblock or what is behind the last hash. */
		for (unsigned int level = 0; level < layout.levels; level++) {
			uint64_t start = layout.level_start[level] * 4096;
			uint64_t hashes = level ? layout.level_blocks[level - 1] : count;

			is_used |= at >= start && at < start + hashes * SHA256_BYTES;
		}
		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		assert_int_equal(verity_open(&verity, fd, &layout, root), 0);
		/* What is behind the hashes is in their block, too. */
		if (is_used)
			assert_int_equal(check_all(verity, count), -EBADMSG);
		verity_close(verity);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	}
	root[31] ^= 1;
	assert_int_equal(verity_open(&verity, fd, &layout, root), 0);
	assert_int_equal(check_all(verity, count), -EBADMSG);
	verity_close(verity);
}

static void a_change_after_it_was_known_changes_nothing(void **state)
{
	struct verity_layout layout;
	struct verity *verity;
	uint8_t root[SHA256_BYTES], block[VERITY_BLOCK_BYTES] = {1};

	(void)state;
	make_image(300, &layout, root);
	assert_int_equal(verity_open(&verity, fd, &layout, root), 0);
	assert_int_equal(check_all(verity, 300), 0);
	/* The hashes in the file are of no more interest. */
	for (uint64_t i = 301; i < layout.end_block; i++)
		assert_int_equal(pwrite(fd, block, sizeof(block), (off_t)(i * 4096)),
				 sizeof(block));
	assert_int_equal(check_all(verity, 300), 0);
	assert_int_equal(verity_check(verity, 7, block), -EBADMSG);
	verity_close(verity);
}

static void a_single_block_is_its_own_root(void **state)
{
	struct verity_layout layout;
	struct verity *verity;
	uint8_t root[SHA256_BYTES], wanted[SHA256_BYTES], block[VERITY_BLOCK_BYTES];

	(void)state;
	make_image(1, &layout, root);
	fill_block(0, block);
	sha256_of(block, sizeof(block), wanted);
	assert_memory_equal(root, wanted, sizeof(root));
	assert_int_equal(verity_open(&verity, fd, &layout, root), 0);
	assert_int_equal(check_all(verity, 1), 0);
	block[9]++;
	assert_int_equal(verity_check(verity, 0, block), -EBADMSG);
	verity_close(verity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(veritysetup_reads_what_we_write),
		cmocka_unit_test(every_changed_byte_is_found),
		cmocka_unit_test(a_change_after_it_was_known_changes_nothing),
		cmocka_unit_test(a_single_block_is_its_own_root),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
