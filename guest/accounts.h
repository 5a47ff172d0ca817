/* SPDX-License-Identifier: Apache-2.0 */
/* Editing the text of passwd(5) and group(5). */
#ifndef GUEST_ACCOUNTS_H
#define GUEST_ACCOUNTS_H

#include <stdint.h>

struct account {
	const char *name; /* these hold neither colons nor newlines */
	uint32_t uid;
	uint32_t gid;
	const char *home;
	const char *shell;
};

/* Makes of the file's text @old one in which @account exists, which the caller frees. 0 or -ENOMEM.
 */
typedef int accounts_edit(const char *old, const struct account *account, char **edited);

/* The account takes the place of the first user with its name or uid; others with either go. */
accounts_edit accounts_edit_passwd;

/* A group that has the gid stays as it is. Else one with the account's name gets the gid. */
accounts_edit accounts_edit_group;

#endif
