/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run is made of, by its SHA-256: mvagent's executables, the guest's kernel and initramfs,
 * the root's image. A file that was hashed before and is still the same one (device, inode, size
 * and times; nobody can set its change time) is not read again. Others are read while the guest
 * runs, by a thread that takes only the time that nobody else wants, so that no run starts later
 * for it.
 */
#ifndef MVAGENT_CLI_RUN_HASHES_H
#define MVAGENT_CLI_RUN_HASHES_H

#include <cjson/cJSON.h>

#include "vmm/cli/installation.h"
#include "vmm/cli/run_inputs.h"

struct run_hashes;

/* Opens the files once more, and looks for what is known of them. @cache_fd: where that is kept, or
 * -1. 0 or -errno with the sentence printed. */
int run_hashes_begin(struct run_hashes **hashes, int cache_fd, const struct run_inputs *inputs,
		     const struct installation *where);

/* Begins to read the others. Not before all processes were started: with threads there is no
 * telling in which state a process of its own begins. */
void run_hashes_start(struct run_hashes *hashes);

/* Waits for the end, unless a signal comes that ends the run, and gives {"mvagent": "..."}: what
 * could not be read has null. NULL: no memory. */
cJSON *run_hashes_end(struct run_hashes *hashes);

/* Gives up. NULL is ignored. */
void run_hashes_destroy(struct run_hashes *hashes);

#endif
