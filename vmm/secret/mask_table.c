/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/mask_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/base64.h"
#include "vmm/secret/percent.h"

/* So many bytes at a place may happen to be the start of a secret. Of a short one it is half. */
#define CHANCE_BYTES 8U

/* As it is; base64 at each of three places, with either alphabet; two of URLs, three of JSON, two
 * of HTML; hexadecimal digits, small and large. */
#define ENCODERS 16U

/* These, and the placeholder, which stays. */
#define FORMS (ENCODERS + 1U)

struct form {
	unsigned int secret;
	size_t length;
	char *text;    /* allocated, also: */
	char *instead; /* of the placeholder, as long */
};

struct mask_table {
	unsigned int count;
	struct form forms[FORMS * LIMIT_SECRET_ALL];
	/* Which two bytes some form begins with, and which first one: most places are none. */
	uint8_t pairs[65536 / 8];
	bool firsts[256];
};

/* Writes @length bytes of @value in a form that is as long for every text that is encoded where it
 * is. Returns its length. */
typedef size_t encode_form(const char *value, const char *encoded, size_t length, char *text);

static size_t encode_plain(const char *value, const char *encoded, size_t length, char *text)
{
	(void)encoded;
	memcpy(text, value, length);
	return length;
}

static size_t encode_percent(const char *value, const char *encoded, size_t length, char *text)
{
	return percent_write(value, encoded, length, false, text);
}

static size_t encode_percent_small(const char *value, const char *encoded, size_t length,
				   char *text)
{
	return percent_write(value, encoded, length, true, text);
}

static size_t write_hex(const char *value, size_t length, const char *digits, char *text)
{
	for (size_t i = 0; i < length; i++) {
		text[2 * i] = digits[(uint8_t)value[i] >> 4];
		text[2 * i + 1] = digits[(uint8_t)value[i] & 15];
	}
	return 2 * length;
}

static size_t encode_hex(const char *value, const char *encoded, size_t length, char *text)
{
	(void)encoded;
	return write_hex(value, length, "0123456789ABCDEF", text);
}

static size_t encode_hex_small(const char *value, const char *encoded, size_t length, char *text)
{
	(void)encoded;
	return write_hex(value, length, "0123456789abcdef", text);
}

/* What a character is written as. */
struct escape {
	char character;
	const char *text;
};

static const char *find_escape(const struct escape *escapes, char character)
{
	while (escapes->text && escapes->character != character)
		escapes++;
	return escapes->text;
}

/* A placeholder needs no escape: what stands there instead is repeated. */
static size_t write_escaped(const char *value, const char *encoded, size_t length,
			    const struct escape *escapes, char *text)
{
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		const char *escape = find_escape(escapes, encoded[i]);

		if (!escape) {
			text[made++] = value[i];
			continue;
		}
		for (; *escape; escape++)
			text[made++] = value == encoded ? *escape : value[i];
	}
	return made;
}

#define ENCODE_ESCAPED(name, ...)                                                          \
	static size_t encode_##name(const char *value, const char *encoded, size_t length, \
				    char *text)                                            \
	{                                                                                  \
		static const struct escape escapes[] = {__VA_ARGS__, {0, NULL}};           \
                                                                                           \
		return write_escaped(value, encoded, length, escapes, text);               \
	}
/* RFC 8259, 7: what must be, what some do besides, and what is done where it lies in HTML. */
ENCODE_ESCAPED(json, {'"', "\\\""}, {'\\', "\\\\"})
ENCODE_ESCAPED(json_slashes, {'"', "\\\""}, {'\\', "\\\\"}, {'/', "\\/"})
ENCODE_ESCAPED(json_html, {'"', "\\\""}, {'\\', "\\\\"}, {'&', "\\u0026"}, {'<', "\\u003c"},
	       {'>', "\\u003e"})
