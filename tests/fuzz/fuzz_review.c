/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What review makes of bytes of the guest's: lines of base, names to quote, text to show on a
 * terminal. The first byte of the input chooses.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/text.h"
#include "vmm/review/layout.h"
#include "vmm/review/output.h"
#include "vmm/review/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

/* A line that is understood says the same when it is written again. */
static void fuzz_base(char *text)
{
	struct review_base base, again;
	const char *path, *path_again;
	char line[REVIEW_LINE_BYTES];
	ssize_t length;

	if (review_base_parse(text, &path, &base) < 0)
		return;
	length = review_base_format(path, &base, line, sizeof(line));
	if (length < 0) {
		require(strlen(path) >= LIMIT_REVIEW_PATH_BYTES);
		return;
	}
	line[length - 1] = '\0';
	require(review_base_parse(line, &path_again, &again) == 0);
	require(strcmp(path, path_again) == 0);
	require(base.mode == again.mode && base.inode == again.inode && base.size == again.size &&
		base.mtime_ns == again.mtime_ns && base.ctime_ns == again.ctime_ns);
}

/* Nothing but printable ASCII comes out, whatever the name. */
static void fuzz_quote(const char *text)
{
	char *quoted = output_quote("a/", text);

	require(quoted != NULL);
	for (const char *c = quoted; *c; c++)
		require(*c >= 0x20 && *c < 0x7f);
	free(quoted);
}

/* Nothing that acts on a terminal comes out, in whatever pieces the text comes. */
static void fuzz_terminal(const char *text, size_t length, size_t piece)
{
	struct review_output output = {.terminal = true};
	size_t shown_length = 0;
	char *shown = NULL;

	output.file = open_memstream(&shown, &shown_length);
	require(output.file != NULL);
	for (size_t at = 0; at < length; at += piece)
		output_write(&output, text + at, length - at < piece ? length - at : piece);
	output_finish(&output);
	fclose(output.file);
	for (size_t i = 0; i < shown_length;) {
		size_t count = text_character_length(shown + i, shown_length - i);
		uint8_t byte = (uint8_t)shown[i];

		require(count > 0);
		require(byte >= 0x20 || byte == '\t' || byte == '\n');
		require(byte != 0x7f && !(byte == 0xc2 && (uint8_t)shown[i + 1] < 0xa0));
		i += count;
	}
	free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	require(text != NULL);
	switch (data[0] % 4) {
	case 0:
		fuzz_base(text);
		break;
	case 1:
		fuzz_quote(text);
		break;
	case 2:
		if (review_unescape(text) == 0)
			require(tree_compare_paths(text, text) == 0);
		break;
	default:
		fuzz_terminal((const char *)data + 1, size - 1, 1 + data[0] / 4U);
		break;
	}
	free(text);
	return 0;
}
