/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/record/mask.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

/* Parts of the names of options and variables whose values are secrets. */
static const char *const secret_names[] = {
	"token",       "password",   "passwd",     "passphrase", "secret", "apikey",
	"api-key",     "api_key",    "bearer",     "credential", "auth",   "private-key",
	"private_key", "access-key", "access_key", "cookie",
};

/* How the tokens of some services begin, and how long they are at the least. */
static const struct {
	const char *prefix;
	size_t length;
} forms[] = {
	{"ghp_", 20},        {"gho_", 20},    {"ghu_", 20},  {"ghs_", 20},     {"ghr_", 20},
	{"github_pat_", 30}, {"glpat-", 20},  {"sk-", 20},   {"sk_live_", 20}, {"rk_live_", 20},
	{"xoxb-", 20},       {"xoxp-", 20},   {"xoxa-", 20}, {"AKIA", 16},     {"ASIA", 16},
	{"AIza", 30},        {"npm_", 20},    {"pypi-", 20}, {"hf_", 20},      {"eyJ", 40},
	{"ya29.", 20},       {"dop_v1_", 20},
};

/* Shorter values would mask half of what people write. */
#define VALUE_MIN 6U

#define TOKEN_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/="

bool mask_names_secret(const char *name, size_t length)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(secret_names); i++) {
		const size_t part = strlen(secret_names[i]);

		for (size_t at = 0; at + part <= length; at++) {
			if (strncasecmp(name + at, secret_names[i], part) == 0)
				return true;
		}
	}
	return false;
}

/* An argument under the mask: bytes [from, to) go. Allocated. */
static char *replace(const char *argument, size_t from, size_t to)
{
	char *masked = NULL;

	if (asprintf(&masked, "%.*s" MASK_TEXT "%s", (int)from, argument, argument + to) < 0)
		return NULL;
	return masked;
}

/* "scheme://user:password@host": the password, or the user where that is all there is. */
static bool find_url_password(const char *argument, size_t *from, size_t *to)
{
	const char *start = strstr(argument, "://");
	const char *end, *at, *colon;

	if (!start)
		return false;
	start += 3;
	end = start + strcspn(start, "/?# ");
	at = memrchr(start, '@', (size_t)(end - start));
	if (!at || at == start)
		return false;
	colon = memchr(start, ':', (size_t)(at - start));
	*from = (size_t)((colon ? colon + 1 : start) - argument);
	*to = (size_t)(at - argument);
	return *from < *to;
}

/* "Authorization: Bearer x", "x-api-key: x", as curl's -H takes them. */
static bool find_header(const char *argument, size_t *from, size_t *to)
{
	size_t length = strcspn(argument, ":=");
	const char *value = argument + length + 1;

	if (argument[length] != ':' || !mask_names_secret(argument, length) ||
	    strspn(argument, TOKEN_LETTERS) < length)
		return false;
	value += strspn(value, " ");
	*from = (size_t)(value - argument);
	*to = strlen(argument);
	return *from < *to;
}

static bool find_assignment(const char *argument, size_t *from, size_t *to)
{
	size_t length = strcspn(argument, "=");

	if (argument[length] != '=' || !mask_names_secret(argument, length) ||
	    strspn(argument, TOKEN_LETTERS) < length)
		return false;
	*from = length + 1;
	*to = strlen(argument);
	return *from < *to;
}

static bool find_form(const char *argument, size_t *from, size_t *to)
{
	for (const char *at = argument; *at;) {
		size_t length = strspn(at, TOKEN_LETTERS);

		/* "NAME=token" is one word: what is behind the sign counts as well. */
		for (const char *word = at; length && word;
		     word = memchr(word, '=', (size_t)(at + length - word)),
				word = word ? word + 1 : NULL) {
			size_t left = (size_t)(at + length - word);

			for (unsigned int i = 0; i < ARRAY_SIZE(forms); i++) {
				if (left < forms[i].length ||
				    strncmp(word, forms[i].prefix, strlen(forms[i].prefix)) != 0)
					continue;
				*from = (size_t)(word - argument);
				*to = *from + left;
				return true;
			}
		}
		at += length ? length : 1;
	}
	return false;
}

/* Where a word of a script that begins at @value, after a quotation mark or not, ends. */
static size_t word_length(const char *value)
{
	if (value[-1] == '\'' || value[-1] == '"')
		return strcspn(value, value[-1] == '"' ? "\"" : "'");
	return strcspn(value, " \t\n'\";&|)");
}

/* "export API_KEY=x; run", as `sh -c` takes it. */
static bool find_inner_assignment(const char *argument, size_t *from, size_t *to)
{
	for (const char *sign = strchr(argument, '='); sign; sign = strchr(sign + 1, '=')) {
		const char *name = sign, *value = sign + 1;

		while (name > argument &&
		       (isalnum((unsigned char)name[-1]) || name[-1] == '_' || name[-1] == '-'))
			name--;
		value += *value == '\'' || *value == '"';
		*from = (size_t)(value - argument);
		*to = *from + word_length(value);
		if (mask_names_secret(name, (size_t)(sign - name)) && *from < *to &&
		    strncmp(value, MASK_TEXT, *to - *from) != 0)
			return true;
	}
	return false;
}

/* "curl -H 'Authorization: Bearer x'" within a script. */
static bool find_bearer(const char *argument, size_t *from, size_t *to)
{
	static const char word[] = "bearer ";
	const char *found = strcasestr(argument, word);

	if (!found)
		return false;
	*from = (size_t)(found - argument) + strlen(word);
	*to = *from + word_length(argument + *from);
	return *from < *to;
}

char *mask_argument(const char *argument, const char *previous)
{
	bool (*const finders[])(const char *, size_t *, size_t *) = {
		find_assignment, find_header,       find_inner_assignment,
		find_bearer,     find_url_password, find_form};
	char *masked = strdup(argument);

	if (previous && previous[0] == '-' && !strchr(previous, '=') && argument[0] != '-' &&
	    mask_names_secret(previous, strlen(previous))) {
		free(masked);
		return strdup(MASK_TEXT);
	}
	for (unsigned int i = 0; masked && i < ARRAY_SIZE(finders); i++) {
		size_t from = 0, to = 0;

		/* Each mask is shorter than what it hides, or the same already. */
		while (masked && finders[i](masked, &from, &to) &&
		       strncmp(masked + from, MASK_TEXT, to - from) != 0) {
			char *next = replace(masked, from, to);

			free(masked);
			masked = next;
		}
	}
	return masked;
}

char *mask_value(const char *argument, const char *secret)
{
	size_t length = strlen(secret), at = 0;
	char *masked = strdup(argument), *found;

	while (masked && length >= VALUE_MIN && (found = strstr(masked + at, secret))) {
		size_t from = (size_t)(found - masked);
		char *next = replace(masked, from, from + length);

		free(masked);
		masked = next;
		at = from + strlen(MASK_TEXT);
	}
	return masked;
}
