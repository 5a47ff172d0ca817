/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/sha256.h"
#include "vmm/fs/journal_internal.h"
#include "vmm/fs/operation.h"

int journal_create(struct journal **journal, int fd)
{
	*journal = NULL;
	if (fd <= STDIN_FILENO)
		return 0;
	*journal = calloc(1, sizeof(**journal));
	if (!*journal) {
		fd_close(&fd);
		return -ENOMEM;
	}
	(*journal)->fd = fd;
	fd_set_nonblocking(fd, 1);
	clock_gettime(CLOCK_REALTIME, &(*journal)->begin);
	return 0;
}

void journal_destroy(struct journal *journal)
{
	if (!journal)
		return;
	journal_table_destroy(&journal->table);
	fd_close(&journal->fd);
	free(journal);
}

void journal_send(struct journal *journal, const struct fs_report *report, bool wait)
{
	uint8_t bytes[FS_REPORT_BYTES];
	size_t length = fs_report_encode(report, bytes);

	while (journal->fd >= 0 && send(journal->fd, bytes, length, MSG_NOSIGNAL) < 0) {
		struct pollfd room = {.fd = journal->fd, .events = POLLOUT};

		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			fd_close(&journal->fd);
		else if (!wait || poll(&room, 1, (int)LIMIT_JOURNAL_END_MS) <= 0)
			return;
	}
}

/* False: it is too long, or not known, as of a file without a name. */
static bool find_path(struct fs_server *server, const struct inode *directory, const char *name,
		      struct journal_path *path)
{
	char *start = path->text, *at = start + sizeof(path->text) - 1;

	*at = '\0';
	for (unsigned int depth = 0; depth < LIMIT_FS_DEPTH; depth++) {
		size_t length = name ? strlen(name) : 0;

		if (!length || (size_t)(at - start) < length + 1)
			return false;
		if (*at)
			*--at = '/';
		at -= length;
		memcpy(at, name, length);
		if (!directory)
			return false;
		if (directory->id == FUSE_ROOT_ID) {
			memmove(start, at, strlen(at) + 1);
			return true;
		}
		name = directory->name;
		directory = inode_find(&server->inodes, directory->parent);
	}
	return false;
}

bool journal_hash(const struct fs_server *server, int path_fd, mode_t mode, uint64_t limit,
		  uint8_t hash[SHA256_BYTES])
{
	char target[LIMIT_FS_SYMLINK_BYTES + 1];
	FD_CLEANUP int fd = -1;
	ssize_t length;

	if (S_ISLNK(mode)) {
		length = readlinkat(path_fd, "", target, sizeof(target));
		if (length >= 0)
			sha256_of(target, (size_t)length, hash);
		return length >= 0;
	}
	if (!S_ISREG(mode))
		return false;
	fd = path_reopen(server->proc_fd, path_fd, O_RDONLY);
	return fd >= 0 && sha256_of_file(fd, limit, hash) == 0;
}

/* The contents may be lost from here on. @status: of the file. */
static void hash_before(struct fs_server *server, struct journal_entry *entry, int path_fd,
			const struct statx *status)
{
	struct journal *journal = server->journal;

	if (entry->contents)
		return;
	entry->contents = true;
	if (!entry->was)
		return;
	entry->size_before = status->stx_size;
	if (status->stx_size > LIMIT_JOURNAL_FILE_BYTES ||
	    journal->hashed_bytes + status->stx_size > LIMIT_JOURNAL_BYTES)
		return;
	journal->hashed_bytes += status->stx_size;
	entry->has_hash = journal_hash(server, path_fd, status->stx_mode, LIMIT_JOURNAL_FILE_BYTES,
				       entry->hash_before);
}

static void note_status(struct journal_entry *entry, const struct statx *status)
{
	entry->mode_before = status->stx_mode;
	entry->size_before = status->stx_size;
}

/* Whether a file that no entry is about was made in this run all the same: there was no room. */
static bool made_meanwhile(const struct journal *journal, const struct statx *status)
{
	return journal->full && status->stx_mask & STATX_BTIME &&
	       (status->stx_btime.tv_sec > journal->begin.tv_sec ||
		(status->stx_btime.tv_sec == journal->begin.tv_sec &&
		 status->stx_btime.tv_nsec > journal->begin.tv_nsec));
}

/* Where it was before the run: directories above it may have been moved since. False: the nearest
 * one that is known was not there. */
