/* SPDX-License-Identifier: Apache-2.0 */
/* What a child in a jail finds, told to its parent by its exit status. */
#ifndef TESTS_UNIT_JAIL_CHECKS_H
#define TESTS_UNIT_JAIL_CHECKS_H

#define USER 4242 /* anybody but root */

/* What a child reports; anything else is the line of what was not so. */
enum { HELD = 0, UNAVAILABLE = 250 };

#define HOLDS(condition)                           \
	do {                                       \
		if (!(condition))                  \
			return __LINE__ % 249 + 1; \
	} while (0)

#endif
