/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of a review: files planted where the guest must not come, sockets that it must
 * not reach, and what is here that it must not see. Made before the run, looked at after it, and
 * taken away again.
 */
#ifndef MVAGENT_CLI_CHECKLIST_HOST_H
#define MVAGENT_CLI_CHECKLIST_HOST_H

#include <limits.h>

#include "vmm/checklist/checklist.h"
#include "vmm/cli/run_options.h"
#include "vmm/cli/run_shares.h"

/* The names of the files: and 8 hex digits. */
#define CHECKLIST_CANARY_PREFIX ".mvagent-review-"

struct checklist_host {
	struct checklist_outside outside;
	const char *texts[CHECKLIST_ITEMS + 1]; /* of the items, for run_probe */
	struct run_shares shares;
	char number[CHECKLIST_MARK_SIZE]; /* that comes back with the answers */
	char home[PATH_MAX];              /* of the user; empty: not known */
	char directory[PATH_MAX]; /* where the command works, on this host; empty: in none of it */
	char root[PATH_MAX];      /* what it works on: the repository, or the share */
	int listener;             /* -1: there is none */
	unsigned int port;        /* of it */
};

/* Everything before the run. 0 or -errno with the sentence printed; destroy in every case. */
int checklist_host_prepare(struct checklist_host *host, const struct run_options *options);

/* What has come of it. */
void checklist_host_look(struct checklist_host *host, const struct findings *findings);

/* When the tokens among the user's variables end, as far as they say: an object, NAME: text.
 * NULL: no memory. */
cJSON *checklist_expiries(const struct run_variables *variables);

/* Takes away what was planted. */
void checklist_host_destroy(struct checklist_host *host);

/* The list of what the guest is to try: checklist_items.c. */
void checklist_items_make(struct checklist_host *host, const struct run_options *options);
/* Those of the network: checklist_network.c. */
void checklist_items_network(struct checklist_host *host, const struct run_options *options);

/* Adds one thing to try, "KIND:TARGET". */
void checklist_add(struct checklist_outside *outside, enum checklist_line line,
		   enum checklist_purpose purpose, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Where a path of this host is in the guest: in a share, or the same. */
void checklist_guest_path(const struct checklist_host *host, const char *path, char *guest,
			  size_t size);

/* Whether a path of this host is in a share; what is below it there ("" for the share itself), or
 * NULL. */
const char *checklist_in_share(const struct checklist_host *host, const char *path,
			       unsigned int *share);

#endif
