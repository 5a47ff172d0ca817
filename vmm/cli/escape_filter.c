/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/escape_filter.h"

#include <stdbool.h>
#include <string.h>

#define BEL    0x07U
#define CAN    0x18U
#define SUB    0x1aU
#define ESC    0x1bU
#define DELETE 0x7fU
#define ST     0x9cU
#define C1_UTF 0xc2U /* C1 controls are 0xc2 0x80 to 0xc2 0x9f in UTF-8 */

struct output {
	uint8_t *bytes;
	size_t length;
};

static void output_put(struct output *output, uint8_t byte)
{
	output->bytes[output->length++] = byte;
}

static bool is_c1(uint8_t byte)
{
	return byte >= 0x80 && byte <= 0x9f;
}

/* C0 controls without a part in sequences: terminals obey them also in the middle of one. */
static bool is_plain_control(uint8_t byte)
{
	return byte < 0x20 && byte != ESC && byte != CAN && byte != SUB;
}

static void filter_hold(struct escape_filter *filter, uint8_t byte)
{
	if (filter->held_length < ESCAPE_FILTER_HELD)
		filter->held[filter->held_length++] = byte;
}

/* What is held is a complete sequence that may pass. */
static void filter_pass(struct escape_filter *filter, struct output *output)
{
	memcpy(output->bytes + output->length, filter->held, filter->held_length);
	output->length += filter->held_length;
	filter->held_length = 0;
	filter->state = ESCAPE_FILTER_TEXT;
}

static void filter_drop(struct escape_filter *filter, enum escape_filter_state next)
{
	filter->held_length = 0;
	filter->pending = 0;
	filter->state = next;
}

/* OSC numbers whose effect stays on the screen: palette and its reset, hyperlinks, colours of text,
 * background and cursor, prompt marks. */
static bool osc_allowed(const uint8_t *digits, unsigned int length)
{
	static const char *const allowed[] = {"4",   "8",   "10",  "11",  "12",
					      "104", "110", "111", "112", "133"};

	for (unsigned int i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (strlen(allowed[i]) == length && memcmp(allowed[i], digits, length) == 0)
			return true;
	}
	return false;
}

/* CSI ... t is window manipulation (xterm): only the questions about sizes (14, 16, 18, 19) pass.
 * The others move, resize or iconify windows, or read and write titles, some by way of the user's
 * input. CSI ... i prints, CSI ... y tells what is on the screen, that is also before the run. */
static bool csi_allowed(const uint8_t *sequence, unsigned int length, uint8_t final)
{
	const uint8_t *digits = sequence;
	unsigned int count = 0;

	if (final == 'i' || final == 'y')
		return false;
	if (final != 't')
		return true;
	while (count < length && digits[count] >= '0' && digits[count] <= '9')
		count++;
	return count == 2 && digits[0] == '1' &&
	       (digits[1] == '4' || digits[1] == '6' || digits[1] == '8' || digits[1] == '9');
}

/* The length of the introducer at the start of what is held: ESC [ and C2 9B have two bytes, 9B has
 * one. */
static unsigned int filter_introducer_length(const struct escape_filter *filter)
{
	return filter->held[0] == ESC || filter->held[0] == C1_UTF ? 2 : 1;
}

/* A C1 control, by its 7-bit letter (ESC @ .. ESC _), or another ESC and letter. It is held. */
static void filter_control(struct escape_filter *filter, uint8_t letter, struct output *output)
{
	switch (letter) {
	case '[':
		filter->state = ESCAPE_FILTER_CSI;
		break;
	case ']':
		filter->state = ESCAPE_FILTER_OSC;
		break;
	case 'P': /* DCS */
	case 'X': /* SOS */
	case '^': /* PM */
	case '_': /* APC */
	case 'k': /* the old title string of screen and tmux, ended by ST */
		filter_drop(filter, ESCAPE_FILTER_DROP);
		break;
	default:
		filter_pass(filter, output);
		break;
	}
}

