/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/output.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/text.h"

/* The value of a well-formed character of UTF-8. */
static uint32_t character_value(const char *text, size_t length)
{
	static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t value = (uint8_t)text[0] & first_bits[length];

	for (size_t i = 1; i < length; i++)
		value = value << 6 | ((uint8_t)text[i] & 0x3f);
	return value;
}

static void write_character(const struct review_output *output, const char *text, size_t length)
{
	const uint32_t value = character_value(text, length);

	/* Marks of direction (Unicode UAX 9) make code read otherwise than it is. */
	if (text_is_visible(text, length) || value == '\t' || value == '\n')
		fwrite(text, 1, length, output->file);
	else
		fprintf(output->file, value < 0x100 ? "\\x%02x" : "\\u%04x", value);
}

/* Whether more bytes could make a character of these. */
static bool may_become_character(const char *text, size_t length)
{
	uint8_t first = (uint8_t)text[0];
	size_t wanted = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (first < 0xc2 || first > 0xf4 || length >= wanted)
		return false;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return false;
	}
	return true;
}

/* Writes whole characters; returns how many bytes were taken. */
static size_t write_characters(const struct review_output *output, const char *text, size_t length)
{
	size_t done = 0;

	while (done < length) {
		size_t count = text_character_length(text + done, length - done);

		if (count) {
			write_character(output, text + done, count);
			done += count;
		} else if (may_become_character(text + done, length - done)) {
			break;
		} else {
			fprintf(output->file, "\\x%02x", (uint8_t)text[done]);
			done++;
		}
	}
	return done;
}

void output_write(struct review_output *output, const char *text, size_t length)
{
	if (!output->terminal) {
		fwrite(text, 1, length, output->file);
		return;
	}
	/* A byte at a time until what was pending is a character, or is known to be none. */
	while (output->pending && length) {
		size_t done;

		output->bytes[output->pending++] = *text++;
		length--;
		done = write_characters(output, output->bytes, output->pending);
		output->pending -= done;
		memmove(output->bytes, output->bytes + done, output->pending);
	}
	if (length) {
		size_t done = write_characters(output, text, length);

		output->pending = length - done;
		memcpy(output->bytes, text + done, output->pending);
	}
}

void output_finish(struct review_output *output)
{
	for (size_t i = 0; i < output->pending; i++)
		fprintf(output->file, "\\x%02x", (uint8_t)output->bytes[i]);
	output->pending = 0;
}

void output_print(struct review_output *output, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(output->file, format, arguments);
	va_end(arguments);
}

static bool must_be_quoted(const char *path)
{
	for (; *path; path++) {
		uint8_t c = (uint8_t)*path;

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return true;
	}
	return false;
}

/* The escape sequence of a byte, as in C; "" for a byte that needs none. */
static void escape_byte(uint8_t c, char escape[5])
{
	static const char letters[] = "\a\b\t\n\v\f\r\"\\";
	static const char names[] = "abtnvfr\"\\";
	const char *letter = c ? strchr(letters, c) : NULL;

	escape[0] = '\0';
	if (letter)
		snprintf(escape, 5, "\\%c", names[letter - letters]);
	else if (c < 0x20 || c >= 0x7f)
		snprintf(escape, 5, "\\%03o", c);
}

char *output_quote(const char *prefix, const char *path)
{
	bool quoted = must_be_quoted(path);
	char *text = malloc(strlen(prefix) + 4 * strlen(path) + 3);
	char *next = text;

	if (!text)
		return NULL;
	next += sprintf(next, "%s%s", quoted ? "\"" : "", prefix);
	for (; *path; path++) {
		char escape[5];

		escape_byte((uint8_t)*path, escape);
		if (quoted && escape[0])
			next = stpcpy(next, escape);
		else
			*next++ = *path;
	}
	if (quoted)
		*next++ = '"';
	*next = '\0';
	return text;
}
