/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the host enters its guest's root: which directories, what of /etc, and what is made for
 * the guest instead. host_list.c is the list that users read; this is how it is put together with
 * their options. Paths here are absolute and the same in host and guest.
 */
#ifndef MVAGENT_ROOT_HOST_PLAN_H
#define MVAGENT_ROOT_HOST_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"

enum plan_kind {
	PLAN_DIRECTORY, /* made, with what else the plan has in it */
	PLAN_SOURCE,    /* a directory of the host; the plan may have more in it */
	PLAN_FILE,      /* made */
	PLAN_SYMLINK,   /* of the host, or made */
};

struct plan_entry {
	char *name;
	char *text;    /* contents or target */
	uint16_t next; /* in the same directory; 0: none */
	uint16_t first_child;
	uint16_t source; /* PLAN_SOURCE: its index */
	uint16_t mode;
	uint8_t kind;
};

/* A directory of the host of which something enters. */
struct plan_source {
	char *path;
	const char *const *only; /* patterns of what enters, from there; NULL: all of it */
	bool added;              /* by the user, with --root-add: names of credentials stay out */
	bool checked;            /* its files are looked at one by one before a cache is believed */
	int fd;                  /* O_PATH */
};

struct host_plan {
	int host_fd; /* what is "/" of the host */
	unsigned int entry_count;
	unsigned int source_count;
	unsigned int hide_count;
	struct plan_entry entries[LIMIT_ROOT_PLAN]; /* [0] is the root */
	struct plan_source sources[LIMIT_ROOT_SOURCES];
	const char *hides[LIMIT_ROOT_HIDES];
};

/* Makes the plan of the list, for the host whose root directory is at @host ("/" but in tests).
 * 0 or -errno with the sentence printed; destroy in every case. */
int host_plan_create(struct host_plan *plan, const char *host);
void host_plan_destroy(struct host_plan *plan);

/* --root-add: one more directory of the host, at an absolute path without "." and "..". 0 or
 * -errno with the sentence printed. */
int host_plan_add_directory(struct host_plan *plan, const char *path);

/* --root-hide: what does not enter after all. @pattern stays the caller's. 0 or -errno with the
 * sentence printed. */
int host_plan_hide(struct host_plan *plan, const char *pattern);

/* Whether what the host has at @path stays outside; @source: the directory that it is found in, or
 * NULL for such a directory itself. */
bool host_plan_hides(const struct host_plan *plan, const struct plan_source *source,
		     const char *path);

/* The part of @path (in the guest, without the first slash) that is below its source; "." for the
 * source itself. */
const char *host_plan_below(const struct plan_source *source, const char *path);

/* The declared list, for host_plan.c. */
struct listed_path {
	const char *path;
	enum plan_kind kind;
	uint16_t mode;
	const char *text;
	const char *const *only;
};
extern const struct listed_path host_list[];
extern const unsigned int host_list_count;
extern const char *const host_list_credentials[];

#endif