/* Whether the byte belongs to a UTF-8 character of two or more bytes that is no control (Unicode
 * 15, table 3-7): then it is not a C1 control, whatever its value. */
static bool filter_is_character(struct escape_filter *filter, uint8_t byte)
{
	if (filter->continuation && byte >= filter->lowest && byte <= filter->highest) {
		filter->continuation--;
		filter->lowest = 0x80;
		filter->highest = 0xbf;
		return true;
	}
	filter->continuation = 0;
	if (byte <= C1_UTF || byte > 0xf4)
		return false;
	filter->continuation = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
	filter->lowest = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
	filter->highest = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
	return true;
}

static void filter_text(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	filter->state = ESCAPE_FILTER_TEXT;
	if (filter_is_character(filter, byte)) {
		output_put(output, byte);
	} else if (byte == ESC) {
		filter_hold(filter, byte);
		filter->state = ESCAPE_FILTER_ESCAPE;
	} else if (byte == C1_UTF) {
		filter_hold(filter, byte);
		filter->state = ESCAPE_FILTER_C2;
	} else if (is_c1(byte)) {
		filter_hold(filter, byte);
		filter_control(filter, (uint8_t)(byte - 0x40), output);
	} else {
		output_put(output, byte);
	}
}

/* A sequence is broken off by what cannot be part of it, and what broke it is judged anew. */
static void filter_break_off(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	filter_drop(filter, ESCAPE_FILTER_TEXT);
	if (byte != CAN && byte != SUB)
		filter_text(filter, byte, output);
}

/* ESC, intermediate characters and a final one, as held. Of ESC % only "ESC % G" passes, which
 * chooses UTF-8: without it, parts of characters would be controls. ESC space G makes the terminal
 * send 8-bit controls for the user's keys. */
static bool escape_allowed(const uint8_t *sequence, unsigned int length)
{
	if (length == ESCAPE_FILTER_HELD)
		return false;
	if (sequence[1] == '%')
		return length == 3 && sequence[2] == 'G';
	return sequence[1] != ' ' || sequence[length - 1] != 'G';
}

static void filter_escape(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	if (is_plain_control(byte)) {
		output_put(output, byte);
	} else if (byte < 0x20 || byte > DELETE) {
		filter_break_off(filter, byte, output);
	} else if (byte != DELETE) {
		filter_hold(filter, byte);
		if (byte < 0x30)
			return;
		if (filter->held_length == 2)
			filter_control(filter, byte, output);
		else if (escape_allowed(filter->held, filter->held_length))
			filter_pass(filter, output);
		else
			filter_drop(filter, ESCAPE_FILTER_TEXT);
	}
}

static void filter_c2(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	if (is_c1(byte)) {
		filter_hold(filter, byte);
		filter_control(filter, (uint8_t)(byte - 0x40), output);
		return;
	}
	filter_pass(filter, output);
	if (byte >= 0xa0 && byte <= 0xbf)
		output_put(output, byte);
	else
		filter_text(filter, byte, output);
}

static void filter_csi(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	unsigned int skip = filter_introducer_length(filter);

	if (is_plain_control(byte)) {
		output_put(output, byte);
	} else if (byte < 0x20 || byte > DELETE) {
		filter_break_off(filter, byte, output);
	} else if (byte < 0x40) {
		filter_hold(filter, byte);
	} else if (byte != DELETE) {
		bool allowed = csi_allowed(filter->held + skip, filter->held_length - skip, byte);

		filter_hold(filter, byte);
		if (allowed && filter->held_length < ESCAPE_FILTER_HELD)
			filter_pass(filter, output);
		else
			filter_drop(filter, ESCAPE_FILTER_TEXT);
	}
}

/* A string that may pass ends here although its own end did not come. */
static void filter_end_string(const struct escape_filter *filter, struct output *output)
{
	if (filter->state == ESCAPE_FILTER_PASS) {
		output_put(output, ESC);
		output_put(output, '\\');
	}
}

