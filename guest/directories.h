/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that must be there before something is put on them. */
#ifndef GUEST_DIRECTORIES_H
#define GUEST_DIRECTORIES_H

#include <sys/types.h>

/* Whose home a new directory may lie in. */
struct directory_owner {
	const char *home;
	uid_t uid;
	gid_t gid;
};

/* Whether @path is @directory or lies below it, by name. */
int directories_contain(const char *directory, const char *path);

/* Makes @path and what is missing above it, mode 0755. What lies in the home of @owner belongs to
 * that owner (NULL: to root like the rest). An existing @path of any type is left alone. 0 or
 * -errno. */
int directories_make(const char *path, const struct directory_owner *owner);

/* Lets everybody through the directories above @path, which is absolute: an image may keep its
 * /root for root, and the user have something below it that the agent is to work in. 0 or -errno.
 */
int directories_let_through(const char *path);

/* Makes the owner's home and sees to it that it belongs to the owner. 0 or -errno. */
int directories_make_home(const struct directory_owner *owner);

#endif
