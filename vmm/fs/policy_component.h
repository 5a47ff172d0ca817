/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the policy: one name of a pattern, and names as patterns see them. */
#ifndef MVAGENT_FS_POLICY_COMPONENT_H
#define MVAGENT_FS_POLICY_COMPONENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"

/* A name in lower case. */
struct folded_name {
	size_t length;
	char last;
	char text[LIMIT_FS_NAME_BYTES + 1];
};

/* One name of a pattern. */
struct component {
	char *text; /* folded */
	size_t length;
	char first, last; /* what names must begin and end with, or NUL */
	bool literal;     /* no wildcard in it */
	bool suffix;      /* "*" and then none */
	bool any;         /* "**": any number of names, none included */
	uint16_t bit; /* of the state: all components before this one have been matched. The first
		       * component has none: where a pattern may begin is known without. */
};

/* The first @size bytes of @name; what is longer than a name may be is cut. */
struct folded_name policy_fold(const char *name, size_t size);

/* Parses @length bytes of a pattern. 0; -EINVAL: no name can match it; -ENOMEM. The text is to be
 * freed. */
int component_create(struct component *component, const char *text, size_t length);

/* Whether a name matches one that is not "**". */
bool component_matches(const struct component *component, const struct folded_name *name);

#endif
