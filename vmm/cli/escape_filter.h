/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminal output of the guest, made harmless: escape sequences that act on the user's machine
 * beyond the screen are taken out. What passes: all text; of CSI all but window and title
 * manipulation, printing and checksums of the screen; of the operating system commands (OSC) those
 * that colour, link and mark. What does not: every other OSC (0, 1, 2 set titles, 52 writes the
 * clipboard, 1337 transfers files...), DCS, APC, PM and SOS strings whole, and leaving UTF-8.
 *
 * Terminals differ in what they do with broken sequences. Therefore only complete ones pass, so
 * that text which follows one that was taken out can never continue another.
 */
#ifndef MVAGENT_CLI_ESCAPE_FILTER_H
#define MVAGENT_CLI_ESCAPE_FILTER_H

#include <stddef.h>
#include <stdint.h>

/* The longest sequence that is held back until it can be judged; a longer one is taken out. */
#define ESCAPE_FILTER_HELD 256U

/* What @length bytes of input may become: a string that is broken off gets an end of two bytes. */
#define ESCAPE_FILTER_OUTPUT(length) (2U * (length) + ESCAPE_FILTER_HELD)

enum escape_filter_state {
	ESCAPE_FILTER_TEXT,
	ESCAPE_FILTER_ESCAPE,  /* after ESC, and intermediate characters */
	ESCAPE_FILTER_C2,      /* after 0xc2, the first byte of a C1 control in UTF-8 */
	ESCAPE_FILTER_CSI,     /* parameters of a control sequence */
	ESCAPE_FILTER_OSC,     /* the number of an operating system command */
	ESCAPE_FILTER_OSC_END, /* after such a number, if it is an allowed one, and ESC */
	ESCAPE_FILTER_PASS,    /* the rest of an allowed OSC */
	ESCAPE_FILTER_DROP,    /* the rest of a string that is not allowed */
};

struct escape_filter {
	enum escape_filter_state state;
	uint8_t pending;      /* ESC or 0xc2 inside a string, whose meaning the next byte gives */
	uint8_t continuation; /* bytes of a UTF-8 character still to come */
	uint8_t lowest, highest;  /* what the next of them may be */
	unsigned int held_length; /* of a sequence that is not complete */
	uint8_t held[ESCAPE_FILTER_HELD];
};

/* A zeroed structure is a fresh filter. */

/* Filters @length bytes of @input to @output, which has room for ESCAPE_FILTER_OUTPUT(@length).
 * Returns the count of bytes written. State carries over, so sequences may be split anywhere. */
size_t escape_filter_run(struct escape_filter *filter, const uint8_t *input, size_t length,
			 uint8_t *output);

#endif
