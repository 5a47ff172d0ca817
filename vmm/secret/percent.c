/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/percent.h"

#include <stdint.h>
#include <string.h>

size_t percent_write(const char *value, const char *encoded, size_t length, bool small, char *text)
{
	static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789-._~"; /* RFC 3986, 2.3 */
	const char *digits = small ? "0123456789abcdef" : "0123456789ABCDEF";
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		if (encoded[i] && strchr(unreserved, encoded[i])) {
			text[made++] = value[i];
			continue;
		}
		text[made++] = '%';
		text[made++] = digits[(uint8_t)value[i] >> 4];
		text[made++] = digits[(uint8_t)value[i] & 15];
	}
	return made;
}