/* The byte after ESC or C2 in a string: their end, a part of a character, or the beginning of
 * another sequence, which terminals obey. Returns whether that is all about it. */
static bool filter_string_pending(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	uint8_t pending = filter->pending;
	bool pass = filter->state == ESCAPE_FILTER_PASS;
	bool ends = byte == (pending == ESC ? '\\' : ST);

	filter->pending = 0;
	if (ends || (pending == C1_UTF && byte >= 0xa0 && byte <= 0xbf)) {
		if (pass) {
			output_put(output, pending);
			output_put(output, byte);
		}
		if (ends)
			filter->state = ESCAPE_FILTER_TEXT;
		return true;
	}
	if (pending == C1_UTF && !is_c1(byte))
		return false;
	filter_end_string(filter, output);
	filter_hold(filter, pending);
	if (pending == ESC) {
		filter->state = ESCAPE_FILTER_ESCAPE;
		filter_escape(filter, byte, output);
	} else {
		filter_c2(filter, byte, output);
	}
	return true;
}

static void filter_string(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	bool pass = filter->state == ESCAPE_FILTER_PASS;
	bool character, ends;

	if (filter->pending && filter_string_pending(filter, byte, output))
		return;
	character = filter_is_character(filter, byte);
	ends = !character && (byte == BEL || byte == CAN || byte == SUB || byte == ST);
	if (!character && (byte == ESC || byte == C1_UTF)) {
		filter->pending = byte;
	} else if (!character && !ends && is_c1(byte)) {
		filter_end_string(filter, output);
		filter_text(filter, byte, output);
	} else {
		if (pass)
			output_put(output, byte);
		if (ends)
			filter->state = ESCAPE_FILTER_TEXT;
	}
}

static void filter_osc(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	unsigned int skip = filter_introducer_length(filter);
	bool allowed = osc_allowed(filter->held + skip, filter->held_length - skip);

	if (byte >= '0' && byte <= '9' && filter->held_length - skip < 8) {
		filter_hold(filter, byte);
	} else if (allowed && (byte == ';' || byte == BEL || byte == ST)) {
		filter_hold(filter, byte);
		filter_pass(filter, output);
		if (byte == ';')
			filter->state = ESCAPE_FILTER_PASS;
	} else if (allowed && byte == ESC) {
		filter_hold(filter, byte);
		filter->state = ESCAPE_FILTER_OSC_END;
	} else {
		filter_drop(filter, ESCAPE_FILTER_DROP);
		filter_string(filter, byte, output);
	}
}

/* "OSC 112 ST" and the like, without an argument, reset what the command has set. */
static void filter_osc_end(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	if (byte == '\\') {
		filter_hold(filter, byte);
		filter_pass(filter, output);
	} else {
		filter_break_off(filter, ESC, output);
		filter_escape(filter, byte, output);
	}
}

static void filter_byte(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	switch (filter->state) {
	case ESCAPE_FILTER_TEXT:
		filter_text(filter, byte, output);
		break;
	case ESCAPE_FILTER_ESCAPE:
		filter_escape(filter, byte, output);
		break;
	case ESCAPE_FILTER_C2:
		filter_c2(filter, byte, output);
		break;
	case ESCAPE_FILTER_CSI:
		filter_csi(filter, byte, output);
		break;
	case ESCAPE_FILTER_OSC:
		filter_osc(filter, byte, output);
		break;
	case ESCAPE_FILTER_OSC_END:
		filter_osc_end(filter, byte, output);
		break;
	case ESCAPE_FILTER_PASS:
	case ESCAPE_FILTER_DROP:
		filter_string(filter, byte, output);
		break;
	}
}

size_t escape_filter_run(struct escape_filter *filter, const uint8_t *input, size_t length,
			 uint8_t *output)
{
	struct output sink = {.bytes = output};

	for (size_t i = 0; i < length; i++)
		filter_byte(filter, input[i], &sink);
	return sink.length;
}