static bool find_old_path(struct journal *journal, const char *path, struct journal_path *was)
{
	memcpy(was->text, path, strlen(path) + 1); /* as long as any: of a journal_path */
	for (char *slash; (slash = strrchr(was->text, '/'));) {
		const struct journal_entry *above;

		*slash = '\0';
		above = journal_table_find(&journal->table, was->text);
		if (!above)
			continue;
		path += strlen(was->text);
		return above->was && snprintf(was->text, sizeof(was->text), "%s%s", above->was,
					      path) < (int)sizeof(was->text);
	}
	memcpy(was->text, path, strlen(path) + 1);
	return true;
}

/* An entry for what is there, and was before the run. NULL: no room. */
static struct journal_entry *add_found(struct journal *journal, const char *path,
				       const struct statx *status)
{
	struct journal_entry *entry;

	if (made_meanwhile(journal, status) || !find_old_path(journal, path, &journal->was))
		return NULL;
	entry = journal_table_add(&journal->table, path, journal->was.text,
				  journal_is_build_file(path));
	if (entry)
		note_status(entry, status);
	journal->full |= !entry;
	return entry;
}

void journal_before(struct fs_server *server, struct inode *inode, bool contents)
{
	struct journal *journal = server->journal;
	struct journal_entry *entry;
	struct statx status;
	int fd;

	if (!journal)
		return;
	journal->counts[FS_COUNT_OPENED] += contents;
	if (inode->journaled >= 1 + contents)
		return;
	inode->journaled = (uint8_t)(1 + contents);
	fd = path_inode_fd(&server->inodes, inode);
	if (fd < 0 || inode->identity.type == S_IFDIR || path_status(fd, &status) ||
	    !find_path(server, inode_find(&server->inodes, inode->parent), inode->name,
		       &journal->path))
		return;
	entry = journal_table_find(&journal->table, journal->path.text);
	if (!entry)
		entry = add_found(journal, journal->path.text, &status);
	if (!entry)
		journal->counts[FS_COUNT_UNTOLD]++;
	else if (contents)
		hash_before(server, entry, fd, &status);
}

static void note_removal(struct fs_server *server, struct journal_entry *entry, int path_fd,
			 const struct statx *status)
{
	if (!entry)
		entry = add_found(server->journal, server->journal->path.text, status);
	if (entry)
		hash_before(server, entry, path_fd, status);
}

void journal_before_removal(struct fs_server *server, const struct fs_place *place,
			    const struct inode *victim, const struct statx *status)
{
	struct journal *journal = server->journal;
	struct journal_entry *entry;
	struct path_entry found;

	if (!journal || !find_path(server, place->directory, place->name, &journal->path))
		return;
	entry = journal_table_find(&journal->table, journal->path.text);
	if (entry && (!entry->was || entry->contents))
		return;
	if (victim && victim->fd >= 0) {
		note_removal(server, entry, victim->fd, status);
		return;
	}
	if (path_open_entry(place->directory, place->name, &found))
		return;
	note_removal(server, entry, found.fd, &found.status);
	path_close_entry(&found);
}

void journal_made(struct fs_server *server, const struct fs_place *place)
{
	struct journal *journal = server->journal;
	struct journal_entry *entry;

	if (!journal)
		return;
	journal->counts[FS_COUNT_MADE]++;
	if (!find_path(server, place->directory, place->name, &journal->path)) {
		journal->counts[FS_COUNT_UNTOLD]++;
		return;
	}
	if (journal_table_find(&journal->table, journal->path.text))
		return;
	entry = journal_table_find_gone(&journal->table, journal->path.text);
	if (entry) {
		/* Deleted and made again: changed. */
		journal_table_move(&journal->table, entry, journal->path.text);
		return;
	}
	if (!journal_table_add(&journal->table, journal->path.text, NULL,
			       journal_is_build_file(journal->path.text))) {
		journal->full = true;
		journal->counts[FS_COUNT_UNTOLD]++;
	}
}

/* What an entry is about is not there any more. */
static void note_gone(struct journal *journal, struct journal_entry *entry)
{
	if (entry->was)
		journal_table_move(&journal->table, entry, NULL);
	else
		journal_table_remove(&journal->table, entry);
}

void journal_removed(struct fs_server *server, const struct fs_place *place)
{
	struct journal *journal = server->journal;
	struct journal_entry *entry = NULL;

	if (!journal)
		return;
	journal->counts[FS_COUNT_REMOVED]++;
	if (find_path(server, place->directory, place->name, &journal->path))
		entry = journal_table_find(&journal->table, journal->path.text);
	if (entry)
		note_gone(journal, entry);
	else
		journal->counts[FS_COUNT_UNTOLD]++;
}

