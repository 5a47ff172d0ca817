/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host behind the device: read where they are, and refused once they changed. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/erofs_image.h"
#include "tests/unit/host_fixture.h"

static const char files[] =
	"mkdir -p usr/lib opt etc && printf 'the first file' >usr/lib/a && "
	"printf 'the second file' >usr/lib/b && head -c 9000 /dev/zero | tr '\\0' "
	"x >usr/lib/c && printf SECRET >secret";

/* Each a change of usr/lib/a after the metadata was made. */
static const char *const changes[] = {
	"printf 'THE FIRST FILE' >usr/lib/a",
	"printf more >>usr/lib/a",
	": >usr/lib/a",
	"rm usr/lib/a",
	"cp usr/lib/a usr/lib/n && mv usr/lib/n usr/lib/a",
	"touch usr/lib/a",
	"chmod 600 usr/lib/a",
	"ln usr/lib/a usr/lib/another",
	"rm usr/lib/a && ln -s ../../secret usr/lib/a",
	"rm usr/lib/a && mkfifo usr/lib/a",
	"rm usr/lib/a && mkdir usr/lib/a",
	"mv usr/lib usr/old && ln -s old usr/lib",
	"touch -d '2001-01-01' usr/lib/a",
};

static unsigned int lines_of(const char *text)
{
	unsigned int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void check_change(const char *change, bool opened_before)
{
	struct capture capture;
	struct host host;
	char bytes[64];

	host_start(&host, files);
	host_build(&host);
	if (opened_before) {
		assert_int_equal(host_read_file(&host, "usr/lib/a", bytes, 14), 0);
		assert_memory_equal(bytes, "the first file", 14);
	}
	host_run(&host, change);
	capture_begin(&capture);
	memset(bytes, 'u', sizeof(bytes));
	for (int i = 0; i < 3; i++)
		assert_int_equal(host_read_file(&host, "usr/lib/a", bytes, 14), -EIO);
	capture_end(&capture);
	assert_non_null(strstr(capture.text, "/usr/lib/a changed on the host"));
	assert_int_equal(lines_of(capture.text), 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 'u');
	assert_int_equal(host_content_counters(host.content).changed, 1);
	if (!strstr(change, "usr/old")) {
		assert_int_equal(host_read_file(&host, "usr/lib/b", bytes, 15), 0);
		assert_memory_equal(bytes, "the second file", 15);
	}
	host_stop(&host);
}

static void a_changed_file_is_refused_with_one_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		check_change(changes[i], false);
		/* The open one is the old file still: refused all the same, if it is touched. */
		if (!strstr(changes[i], "usr/old"))
			check_change(changes[i], true);
	}
}

static void a_change_during_a_read_is_refused(void **state)
{
	const struct tree_node *node;
	struct content_piece piece;
	struct content content;
	struct capture capture;
	struct host host;

	(void)state;
	host_start(&host, files);
	host_build(&host);
	content = host_content_of(host.content);
	node = host_node(&host, "usr/lib/c");
	assert_int_equal(content.ops->begin(content.context,
					    (uint64_t)node->first_block * EROFS_BLOCK_BYTES, 4096,
					    &piece),
			 0);
	assert_true(piece.fd >= 0);
	host_run(&host, "printf y | dd of=usr/lib/c bs=1 seek=10 conv=notrunc 2>/dev/null");
	capture_begin(&capture);
	assert_int_equal(content.ops->end(content.context, &piece, 0), -EIO);
	capture_end(&capture);
	assert_int_equal(lines_of(capture.text), 1);
	/* And a file that ended early. */
	node = host_node(&host, "usr/lib/b");
	assert_int_equal(content.ops->begin(content.context,
					    (uint64_t)node->first_block * EROFS_BLOCK_BYTES, 15,
					    &piece),
			 0);
	capture_begin(&capture);
	assert_int_equal(content.ops->end(content.context, &piece, -ENODATA), -EIO);
	capture_end(&capture);
	assert_non_null(strstr(capture.text, "/usr/lib/b changed"));
	host_stop(&host);
}

