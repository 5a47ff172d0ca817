/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file server of one share: FUSE requests come in as descriptor chains and are answered at
 * once, one after the other, on one thread. It knows nothing of vhost-user, so that tests and
 * fuzzers drive it as it is.
 */
#ifndef MVAGENT_FS_SERVER_H
#define MVAGENT_FS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/fs/coherence.h"
#include "vmm/fs/wire.h"

struct fs_server;

/* Where the guest's changes go, in place of the share; both are the caller's. */
struct fs_review {
	int upper_fd; /* a directory */
	int base_fd;  /* a file, to append to; or -1 */
};

struct fs_config {
	int root_fd; /* a directory, O_PATH is enough; the caller's */
	bool read_only;
	uint32_t guest_uid; /* who owns the user's files, as the guest sees it */
	uint32_t guest_gid;
	unsigned int fd_limit; /* open at once for the guest; 0: what RLIMIT_NOFILE allows */
	bool scan;             /* look for hidden files, and say what was found */
	const char *root_path; /* the root's path on the host, if not the one it has here: scan.h */
	enum fs_cache cache;
	int journal_fd; /* for the record of the run (vmm/wire/fs_report.h); -1 or 0: none; taken
			   over */
	int notify_fd;  /* to the guest's init (vmm/wire/notify.h), or -1; taken over on success */
	/* Hidden and protected names (NULL: none); taken over, also on failure. */
	struct policy *policy;
	/* The share is under review: layer.h. NULL: it is not. */
	const struct fs_review *review;
};

/* Makes a server. The process's working directory becomes /proc/self/fd, because calls on extended
 * attributes know no directory descriptor, and its umask 0, because the guest has applied its own.
 * Returns 0 or -errno, with the sentence printed. */
int fs_server_create(struct fs_server **server, const struct fs_config *config);
void fs_server_destroy(struct fs_server *server);

/* Tells the record what this process is confined by (enum jail_wall); and, when the guest is gone,
 * what it has changed. */
void fs_server_tell_walls(struct fs_server *server, uint8_t walls);
void fs_server_tell_changes(struct fs_server *server);

/* Serves one request; returns how many bytes of the chain's writable part were written. */
uint32_t fs_server_serve(struct fs_server *server, const struct descriptor_chain *chain);

/* For the loop: a descriptor that is readable when the host has changed something (-1: none), and
 * what is to be called then, again and again while it returns true, but with other work between;
 * what is to be called when the notify descriptor is readable or writable. */
int fs_server_watch_fd(const struct fs_server *server);
bool fs_server_serve_watch(struct fs_server *server);
void fs_server_serve_notify(struct fs_server *server);

/* Counts, for budgets and tests. */
struct fs_counters {
	uint64_t requests[WIRE_OPCODE_COUNT];
	uint64_t errors;  /* answered with an error */
	uint64_t invalid; /* not well-formed, or of unknown kind */
	uint64_t full;    /* answered with ENFILE: a bound was hit */
};
const struct fs_counters *fs_server_counters(const struct fs_server *server);

/* Inodes known to the guest, handles and descriptors open for it. */
struct fs_usage {
	uint32_t inodes;
	uint32_t handles;
	unsigned int descriptors;
};
struct fs_usage fs_server_usage(const struct fs_server *server);

/* Prints the counts that are not 0 (log_info). */
void fs_server_report(const struct fs_server *server);

#endif
