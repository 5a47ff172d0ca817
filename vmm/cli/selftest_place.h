/* SPDX-License-Identifier: Apache-2.0 */
/* What the machines of `mvagent selftest` are given, and what lies beside it that must not change.
 */
#ifndef MVAGENT_CLI_SELFTEST_PLACE_H
#define MVAGENT_CLI_SELFTEST_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The name of the directory: and six characters. */
#define SELFTEST_PLACE_PREFIX "mvagent-selftest-"

struct selftest_place {
	char path[96];    /* of the directory for all of it; empty: not made */
	int directory_fd; /* the same */
	int share_fd;     /* O_PATH */
	int image_fd;     /* read-only */
	int initrd_fd;
	uint32_t *image; /* what is in it; allocated */

	/* Canaries. */
	struct stat canary; /* a file beside the share */
	int local_fd;       /* a socket in the directory that nobody may connect to */
	int network_fd;     /* one of 127.0.0.1; -1: the host has no network */
	pid_t process;      /* one that sleeps, and ends at any signal */
	int process_fd;     /* its pidfd */
};

/* Nothing is open. */
void selftest_place_init(struct selftest_place *place);

/* Makes it, in $TMPDIR or /tmp. 0 or -errno with the sentence printed. Destroy in every case. */
int selftest_place_create(struct selftest_place *place);
void selftest_place_destroy(struct selftest_place *place);

/* Says in @why what has changed outside the share, and returns -EPERM; 0: nothing. */
int selftest_place_check(struct selftest_place *place, char *why, size_t size);

#endif
