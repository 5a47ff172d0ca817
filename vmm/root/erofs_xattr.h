/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of one file, gathered in the form that they have on disk. */
#ifndef MVAGENT_ROOT_EROFS_XATTR_H
#define MVAGENT_ROOT_EROFS_XATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/root/erofs_format.h"

struct erofs_xattrs {
	uint8_t bytes[EROFS_XATTR_BYTES_MAX];
	uint16_t length;
};

/* Whether attributes of that name are kept in images: the user's, and file capabilities. */
bool erofs_xattr_is_kept(const char *name);

/* Adds one whose name is kept. The order of calls is the order on disk. 0 or -E2BIG: a file cannot
 * have that much. */
int erofs_xattr_add(struct erofs_xattrs *xattrs, const char *name, const void *value,
		    size_t length);

#endif
