/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any output of a guest, in pieces, through the filter to a terminal: a parser written for this
 * purpose after the state machine that terminals share (DEC's, as ECMA-48 and xterm extend it). It
 * must never get to see a sequence that acts beyond the screen. It also counts as one what only
 * some terminals would: 8-bit controls next to UTF-8, controls inside of strings.
 *
 * Input: one byte, then output of the guest. Its upper half is the length of the pieces (0: all at
 * once), which must make no difference.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/cli/escape_filter.h"

#define REQUIRE(truth) ((truth) ? (void)0 : abort())

#define ESC 0x1b
#define CAN 0x18
#define SUB 0x1a

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum terminal_state { GROUND, ESCAPE, INTERMEDIATE, CSI, NUMBER, STRING };

struct terminal {
	enum terminal_state state;
	bool escaped;           /* ESC was seen in a string */
	uint8_t intermediate;   /* the first one after ESC */
	uint32_t number, count; /* of an OSC or the first of a CSI, and its digits */
	bool parameters_over;
};

/* The number of an OSC is complete. */
static void terminal_command(const struct terminal *terminal)
{
	static const uint32_t allowed[] = {4, 8, 10, 11, 12, 104, 110, 111, 112, 133};
	bool found = false;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		found = found || (terminal->count && terminal->number == allowed[i]);
	REQUIRE(found);
}

static void terminal_begin(struct terminal *terminal, enum terminal_state state)
{
	*terminal = (struct terminal){.state = state};
}

/* A control of the C1 set, or ESC and the letter that stands for it. */
static void terminal_control(struct terminal *terminal, uint32_t letter)
{
	/* DCS, SOS, PM, APC and the title of screen. */
	REQUIRE(!strchr("PX^_k", (int)letter));
	if (letter == ']')
		terminal_begin(terminal, NUMBER);
	else if (letter == '[')
		terminal_begin(terminal, CSI);
	else
		terminal_begin(terminal, GROUND);
}

static void terminal_csi(struct terminal *terminal, uint32_t character)
{
	if (character >= '0' && character <= '9' && !terminal->parameters_over) {
		terminal->number = terminal->number * 10 + character - '0';
		terminal->count++;
	} else if (character >= 0x40 && character <= 0x7e) {
		uint32_t number = terminal->number;

		REQUIRE(character != 'i' && character != 'y');
		REQUIRE(character != 't' || number == 14 || number == 16 || number == 18 ||
			number == 19);
		terminal_begin(terminal, GROUND);
	} else {
		terminal->parameters_over = true;
	}
}

static void terminal_escape(struct terminal *terminal, uint32_t character)
{
	if (character < 0x20 || character > 0x7e)
		return;
	if (character < 0x30) {
		if (terminal->state == ESCAPE)
			terminal->intermediate = (uint8_t)character;
		terminal->state = INTERMEDIATE;
	} else if (terminal->state == ESCAPE) {
		terminal_control(terminal, character);
	} else {
		REQUIRE(terminal->intermediate != '%' || character == 'G');
		terminal_begin(terminal, GROUND);
	}
}

static void terminal_string(struct terminal *terminal, uint32_t character)
{
	if (terminal->state == NUMBER && character >= '0' && character <= '9') {
		REQUIRE(terminal->count < 8);
		terminal->number = terminal->number * 10 + character - '0';
		terminal->count++;
		return;
	}
	if (terminal->state == NUMBER)
		terminal_command(terminal);
	terminal->state = character == '\a' ? GROUND : STRING;
}

/* One character, or one byte that is not part of one. */
static void terminal_take(struct terminal *terminal, uint32_t character)
{
	if (terminal->state == NUMBER && (character == ESC || (character & ~0x1fU) == 0x80))
		terminal_command(terminal);
	if (character == ESC) {
		terminal_begin(terminal, ESCAPE);
	} else if (character == CAN || character == SUB) {
		terminal_begin(terminal, GROUND);
	} else if (character >= 0x80 && character <= 0x9f) {
		terminal_control(terminal, character - 0x40);
	} else if (terminal->state == NUMBER || terminal->state == STRING) {
		terminal_string(terminal, character);
	} else if (character < 0x20) {
		return; /* obeyed wherever it stands */
	} else if (terminal->state == CSI) {
		terminal_csi(terminal, character);
	} else if (terminal->state != GROUND) {
		terminal_escape(terminal, character);
	}
}

/* The length of the well-formed UTF-8 character at @bytes and its value; else one byte's. */
static size_t terminal_decode(const uint8_t *bytes, size_t length, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t count = *bytes >= 0xf0 ? 4 : *bytes >= 0xe0 ? 3 : *bytes >= 0xc0 ? 2 : 1;

	*character = *bytes;
	if (count == 1 || count > length)
		return 1;
	*character = *bytes & (0x7fU >> count);
	for (size_t i = 1; i < count; i++) {
		if ((bytes[i] & 0xc0) != 0x80) {
			*character = *bytes;
			return 1;
		}
		*character = *character << 6 | (bytes[i] & 0x3f);
	}
	if (*character >= least[count] && *character <= 0x10ffff && *character >> 11 != 0x1b)
		return count;
	*character = *bytes;
	return 1;
}

/* How many bytes of a character that breaks off decoders take together: the longest beginning of
 * a well-formed one. */
static size_t terminal_broken_length(const uint8_t *bytes, size_t length)
{
	size_t count = 2;
	uint32_t character;

	for (; count < 4 && count <= length; count++) {
		uint8_t completed[4] = {0x80, 0x80, 0x80, 0x80};

		memcpy(completed, bytes, count);
		if (terminal_decode(completed, sizeof(completed), &character) <= count)
			break;
	}
	return count - 1;
}

/* What the terminal makes of it all. */
static void terminal_watch(const uint8_t *bytes, size_t length)
{
	struct terminal terminal = {0};

	while (length) {
		uint32_t character;
		size_t count = terminal_decode(bytes, length, &character);

		if (count == 1 && *bytes >= 0xc3 && *bytes <= 0xf4)
			count = terminal_broken_length(bytes, length);
		else
			terminal_take(&terminal, character);
		bytes += count;
		length -= count;
	}
}

static size_t filter_pieces(const uint8_t *input, size_t length, size_t piece, uint8_t *output)
{
	struct escape_filter filter = {0};
	size_t written = 0;

	while (length) {
		size_t count = piece && piece < length ? piece : length;
		size_t before = written;

		written += escape_filter_run(&filter, input, count, output + written);
		REQUIRE(written - before <= ESCAPE_FILTER_OUTPUT(count));
		REQUIRE(filter.held_length <= ESCAPE_FILTER_HELD);
		input += count;
		length -= count;
	}
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *whole, *pieces;
	size_t written;

	if (size < 2 || size > 65536)
		return 0;
	whole = malloc(ESCAPE_FILTER_OUTPUT(size));
	pieces = malloc(ESCAPE_FILTER_OUTPUT(size));
	REQUIRE(whole && pieces);
	written = filter_pieces(data + 1, size - 1, 0, whole);
	REQUIRE(filter_pieces(data + 1, size - 1, data[0] >> 4, pieces) == written);
	REQUIRE(memcmp(whole, pieces, written) == 0);
	terminal_watch(whole, written);
	free(pieces);
	free(whole);
	return 0;
}