/* What came from @from to @to replaced the file there: to the user, that one has changed, unless it
 * is another file of his that is there now. */
static void note_replaced(struct journal *journal, const char *from, const char *to)
{
	struct journal_entry *moved = journal_table_find(&journal->table, from);
	struct journal_entry *other = journal_table_find(&journal->table, to);

	/* Paths are as mvagent-fs has last seen them: of a directory that the host has moved it may
	 * have another one's. */
	if (moved && moved == other)
		return;
	if (!other)
		other = journal_table_find_gone(&journal->table, to);
	if (moved && !moved->was && other && other->was) {
		journal_table_remove(&journal->table, moved);
		journal_table_move(&journal->table, other, to);
		other->contents = true;
		return;
	}
	if (other && other->now)
		note_gone(journal, other);
	if (moved)
		journal_table_move(&journal->table, moved, to);
	else
		journal->counts[FS_COUNT_UNTOLD]++;
}

void journal_before_move(struct fs_server *server, const struct fs_place *place,
			 const struct statx *status)
{
	struct journal *journal = server->journal;

	if (journal && status->stx_mask &&
	    find_path(server, place->directory, place->name, &journal->path) &&
	    !journal_table_find(&journal->table, journal->path.text))
		add_found(journal, journal->path.text, status);
}

/* Between the two names of an exchange: no path is like it. */
#define ASIDE "/"

static void exchange(struct journal *journal, const char *from, const char *to)
{
	struct journal_entry *one, *other;

	/* Each is looked for when it is used: where memory runs out, moving removes entries. */
	journal_table_move_below(&journal->table, from, ASIDE);
	journal_table_move_below(&journal->table, to, from);
	journal_table_move_below(&journal->table, ASIDE, to);
	one = journal_table_find(&journal->table, from);
	if (one)
		journal_table_move(&journal->table, one, ASIDE);
	other = journal_table_find(&journal->table, to);
	if (other)
		journal_table_move(&journal->table, other, from);
	one = journal_table_find(&journal->table, ASIDE);
	if (one)
		journal_table_move(&journal->table, one, to);
	journal->counts[FS_COUNT_UNTOLD] += (one == NULL) + (uint64_t)(other == NULL);
}

void journal_moved(struct fs_server *server, const struct fs_place *from, const struct fs_place *to,
		   mode_t mode, bool exchanged)
{
	struct journal *journal = server->journal;

	if (!journal)
		return;
	journal->counts[FS_COUNT_MOVED]++;
	if (!find_path(server, from->directory, from->name, &journal->path) ||
	    !find_path(server, to->directory, to->name, &journal->other)) {
		journal->counts[FS_COUNT_UNTOLD]++;
		return;
	}
	if (exchanged) {
		exchange(journal, journal->path.text, journal->other.text);
		return;
	}
	note_replaced(journal, journal->path.text, journal->other.text);
	if (S_ISDIR(mode))
		journal_table_move_below(&journal->table, journal->path.text, journal->other.text);
}

void journal_count_mode(struct fs_server *server)
{
	if (server->journal)
		server->journal->counts[FS_COUNT_MODES]++;
}

static void set_text(char text[FS_REPORT_TEXT_BYTES + 1], const char *value)
{
	snprintf(text, FS_REPORT_TEXT_BYTES + 1, "%s", value);
}

void journal_refusal(struct fs_server *server, const char *path, const char *rule, bool hidden,
		     uint64_t count)
{
	struct fs_report report = {
		.type = FS_REPORT_REFUSAL,
		.flags = hidden ? FS_REPORT_HIDDEN : 0,
		.counts = {count},
	};

	if (!server->journal)
		return;
	set_text(report.path, path);
	set_text(report.other, rule);
	journal_send(server->journal, &report, false);
}

void journal_finding(struct fs_server *server, enum fs_report_finding finding, const char *path)
{
	struct fs_report report = {.type = FS_REPORT_FINDING, .kind = finding};

	if (!server->journal)
		return;
	set_text(report.path, path);
	journal_send(server->journal, &report, false);
}

void journal_walls(struct fs_server *server, uint8_t walls)
{
	struct fs_report report = {.type = FS_REPORT_WALLS, .counts = {walls}};

	if (server->journal)
		journal_send(server->journal, &report, true);
}
