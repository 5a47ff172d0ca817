/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/erofs_xattr.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "vmm/base/bytes.h"

struct prefix {
	const char *text;
	enum erofs_xattr_prefix index;
};

/* trusted.* may be overlayfs's own, and security.* of a policy that the guest does not have. */
static const struct prefix prefixes[] = {
	{"user.", EROFS_XATTR_USER},
	{"security.", EROFS_XATTR_SECURITY},
};

#define CAPABILITY_NAME "security.capability"

static const struct prefix *find_prefix(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i].text, strlen(prefixes[i].text)) == 0)
			return &prefixes[i];
	}
	return NULL;
}

bool erofs_xattr_is_kept(const char *name)
{
	const struct prefix *prefix = find_prefix(name);
	size_t rest = prefix ? strlen(name + strlen(prefix->text)) : 0;

	if (!rest || rest > UINT8_MAX)
		return false;
	return prefix->index == EROFS_XATTR_USER || strcmp(name, CAPABILITY_NAME) == 0;
}

int erofs_xattr_add(struct erofs_xattrs *xattrs, const char *name, const void *value, size_t length)
{
	const struct prefix *prefix = find_prefix(name);
	const char *rest = name + strlen(prefix->text);
	struct erofs_xattr_entry entry = {
		.name_length = (uint8_t)strlen(rest),
		.name_index = (uint8_t)prefix->index,
		.value_bytes = htole16((uint16_t)length),
	};
	uint8_t *place = xattrs->bytes + xattrs->length;
	size_t used = sizeof(entry) + entry.name_length + length;
	size_t bytes = bytes_align_up(used, 4);

	if (length > EROFS_XATTR_BYTES_MAX || bytes > EROFS_XATTR_BYTES_MAX - xattrs->length)
		return -E2BIG;
	memcpy(place, &entry, sizeof(entry));
	memcpy(place + sizeof(entry), rest, entry.name_length);
	if (length)
		memcpy(place + sizeof(entry) + entry.name_length, value, length);
	memset(place + used, 0, bytes - used);
	xattrs->length = (uint16_t)(xattrs->length + bytes);
	return 0;
}
