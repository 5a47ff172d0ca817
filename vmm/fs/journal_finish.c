/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the files that the guest changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/sha256.h"
#include "vmm/fs/journal_internal.h"
#include "vmm/fs/operation.h"

/* What is at a path now. */
struct after {
	bool there;
	bool has_hash;
	struct statx status;
	uint8_t hash[SHA256_BYTES];
};

/* Walks to a path from the root, as the guest would. 0 or -errno; then *@inode is to be released.
 */
static int walk(struct fs_server *server, const char *path, struct inode **inode,
		struct statx *status)
{
	struct inode *at = inode_find(&server->inodes, FUSE_ROOT_ID);
	int error = 0;

	for (;;) {
		size_t length = strcspn(path, "/");
		char name[LIMIT_FS_NAME_BYTES + 1];
		struct inode *next;

		if (length == 0 || length >= sizeof(name))
			error = -EINVAL;
		if (!error && at->identity.type != S_IFDIR)
			error = -ENOTDIR;
		memcpy(name, path, error ? 0 : length);
		name[error ? 0 : length] = '\0';
		if (!error)
			error = fs_find_entry(server, at, name, &next, status);
		fs_release_inode(server, at);
		if (error)
			return error;
		at = next;
		if (!path[length])
			break;
		path += length + 1;
	}
	*inode = at;
	return 0;
}

/* What is at the path of @entry now. */
static void look(struct fs_server *server, const struct journal_entry *entry, bool hash,
		 struct after *after)
{
	struct inode *inode;
	int path_fd;

	*after = (struct after){.there = false};
	if (!entry->now || walk(server, entry->now, &inode, &after->status))
		return;
	after->there = true;
	path_fd = hash && after->status.stx_size <= LIMIT_JOURNAL_AFTER_BYTES
			  ? path_inode_fd(&server->inodes, inode)
			  : -1;
	after->has_hash = path_fd >= 0 && journal_hash(server, path_fd, after->status.stx_mode,
						       LIMIT_JOURNAL_AFTER_BYTES, after->hash);
	fs_release_inode(server, inode);
}

/* Whether the contents are what they were: unknown counts as changed. */
static bool same_contents(const struct journal_entry *entry, const struct after *after)
{
	if (!entry->contents ||
	    !(S_ISREG(after->status.stx_mode) || S_ISLNK(after->status.stx_mode)))
		return true;
	return entry->has_hash && after->has_hash &&
	       memcmp(entry->hash_before, after->hash, SHA256_BYTES) == 0;
}

/* Whether a directory that the file was in has moved, and the file is elsewhere all the same: its
 * own old place, or any other. */
static bool has_left_directory(struct journal_table *table, const struct journal_entry *entry)
{
	char above[FS_REPORT_TEXT_BYTES + 1];

	snprintf(above, sizeof(above), "%s", entry->was);
	for (char *slash; (slash = strrchr(above, '/'));) {
		*slash = '\0';
		if (journal_table_has_moved(table, above))
			return true;
	}
	return false;
}

/* Whether anything is different from before, and what. */
static bool classify(struct journal_table *table, const struct journal_entry *entry,
		     const struct after *after, uint32_t *kind)
{
	mode_t type = after->status.stx_mode & S_IFMT;

	if (!entry->was) {
		*kind = FS_CHANGE_CREATED;
		return after->there;
	}
	if (!after->there) {
		*kind = FS_CHANGE_DELETED;
		return true;
	}
	if (strcmp(entry->was, entry->now) != 0 || has_left_directory(table, entry))
		*kind = FS_CHANGE_RENAMED;
	else if ((entry->mode_before & S_IFMT) != type || !same_contents(entry, after))
		*kind = FS_CHANGE_CHANGED;
	else if (entry->mode_before != after->status.stx_mode)
		*kind = FS_CHANGE_MODE;
	else
		return false;
	return true;
}

