/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/policy_component.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#define WILDCARDS "*?[\\" /* what begins something that stands for other characters */

/*
 * Two characters outside ASCII fold into it: U+017F (long s) and U+212A (Kelvin), and directories
 * of ext4 and f2fs that ignore case treat them so.
 */
struct folded_name policy_fold(const char *name, size_t size)
{
	struct folded_name folded; /* all of it would take longer to clear than to fill */
	size_t length = 0;

	folded.last = '\0';
	for (size_t at = 0; at < size && length + 1 < sizeof(folded.text);) {
		const char *rest = name + at;

		if (size - at >= 2 && memcmp(rest, "\xc5\xbf", 2) == 0) {
			folded.last = 's';
			at += 2;
		} else if (size - at >= 3 && memcmp(rest, "\xe2\x84\xaa", 3) == 0) {
			folded.last = 'k';
			at += 3;
		} else {
			folded.last =
				*rest >= 'A' && *rest <= 'Z' ? (char)(*rest - 'A' + 'a') : *rest;
			at++;
		}
		folded.text[length++] = folded.last;
	}
	folded.text[length] = '\0';
	folded.length = length;
	return folded;
}

bool component_matches(const struct component *component, const struct folded_name *name)
{
	if ((component->first && component->first != name->text[0]) ||
	    (component->last && component->last != name->last))
		return false;
	if (component->literal)
		return component->length == name->length &&
		       memcmp(component->text, name->text, name->length) == 0;
	if (component->suffix)
		return component->length - 1 <= name->length &&
		       memcmp(component->text + 1,
			      name->text + name->length - (component->length - 1),
			      component->length - 1) == 0;
	return fnmatch(component->text, name->text, 0) == 0;
}

int component_create(struct component *component, const char *text, size_t length)
{
	struct folded_name folded;

	if (length == 0 || length > LIMIT_FS_NAME_BYTES || (length == 1 && text[0] == '.') ||
	    (length == 2 && text[0] == '.' && text[1] == '.'))
		return -EINVAL;
	folded = policy_fold(text, length);
	component->text = strdup(folded.text);
	if (!component->text)
		return -ENOMEM;
	component->length = folded.length;
	component->literal = strpbrk(folded.text, WILDCARDS) == NULL;
	component->any = strcmp(folded.text, "**") == 0;
	component->suffix = folded.text[0] == '*' && !strpbrk(folded.text + 1, WILDCARDS);
	component->first = strchr(WILDCARDS, folded.text[0]) ? '\0' : folded.text[0];
	component->last = strchr(WILDCARDS "]", folded.last) ? '\0' : folded.last;
	return 0;
}
