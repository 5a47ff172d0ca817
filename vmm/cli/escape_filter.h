/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminal output of the guest, made harmless: escape sequences that act on the user's machine
 * beyond the screen are taken out. What passes: all text, all of CSI but title and window
 * manipulation, and the operating system commands (OSC) that colour, link and mark. What does not:
 * every other OSC (0, 1, 2 set titles, 52 writes the clipboard, 1337 transfers files...), and DCS,
 * APC, PM and SOS strings whole.
 */
#ifndef MVAGENT_CLI_ESCAPE_FILTER_H
#define MVAGENT_CLI_ESCAPE_FILTER_H

#include <stddef.h>
#include <stdint.h>

/* The longest beginning of a sequence that is held back until it can be judged. */
#define ESCAPE_FILTER_HELD 64U

enum escape_filter_state {
	ESCAPE_FILTER_TEXT,
	ESCAPE_FILTER_ESCAPE, /* after ESC */
	ESCAPE_FILTER_C2,     /* after 0xc2, the first byte of a C1 control in UTF-8 */
	ESCAPE_FILTER_CSI,    /* parameters of a control sequence */
	ESCAPE_FILTER_OSC,    /* the number of an operating system command */
	ESCAPE_FILTER_PASS,   /* the rest of an allowed OSC */
	ESCAPE_FILTER_DROP,   /* the rest of a string that is not allowed */
};

struct escape_filter {
	enum escape_filter_state state;
	uint8_t previous;     /* last byte inside a string, to see its end (ESC \ or C2 9C) */
	uint8_t continuation; /* bytes of a UTF-8 character still to come */
	unsigned int held_length;
	uint8_t held[ESCAPE_FILTER_HELD];
	uint64_t dropped; /* sequences taken out */
};

/* A zeroed structure is a fresh filter. */

/* Filters @length bytes of @input to @output, which holds at least @length + ESCAPE_FILTER_HELD.
 * Returns the count of bytes written. State carries over, so sequences may be split anywhere. */
size_t escape_filter_run(struct escape_filter *filter, const uint8_t *input, size_t length,
			 uint8_t *output);

#endif