static void fill(struct fs_report *report, const struct journal_entry *entry,
		 const struct after *after)
{
	/* One of the two there is. */
	snprintf(report->path, sizeof(report->path), "%s",
		 (after->there ? entry->now : entry->was) ?: "");
	if (report->kind == FS_CHANGE_RENAMED)
		snprintf(report->other, sizeof(report->other), "%s", entry->was);
	if (entry->was) {
		report->flags |= FS_REPORT_BEFORE | (entry->has_hash ? FS_REPORT_HASH_BEFORE : 0);
		report->mode_before = entry->mode_before;
		report->size_before = entry->size_before;
		memcpy(report->hash_before, entry->hash_before, SHA256_BYTES);
	}
	if (after->there) {
		report->flags |= FS_REPORT_AFTER | (after->has_hash ? FS_REPORT_HASH_AFTER : 0);
		report->mode_after = after->status.stx_mode;
		report->size_after = after->status.stx_size;
		memcpy(report->hash_after, after->hash, SHA256_BYTES);
	}
	/* What was only moved, or got other permissions, is what it was. */
	if (entry->was && !entry->contents && after->has_hash) {
		report->flags |= FS_REPORT_HASH_BEFORE;
		report->size_before = report->size_after;
		memcpy(report->hash_before, after->hash, SHA256_BYTES);
	}
}

static void send_finding(struct fs_server *server, enum fs_report_finding finding, const char *path)
{
	struct fs_report report = {.type = FS_REPORT_FINDING, .kind = finding};

	snprintf(report.path, sizeof(report.path), "%s", path);
	journal_send(server->journal, &report, true);
}

static void send_findings(struct fs_server *server, const struct fs_report *change,
			  const struct journal_entry *entry)
{
	const uint32_t any = S_IXUSR | S_IXGRP | S_IXOTH;

	if (journal_is_build_file(change->path) ||
	    (*change->other && journal_is_build_file(change->other)))
		send_finding(server, FS_FINDING_BUILD, change->path);
	if (!S_ISREG(change->mode_after) || !(change->mode_after & any) ||
	    (entry->was && entry->mode_before & any))
		return;
	server->journal->counts[FS_COUNT_EXECUTABLES]++;
	if (!journal_is_package_file(change->path))
		send_finding(server, FS_FINDING_EXECUTABLE, change->path);
}

static void finish_entry(struct fs_server *server, const struct journal_entry *entry, bool hash)
{
	struct fs_report report = {.type = FS_REPORT_CHANGE};
	struct after after;

	look(server, entry, hash, &after);
	if (!classify(&server->journal->table, entry, &after, &report.kind))
		return;
	fill(&report, entry, &after);
	journal_send(server->journal, &report, true);
	send_findings(server, &report, entry);
}

static void send_refusals(struct fs_server *server)
{
	for (unsigned int rule = 0; rule < POLICY_RULE_NUMBERS; rule++) {
		struct fs_report report = {
			.type = FS_REPORT_REFUSAL,
			.flags = server->guard.refused_hidden[rule / 64] >> (rule % 64) & 1
					 ? FS_REPORT_HIDDEN
					 : 0,
			.counts = {server->guard.refused[rule]},
			.path = "*", /* the first was told as it happened */
		};

		if (server->guard.refused[rule] < 2)
			continue;
		snprintf(report.other, sizeof(report.other), "%s",
			 policy_rule(server->guard.policy, (uint16_t)rule));
		journal_send(server->journal, &report, true);
	}
}

static void send_share(struct fs_server *server)
{
	struct fs_report report = {.type = FS_REPORT_SHARE};
	uint64_t *counts = server->journal->counts;

	counts[FS_COUNT_HIDDEN] = server->guard.scanned.hidden_count;
	counts[FS_COUNT_PROTECTED] = server->guard.scanned.protected_count;
	counts[FS_COUNT_REFUSALS] = server->guard.refusals;
	counts[FS_COUNT_ERRORS] = server->counters.errors;
	counts[FS_COUNT_INVALID] = server->counters.invalid;
	counts[FS_COUNT_FULL] = server->counters.full;
	memcpy(report.counts, counts, sizeof(report.counts));
	journal_send(server->journal, &report, true);
}

void journal_finish(struct fs_server *server)
{
	struct journal *journal = server->journal;
	uint64_t begin = clock_monotonic_ns();

	if (!journal)
		return;
	for (struct journal_entry *entry = journal->table.oldest; entry && journal->fd >= 0;
	     entry = entry->newer)
		finish_entry(server, entry,
			     clock_monotonic_ns() - begin <
				     LIMIT_JOURNAL_END_MS * (uint64_t)CLOCK_NS_PER_MS);
	send_refusals(server);
	send_share(server);
	fd_close(&journal->fd);
}
