/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/names.h"

#include <errno.h>
#include <string.h>

#define LABEL_BYTES 63 /* RFC 1035, 2.3.4 */

/* The byte in a name's one form; 0 for one that has no place in a name, NUL included. Names of
 * other scripts travel as xn--... (RFC 5890), which this lets through as it is. */
static char name_byte(char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	    byte == '_')
		return byte;
	return 0;
}

static bool is_number(const char *label)
{
	size_t digits = strspn(label, "0123456789");

	if (!label[digits])
		return true;
	return label[0] == '0' && label[1] == 'x' &&
	       !label[2 + strspn(label + 2, "0123456789abcdef")];
}

static bool read_labels(const char *bytes, size_t length, char name[NAME_BYTES])
{
	size_t label = 0, last = 0;

	for (size_t i = 0; i < length; i++) {
		char byte = bytes[i];

		if (byte == '.' && label) {
			name[i] = '.';
			label = 0;
			last = i + 1;
			continue;
		}
		name[i] = name_byte(byte);
		if (!name[i] || ++label > LABEL_BYTES)
			return false;
	}
	name[length] = '\0';
	return label && !is_number(name + last);
}

int name_read(const char *bytes, size_t length, char name[NAME_BYTES])
{
	if (length && bytes[length - 1] == '.')
		length--;
	if (length && length < NAME_BYTES && read_labels(bytes, length, name))
		return 0;
	name[0] = '\0';
	return -EINVAL;
}

bool name_is_below(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail + 1 && name[length - tail - 1] == '.' &&
	       strcmp(name + length - tail, suffix) == 0;
}
