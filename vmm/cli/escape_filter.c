/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/escape_filter.h"

#include <stdbool.h>
#include <string.h>

#define ESC 0x1bU
#define BEL 0x07U
#define CAN 0x18U
#define SUB 0x1aU

struct output {
	uint8_t *bytes;
	size_t length;
};

static void output_put(struct output *output, uint8_t byte)
{
	output->bytes[output->length++] = byte;
}

static void filter_hold(struct escape_filter *filter, uint8_t byte)
{
	filter->held[filter->held_length++] = byte;
}

static void filter_release(struct escape_filter *filter, struct output *output)
{
	memcpy(output->bytes + output->length, filter->held, filter->held_length);
	output->length += filter->held_length;
	filter->held_length = 0;
}

static void filter_drop(struct escape_filter *filter, enum escape_filter_state next)
{
	filter->held_length = 0;
	filter->dropped++;
	filter->previous = 0;
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
 * input. */
static bool csi_allowed(const uint8_t *sequence, unsigned int length, uint8_t final)
{
	const uint8_t *digits = sequence;
	unsigned int count = 0;

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
	return filter->held[0] == ESC || filter->held[0] == 0xc2 ? 2 : 1;
}

/* A C1 control, by its 7-bit letter (ESC @ .. ESC _). Its introducer is held already. */
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
		filter_drop(filter, ESCAPE_FILTER_DROP);
		break;
	case 'k': /* the old title string of screen and tmux, ended by ST */
		filter_drop(filter, ESCAPE_FILTER_DROP);
		break;
	default:
		filter_release(filter, output);
		filter->state = ESCAPE_FILTER_TEXT;
		break;
	}
}

static void filter_text(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	if (filter->continuation && byte >= 0x80 && byte <= 0xbf) {
		filter->continuation--;
		output_put(output, byte);
		return;
	}
	filter->continuation = 0;
	if (byte == ESC) {
		filter_hold(filter, byte);
		filter->state = ESCAPE_FILTER_ESCAPE;
	} else if (byte == 0xc2) {
		filter_hold(filter, byte);
		filter->state = ESCAPE_FILTER_C2;
	} else if (byte >= 0x80 && byte <= 0x9f) {
		filter_hold(filter, byte);
		filter_control(filter, (uint8_t)(byte - 0x40), output);
	} else {
		if (byte >= 0xc3 && byte <= 0xf7)
			filter->continuation = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
		output_put(output, byte);
	}
}

static void filter_csi(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	unsigned int skip = filter_introducer_length(filter);

	if (byte >= 0x40 && byte <= 0x7e) {
		bool allowed = csi_allowed(filter->held + skip, filter->held_length - skip, byte);

		if (allowed) {
			filter_release(filter, output);
			output_put(output, byte);
			filter->state = ESCAPE_FILTER_TEXT;
		} else {
			filter_drop(filter, ESCAPE_FILTER_TEXT);
		}
	} else if (byte == ESC) { /* starts anew */
		filter_release(filter, output);
		filter_hold(filter, byte);
		filter->state = ESCAPE_FILTER_ESCAPE;
	} else if (filter->held_length == ESCAPE_FILTER_HELD) {
		/* No sequence that means anything is this long. */
		filter_drop(filter, ESCAPE_FILTER_TEXT);
	} else {
		filter_hold(filter, byte);
	}
}

static bool string_ended(struct escape_filter *filter, uint8_t byte)
{
	bool ended = byte == BEL || byte == CAN || byte == SUB || byte == 0x9c ||
		     (filter->previous == ESC && byte == '\\');

	filter->previous = byte;
	return ended;
}

static void filter_osc(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	unsigned int skip = filter_introducer_length(filter);

	if (byte >= '0' && byte <= '9' && filter->held_length - skip < 8) {
		filter_hold(filter, byte);
		return;
	}
	if (byte == ';' && osc_allowed(filter->held + skip, filter->held_length - skip)) {
		filter_release(filter, output);
		output_put(output, byte);
		filter->previous = 0;
		filter->state = ESCAPE_FILTER_PASS;
		return;
	}
	/* "OSC 104 ST" and the like, without an argument, reset; they are dropped as others are. */
	filter_drop(filter, ESCAPE_FILTER_DROP);
	if (string_ended(filter, byte))
		filter->state = ESCAPE_FILTER_TEXT;
}

/* Inside a string. An ESC that does not end it starts a sequence of its own (most terminals): it is
 * judged again from there, so that nothing slips through behind a string. */
static void filter_string(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	bool pass = filter->state == ESCAPE_FILTER_PASS;
	bool after_escape = filter->previous == ESC;

	if (string_ended(filter, byte)) {
		if (pass && after_escape)
			output_put(output, ESC);
		if (pass)
			output_put(output, byte);
		filter->state = ESCAPE_FILTER_TEXT;
	} else if (after_escape) {
		filter_hold(filter, ESC);
		filter_hold(filter, byte);
		filter_control(filter, byte, output);
	} else if (pass && byte != ESC) {
		output_put(output, byte);
	}
}

static void filter_byte(struct escape_filter *filter, uint8_t byte, struct output *output)
{
	switch (filter->state) {
	case ESCAPE_FILTER_TEXT:
		filter_text(filter, byte, output);
		break;
	case ESCAPE_FILTER_ESCAPE:
		if (byte == ESC) {
			filter_release(filter, output);
			filter_hold(filter, byte);
			break;
		}
		filter_hold(filter, byte);
		filter_control(filter, byte, output);
		break;
	case ESCAPE_FILTER_C2:
		filter_hold(filter, byte);
		if (byte >= 0x80 && byte <= 0x9f) {
			filter_control(filter, (uint8_t)(byte - 0x40), output);
			break;
		}
		filter->held_length--;
		filter_release(filter, output);
		filter->state = ESCAPE_FILTER_TEXT;
		if (byte >= 0xa0 && byte <= 0xbf)
			output_put(output, byte);
		else
			filter_text(filter, byte, output);
		break;
	case ESCAPE_FILTER_CSI:
		filter_csi(filter, byte, output);
		break;
	case ESCAPE_FILTER_OSC:
		filter_osc(filter, byte, output);
		break;
	default:
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
