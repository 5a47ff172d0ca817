/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `mvagent review` does inside the guest, in place of a command: init executes itself anew
 * with a list of things to try, tries each as the agent's user and again as root, and tells what
 * came back. It judges nothing: vmm/checklist does, outside.
 *
 * Arguments: SESSION_PROBE_NAME, a number that only this run has, uid, gid, then KIND:TARGET...
 * Standard output: a line "probe NUMBER", for each role and item "ROLE INDEX RESULT DATA" (the
 * result of the last system call, or a negative errno; data with all but letters, digits and
 * "-._/=:" as % and two hex digits), and after each role "end NUMBER ROLE COUNT".
 */
#ifndef GUEST_PROBE_H
#define GUEST_PROBE_H

#include <stddef.h>

#define PROBE_DATA_BYTES 65536U

/* What came back of one try. */
struct probe_answer {
	long result; /* or -errno */
	size_t length;
	char *data; /* has room for PROBE_DATA_BYTES */
};

/* main() of the probes. Returns its exit status. */
int probe_main(int argc, char **argv);

/* One kind of thing to try. */
struct probe_kind {
	const char *name;
	void (*try)(const char *target, struct probe_answer *answer);
};

/* Adds bytes, as far as there is room. */
void probe_add(struct probe_answer *answer, const void *bytes, size_t length);

/* probe_files.c, probe_network.c; the last of each is all zeros. */
extern const struct probe_kind probe_file_kinds[];
extern const struct probe_kind probe_network_kinds[];

#endif
