/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest gets of an image with a tree of hashes, piece by piece. */
#include "vmm/root/verified_image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/cli_capture.h"
#include "vmm/root/verity.h"

#define BLOCKS 200U
#define BYTES  (BLOCKS * VERITY_BLOCK_BYTES)

static uint8_t bytes[BYTES];
static unsigned int spoiled;

static void note_spoiled(void *context)
{
	assert_ptr_equal(context, &spoiled);
	spoiled++;
}

static int make_file(uint8_t root[SHA256_BYTES])
{
	struct verity_layout layout;
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 4096);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	verity_lay_out(BLOCKS, &layout);
	assert_int_equal(verity_write(fd, &layout, root), 0);
	spoiled = 0;
	return fd;
}

/* Reads a range as mvagent-blk does. 0 or the error of the piece that failed. */
static int read_range(const struct content *content, uint64_t offset, uint64_t length, uint8_t *to)
{
	while (length) {
		struct content_piece piece;
		int error = content->ops->begin(content->context, offset, length, &piece);

		if (error)
			return error;
		assert_true(piece.fd < 0 && piece.length && piece.length <= length);
		memcpy(to, piece.memory, piece.length);
		to += piece.length;
		offset += piece.length;
		length -= piece.length;
		assert_int_equal(content->ops->end(content->context, &piece, 0), 0);
	}
	return 0;
}

static void every_range_is_what_it_was(void **state)
{
	static const uint64_t ranges[][2] = {
		{0, 512},
		{512, 512},
		{3584, 1024},
		{0, BYTES},
		{BYTES - 512, 512},
		{4096, 131072},
		{4096 + 512, 131072},
		{1024, 300000 / 512 * 512},
	};
	static uint8_t read[BYTES];
	uint8_t root[SHA256_BYTES];
	int fd = make_file(root);
	struct verified_image *image;
	struct content content;

	(void)state;
	assert_int_equal(verified_image_create(&image, fd, BYTES, root, note_spoiled, &spoiled), 0);
	content = verified_image_content(image);
	assert_int_equal(content.sectors, BYTES / 512);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		memset(read, 0, sizeof(read));
		assert_int_equal(read_range(&content, ranges[i][0], ranges[i][1], read), 0);
		assert_memory_equal(read, bytes + ranges[i][0], ranges[i][1]);
	}
	assert_int_equal(spoiled, 0);
	verified_image_destroy(image);
	close(fd);
}

static void a_change_is_the_end_of_it(void **state)
{
	uint8_t root[SHA256_BYTES], read[4 * 4096], other = 1;
	int fd = make_file(root);
	struct verified_image *image;
	struct content content;
	struct capture capture;

	(void)state;
	assert_int_equal(verified_image_create(&image, fd, BYTES, root, note_spoiled, &spoiled), 0);
	content = verified_image_content(image);
	assert_int_equal(read_range(&content, 0, 4096, read), 0);
	assert_int_equal(pwrite(fd, &other, 1, 50 * 4096 + 17), 1);
	/* What is beside it is still good. */
	assert_int_equal(read_range(&content, 49 * 4096, 4096, read), 0);
	assert_int_equal(spoiled, 0);
	capture_begin(&capture);
	assert_int_equal(read_range(&content, 49 * 4096, 8192, read), -EIO);
	assert_int_equal(read_range(&content, 0, 4096, read), -EIO);
	capture_end(&capture);
	capture_expect_sentence(&capture, "block 50 of the root image is not what its digest");
	assert_int_equal(spoiled, 1);
	verified_image_destroy(image);
	close(fd);
}

static void the_size_is_what_it_was(void **state)
{
	uint8_t root[SHA256_BYTES];
	int fd = make_file(root);
	struct verified_image *image;
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	assert_int_equal(
		verified_image_create(&image, fd, BYTES - 4096 * 128, root, note_spoiled, &spoiled),
		-EBADMSG);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(verified_image_create(&image, fd, BYTES, root, note_spoiled, &spoiled),
			 -EBADMSG);
	capture_end(&capture);
	close(fd);
}

static void a_file_that_ends_meanwhile(void **state)
{
	uint8_t root[SHA256_BYTES], read[4096];
	int fd = make_file(root);
	struct verified_image *image;
	struct content content;
	struct capture capture;

	(void)state;
	assert_int_equal(verified_image_create(&image, fd, BYTES, root, note_spoiled, &spoiled), 0);
	content = verified_image_content(image);
	assert_int_equal(ftruncate(fd, 4096), 0);
	capture_begin(&capture);
	assert_int_equal(read_range(&content, 8192, 4096, read), -EIO);
	capture_end(&capture);
	assert_int_equal(spoiled, 1);
	verified_image_destroy(image);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_range_is_what_it_was),
		cmocka_unit_test(a_change_is_the_end_of_it),
		cmocka_unit_test(the_size_is_what_it_was),
		cmocka_unit_test(a_file_that_ends_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