/* In pieces of any size the device is the same, and zero behind the end of each file. */
static void requests_go_over_the_ends_of_files(void **state)
{
	static const uint64_t steps[] = {512, 1536, 4096, 8192, 12800, 1U << 20};
	const struct tree_node *node;
	uint8_t *whole, *parts;
	struct host host;
	uint64_t length;

	(void)state;
	host_start(&host, files);
	host_run(&host, "for i in $(seq 40); do head -c $((i * 317)) /dev/urandom >opt/$i; done");
	host_build(&host);
	length = host_device_bytes(&host);
	whole = host_read_device(&host);
	parts = malloc(length);
	assert_non_null(parts);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		memset(parts, 0xdd, length);
		for (uint64_t at = 0; at < length; at += steps[i])
			assert_int_equal(host_read(&host, at, parts + at,
						   bytes_minimum(steps[i], length - at)),
					 0);
		assert_memory_equal(parts, whole, length);
	}
	node = host_node(&host, "usr/lib/c");
	for (uint64_t i = 0; i < 3 * EROFS_BLOCK_BYTES; i++)
		assert_int_equal(whole[(uint64_t)node->first_block * EROFS_BLOCK_BYTES + i],
				 i < 9000 ? 'x' : 0);
	assert_int_equal(host.image.layout.block_count * (uint64_t)EROFS_BLOCK_BYTES, length);
	free(whole);
	free(parts);
	host_stop(&host);
}

/* A thousand files through few descriptors, forwards and backwards. */
static void descriptors_are_bounded(void **state)
{
	struct host host;
	unsigned int before;
	char name[64], text[64], expected[64];

	(void)state;
	host_start(&host, "mkdir -p usr/lib && for i in $(seq 1000); do printf 'file %d.' $i "
			  ">usr/lib/f$i; done");
	before = open_descriptors();
	host_build(&host);
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i <= 1000; i++) {
			int number = round ? 1001 - i : i;

			snprintf(name, sizeof(name), "usr/lib/f%d", number);
			snprintf(expected, sizeof(expected), "file %d.", number);
			assert_int_equal(host_read_file(&host, name, text, strlen(expected)), 0);
			assert_memory_equal(text, expected, strlen(expected));
		}
	}
	assert_in_range(open_descriptors(), before, before + LIMIT_BLK_INFLIGHT + 1);
	/* The second time the last ones were open still. */
	assert_int_equal(host_content_counters(host.content).opened,
			 2000 - (LIMIT_BLK_INFLIGHT + 1));
	host_stop(&host);
}

/* As many reads at once as there can be: none loses its file. */
static void files_that_are_read_stay_open(void **state)
{
	struct content_piece pieces[LIMIT_BLK_INFLIGHT];
	struct content content;
	struct host host;
	char name[64], text[16];

	(void)state;
	host_start(&host, "mkdir -p usr/lib && for i in $(seq 300); do printf '%04d' $i "
			  ">usr/lib/f$i; done");
	host_build(&host);
	content = host_content_of(host.content);
	for (int i = 0; i < LIMIT_BLK_INFLIGHT; i++) {
		snprintf(name, sizeof(name), "usr/lib/f%d", i + 1);
		assert_int_equal(content.ops->begin(content.context,
						    (uint64_t)host_node(&host, name)->first_block *
							    EROFS_BLOCK_BYTES,
						    512, &pieces[i]),
				 0);
	}
	for (int i = LIMIT_BLK_INFLIGHT; i < 300; i++) {
		snprintf(name, sizeof(name), "usr/lib/f%d", i + 1);
		assert_int_equal(host_read_file(&host, name, text, 4), 0);
	}
	for (int i = 0; i < LIMIT_BLK_INFLIGHT; i++) {
		char expected[16];

		snprintf(expected, sizeof(expected), "%04d", i + 1);
		assert_int_equal(pread(pieces[i].fd, text, 4, (off_t)pieces[i].offset), 4);
		assert_memory_equal(text, expected, 4);
		assert_int_equal(content.ops->end(content.context, &pieces[i], 0), 0);
	}
	host_stop(&host);
}

/* Past so many lines the rest is silence. */
static void the_lines_are_bounded(void **state)
{
	struct capture capture;
	struct host host;
	char name[64], text[16];

	(void)state;
	host_start(&host, "mkdir -p usr/lib && for i in $(seq 300); do printf '%04d' $i "
			  ">usr/lib/f$i; done");
	host_build(&host);
	host_run(&host, "touch -d 2001-01-01 usr/lib/*");
	capture_begin(&capture);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "usr/lib/f%d", i + 1);
		assert_int_equal(host_read_file(&host, name, text, 4), -EIO);
	}
	capture_end(&capture);
	assert_int_equal(host_content_counters(host.content).changed, 300);
	assert_int_equal(lines_of(capture.text), LIMIT_ROOT_TOLD + 1);
	host_stop(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_file_is_refused_with_one_line),
		cmocka_unit_test(a_change_during_a_read_is_refused),
		cmocka_unit_test(requests_go_over_the_ends_of_files),
		cmocka_unit_test(descriptors_are_bounded),
		cmocka_unit_test(files_that_are_read_stay_open),
		cmocka_unit_test(the_lines_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
