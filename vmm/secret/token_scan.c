/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/token_scan.h"

#include <string.h>

#include "vmm/base/bytes.h"

#define UNICODE_BYTES 6U   /* \uXXXX */
#define NOT_ASCII     0x80 /* stands for all that is not */

/* A character, as it is meant. */
struct character {
	int code;
	bool escaped;
};

static int refuse(struct token_scan *scan, const char *reason)
{
	scan->reason = reason;
	return -1;
}

/* Those of JSON, and what careless programs take for such. */
static bool is_blank(int code)
{
	return code <= ' ';
}

/* Takes letters and digits of a word in. Whether it is one. */
static bool add_to_word(struct token_scan *scan, int code)
{
	const bool big = code >= 'A' && code <= 'Z';

	if (code == '_' || code == '-')
		return true;
	if (!big && !(code >= 'a' && code <= 'z') && !(code >= '0' && code <= '9'))
		return false;
	memmove(scan->word, scan->word + 1, sizeof(scan->word) - 1);
	scan->word[sizeof(scan->word) - 1] = (char)(big ? code - 'A' + 'a' : code);
	scan->word_length++;
	return true;
}

static bool word_ends_with(const struct token_scan *scan, const char *text)
{
	const size_t length = strlen(text);

	return scan->word_length >= length &&
	       memcmp(scan->word + sizeof(scan->word) - length, text, length) == 0;
}

/* Also bot_access_token; but invalid_token is none. */
static bool word_is_name(const struct token_scan *scan)
{
	return word_ends_with(scan, "accesstoken") || word_ends_with(scan, "refreshtoken") ||
	       (scan->word_length == strlen("idtoken") && word_ends_with(scan, "idtoken"));
}

static int take_text(struct token_scan *scan, struct character character)
{
	const int code = character.code;
	bool named;

	if (add_to_word(scan, code))
		return 0;
	named = word_is_name(scan);
	scan->word_length = 0;
	if (!named)
		return 0;
	if (code == '"' && !character.escaped)
		scan->state = TOKEN_NAMED;
	else if (code == '"' || code == '\'' || code == '\\')
		scan->state = TOKEN_NAMED_ODDLY;
	else if (code == '=' || code == '>')
		return refuse(scan, "gives out a token in another form than JSON");
	return 0;
}

static int take_assigned(struct token_scan *scan, struct character character)
{
	if (character.code == '"' && !character.escaped) {
		scan->state = TOKEN_VALUE;
		scan->length = 0;
		return 0;
	}
	if (!strchr("ntf", character.code) || character.code == '\0')
		return refuse(scan, "gives out a token that is no string");
	scan->state = TOKEN_TEXT; /* null, true, false */
	return take_text(scan, character);
}

static int take_character(struct token_scan *scan, struct character character)
{
	const int code = character.code;

	if (scan->state == TOKEN_TEXT)
		return take_text(scan, character);
	if (is_blank(code))
		return 0;
	if (scan->state == TOKEN_ASSIGNED)
		return take_assigned(scan, character);
	if (scan->state == TOKEN_NAMED_ODDLY && (code == '"' || code == '\'' || code == '\\'))
		return 0;
	if (code == '=' || (code == ':' && scan->state == TOKEN_NAMED_ODDLY))
		return refuse(scan, "gives out a token in another form than JSON");
	if (code == ':' && !character.escaped) {
		scan->state = TOKEN_ASSIGNED;
		return 0;
	}
	scan->state = TOKEN_TEXT;
	return take_text(scan, character);
}

static int hexadecimal(char byte)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *digit = byte ? strchr(digits, byte) : NULL;

	return digit ? (int)(digit - digits) & 15 : -1;
}

/* RFC 8259, 7: what the character behind a backslash means. */
static int unescape(char byte)
{
	return byte && strchr("bfnrt", byte) ? '\n' : (unsigned char)byte;
}

/* The next byte of what is escaped. 1: @code is complete; 0; -1: it is no such thing. */
static int add_to_escape(unsigned int *escape, unsigned int *number, char byte, int *code)
{
	const int digit = hexadecimal(byte);

	if (*escape == 1 && byte != 'u') {
		*escape = 0;
		*code = unescape(byte);
		return 1;
	}
	if (*escape == 1) {
		*escape = 2;
		*number = 0;
		return 0;
	}
	if (digit < 0) {
		*escape = 0;
		return -1;
	}
	*number = *number << 4 | (unsigned int)digit;
	if (++*escape < UNICODE_BYTES)
		return 0;
	*escape = 0;
	*code = *number < NOT_ASCII ? (int)*number : NOT_ASCII;
	return 1;
}

