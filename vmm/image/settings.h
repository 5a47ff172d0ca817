/* SPDX-License-Identifier: Apache-2.0 */
/* What an image says of how its command is run. */
#ifndef MVAGENT_IMAGE_SETTINGS_H
#define MVAGENT_IMAGE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define SETTINGS_USER_BYTES 33U  /* a login name, its NUL included */
#define SETTINGS_PATH_BYTES 256U /* a home, as well */

struct image_user {
	uint32_t uid;
	uint32_t gid;
	char name[SETTINGS_USER_BYTES];
	char home[SETTINGS_PATH_BYTES];
};

struct image_settings {
	bool has_user;
	struct image_user user;
	char *directory;   /* absolute; NULL: none is said */
	char **variables;  /* NAME=VALUE, as the next ones NULL-terminated; never NULL itself */
	char **entrypoint; /* the command begins with these */
	char **arguments;  /* and goes on with these, unless the caller gives others */
};

/* No settings. 0 or -ENOMEM; free in both cases. */
int image_settings_init(struct image_settings *settings);
void image_settings_free(struct image_settings *settings);

/* How many there are in a NULL-terminated list. */
unsigned int image_strings_count(char *const *list);
void image_strings_free(char **list);

/* Finds out who @user is ("name", "uid", "name:group"...) by the image's own /etc/passwd and
 * /etc/group, both texts of that form and possibly empty. 0, -EINVAL: that is no user or group, or
 * -ENOENT: the names are not there. */
int image_user_find(const char *user, const char *passwd, const char *group,
		    struct image_user *found);

#endif