/* HTML, 13.1.4: by name, and as careful templates have it. */
ENCODE_ESCAPED(html, {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"})
ENCODE_ESCAPED(html_careful, {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"},
	       {'\'', "&#x27;"}, {'/', "&#x2F;"}, {'`', "&#x60;"}, {'=', "&#x3D;"})

/* base64 of what has @before bytes in front of it, as far as those and what follows do not count:
 * at most some bits of the first and the last byte are left out. */
static size_t write_base64(const char *value, size_t length, size_t before, bool url, char *text)
{
	const size_t from = (8 * before + 5) / 6, to = 8 * (before + length) / 6;
	char plain[LIMIT_SECRET_BYTES + 2] = {0};
	char whole[(LIMIT_SECRET_BYTES + 4) / 3 * 4];

	memcpy(plain + before, value, length);
	base64_encode(plain, before + length, whole);
	memcpy(text, whole + from, to - from);
	for (size_t i = 0; url && i < to - from; i++)
		text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
	explicit_bzero(plain, sizeof(plain));
	explicit_bzero(whole, sizeof(whole));
	return to - from;
}

#define ENCODE_BASE64(before, url)                                                           \
	static size_t encode_base64_##before##_##url(const char *value, const char *encoded, \
						     size_t length, char *text)              \
	{                                                                                    \
		(void)encoded;                                                               \
		return write_base64(value, length, before, url, text);                       \
	}
ENCODE_BASE64(0, 0)
ENCODE_BASE64(1, 0)
ENCODE_BASE64(2, 0)
ENCODE_BASE64(0, 1)
ENCODE_BASE64(1, 1)
ENCODE_BASE64(2, 1)

static encode_form *const encoders[ENCODERS] = {
	encode_plain,         encode_base64_0_0,   encode_base64_1_0,   encode_base64_2_0,
	encode_base64_0_1,    encode_base64_1_1,   encode_base64_2_1,   encode_percent,
	encode_percent_small, encode_json,         encode_json_slashes, encode_json_html,
	encode_html,          encode_html_careful, encode_hex,          encode_hex_small,
};

static bool is_known(const struct mask_table *table, unsigned int secret, const char *text,
		     size_t length)
{
	for (unsigned int i = 0; i < table->count; i++) {
		const struct form *form = &table->forms[i];

		if (form->secret == secret && form->length == length &&
		    memcmp(form->text, text, length) == 0)
			return true;
	}
	return false;
}

static int add_text(struct mask_table *table, unsigned int owner, const char *text,
		    const char *instead, size_t length)
{
	struct form *form = &table->forms[table->count];

	if (is_known(table, owner, text, length))
		return 0;
	*form = (struct form){owner, length, malloc(length), malloc(length)};
	if (!form->text || !form->instead) {
		free(form->text);
		free(form->instead);
		return -ENOMEM;
	}
	memcpy(form->text, text, length);
	memcpy(form->instead, instead, length);
	table->count++;
	table->firsts[(uint8_t)text[0]] = true;
	table->pairs[(uint8_t)text[0] << 5 | (uint8_t)text[1] >> 3] |=
		(uint8_t)(1 << ((uint8_t)text[1] & 7));
	return 0;
}

static int add_form(struct mask_table *table, const struct secret_set *set, unsigned int index,
		    encode_form *encode)
{
	const struct secret *secret = &set->secrets[index];
	char text[MASK_FORM_BYTES], instead[MASK_FORM_BYTES];
	size_t length = encode(secret->value, secret->value, secret->length, text);
	int error;

	encode(secret->placeholder, secret->value, secret->length, instead);
	error = add_text(table, secret_owner(set, index), text, instead, length);
	explicit_bzero(text, sizeof(text));
	return error;
}

int mask_table_add(struct mask_table *table, const struct secret_set *set, unsigned int index)
{
	const struct secret *secret = &set->secrets[index];
	int error = 0;

	for (size_t i = 0; !error && i < ENCODERS; i++)
		error = add_form(table, set, index, encoders[i]);
	/* It begins as the secret does, or as others: it is not taken for one that is cut short. */
	return error ? error
		     : add_text(table, secret_owner(set, index), secret->placeholder,
				secret->placeholder, secret->length);
}

int mask_table_create(struct mask_table **table, const struct secret_set *set)
{
	struct mask_table *made = calloc(1, sizeof(*made));
	int error = made ? 0 : -ENOMEM;

	for (unsigned int i = 0; !error && i < set->count; i++)
		error = mask_table_add(made, set, i);
	if (error)
		mask_table_destroy(made);
	else
		*table = made;
	return error;
}

void mask_table_destroy(struct mask_table *table)
{
	if (!table)
		return;
	for (unsigned int i = 0; i < table->count; i++) {
		if (table->forms[i].text)
			explicit_bzero(table->forms[i].text, table->forms[i].length);
		free(table->forms[i].text);
		free(table->forms[i].instead);
	}
	free(table);
}

static size_t common_length(const char *text, const char *bytes, size_t most)
{
	size_t length = 0;

	while (length < most && text[length] == bytes[length])
		length++;
	return length;
}

struct mask_match mask_table_match(const struct mask_table *table, const char *bytes, size_t length)
{
	struct mask_match match = {0};

	if (length < 2 ? !table->firsts[(uint8_t)bytes[0]]
		       : !(table->pairs[(uint8_t)bytes[0] << 5 | (uint8_t)bytes[1] >> 3] &
			   1 << ((uint8_t)bytes[1] & 7)))
		return match;
	for (unsigned int i = 0; i < table->count; i++) {
		const struct form *form = &table->forms[i];
		const size_t common = common_length(form->text, bytes,
						    (size_t)bytes_minimum(form->length, length));

		match.open |= common == length && common < form->length;
		if (common < match.length || !common ||
		    (common == match.length && (match.whole || common < form->length)))
			continue;
		match.secret = form->secret;
		match.length = common;
		match.whole = common == form->length;
		match.telling =
			match.whole || common > bytes_minimum(CHANCE_BYTES, form->length / 2);
		match.instead = form->instead;
	}
	return match;
}
