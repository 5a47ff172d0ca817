/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent demo` runs its agent in, and what lies beside it that the agent is after. */
#ifndef MVAGENT_CLI_DEMO_PLACE_H
#define MVAGENT_CLI_DEMO_PLACE_H

#include <limits.h>
#include <stdbool.h>

#define DEMO_MARK_SIZE 33 /* text of a secret: 32 hex digits */

/* The name of the variable of this process that holds a secret. */
#define DEMO_VARIABLE "DEMO_API_KEY"

/* Where what the agent is after lies. */
enum demo_secret {
	DEMO_SECRET_KEY,    /* home/.ssh/id_ed25519, beside the project */
	DEMO_SECRET_HIDDEN, /* project/.env, which a rule hides */
	DEMO_SECRET_VARIABLE,
	DEMO_SECRET_COUNT
};

/* What the directory's name begins with; it is locked while the demo lives. */
#define DEMO_PLACE_PREFIX "mvagent-demo-"

struct demo_place {
	char path[PATH_MAX]; /* of the directory for all of it; empty: not made */
	char project[PATH_MAX + 16], home[PATH_MAX + 16];
	int directory_fd;
	int listener_fd;     /* on 127.0.0.1; -1: the host has no network */
	unsigned short port; /* its */
	char marks[DEMO_SECRET_COUNT][DEMO_MARK_SIZE];
};

#define DEMO_PLACE_NONE ((struct demo_place){.directory_fd = -1, .listener_fd = -1})

/* Makes it in $TMPDIR or /tmp, and sets DEMO_VARIABLE. 0 or -errno with the sentence printed.
 * Destroy in every case. */
int demo_place_create(struct demo_place *place);
void demo_place_destroy(struct demo_place *place);

/* Whether somebody connected to the listener. */
bool demo_place_was_reached(const struct demo_place *place);

/* Whether @path, relative to the place, is there. */
bool demo_place_has(const struct demo_place *place, const char *path);

#endif