static int take_byte(struct token_scan *scan, char byte)
{
	int code = NOT_ASCII, result;

	if (scan->escape) {
		result = add_to_escape(&scan->escape, &scan->code, byte, &code);
		if (result == 0)
			return 0;
		if (result > 0)
			return take_character(scan, (struct character){code, true});
		if (take_character(scan, (struct character){NOT_ASCII, true}) < 0)
			return -1;
	}
	if (byte == '\\') {
		scan->escape = 1;
		return 0;
	}
	code = (unsigned char)byte;
	return take_character(scan, (struct character){code, false});
}

/* Reads what is in a string of JSON. Its length, or -1: it is none, or not in ASCII. */
static long read_string(const char *text, size_t length, char *value)
{
	unsigned int escape = 0, number = 0;
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		int code = (unsigned char)text[i], result = 1;

		if (!escape && code == '\\') {
			escape = 1;
			continue;
		}
		if (escape)
			result = add_to_escape(&escape, &number, text[i], &code);
		if (result < 0 || (result > 0 && (code >= NOT_ASCII || !code)))
			return -1;
		if (result > 0)
			value[made++] = (char)code;
	}
	return escape ? -1 : (long)made;
}

/* The string of a token is complete. Returns the length of what is in @out instead, its quotation
 * mark included, or -1. */
static ssize_t end_value(struct token_scan *scan, char *out)
{
	char value[LIMIT_SECRET_TOKEN_RAW_BYTES];
	const long length = read_string(scan->held, scan->length, value);
	const char *placeholder = NULL;

	scan->state = TOKEN_TEXT;
	if (length < 0)
		scan->reason = "gives out a token that no field of a request can have";
	else if (length > 0)
		placeholder = token_store_keep(scan->scope, value, (size_t)length, &scan->reason);
	explicit_bzero(value, sizeof(value));
	if (length != 0 && !placeholder)
		return -1;
	if (length)
		memcpy(out, placeholder, (size_t)length);
	out[length] = '"';
	memset(out + length + 1, ' ', scan->length - (size_t)length);
	explicit_bzero(scan->held, scan->length);
	return (ssize_t)scan->length + 1;
}

/* Whether the string of a token ends with this byte. */
static bool ends_value(struct token_scan *scan, char byte)
{
	const bool escaped = scan->escape != 0;

	scan->escape = !escaped && byte == '\\';
	return byte == '"' && !escaped;
}

/* Returns the length of what may leave, or -1. */
static ssize_t put_value_byte(struct token_scan *scan, char byte, char *out)
{
	if (ends_value(scan, byte))
		return end_value(scan, out);
	if (scan->length == sizeof(scan->held))
		return refuse(scan, "gives out a token that is too long");
	scan->held[scan->length++] = byte;
	return 0;
}

ssize_t token_scan_put(struct token_scan *scan, const char *bytes, size_t length, char *out)
{
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		if (scan->state == TOKEN_VALUE) {
			const ssize_t count = put_value_byte(scan, bytes[i], out + made);

			if (count < 0)
				return -1;
			made += (size_t)count;
			continue;
		}
		if (take_byte(scan, bytes[i]) < 0)
			return -1;
		out[made++] = bytes[i];
	}
	return (ssize_t)made;
}

size_t token_scan_held(const struct token_scan *scan)
{
	return scan->state == TOKEN_VALUE ? scan->length : 0;
}

int token_scan_end(struct token_scan *scan)
{
	const bool inside = scan->state == TOKEN_VALUE;

	explicit_bzero(scan->held, scan->length);
	scan->state = TOKEN_TEXT;
	scan->escape = 0;
	scan->word_length = scan->length = 0;
	return inside ? refuse(scan, "ends within a token") : 0;
}

int token_scan_look(struct token_scan *scan, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (take_byte(scan, bytes[i]) < 0)
			return -1;
		if (scan->state == TOKEN_VALUE)
			return refuse(scan, "gives out a token in its head");
	}
	return 0;
}
