/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a journal tells of, found by the path that they have now or had before the run.
 * A file that was not there before has no old path; one that is gone has no new one.
 */
#ifndef MVAGENT_FS_JOURNAL_TABLE_H
#define MVAGENT_FS_JOURNAL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define JOURNAL_BUCKETS 16384U

struct journal_entry {
	struct journal_entry *next_now; /* in its buckets */
	struct journal_entry *next_was;
	struct journal_entry *newer; /* all of them, in the order in which they came */
	struct journal_entry *older;
	char *now;
	char *was;
	uint32_t mode_before; /* type and permissions; 0: not known */
	uint64_t size_before;
	bool contents; /* they may have been changed */
	bool has_hash;
	uint8_t hash_before[32];
};

struct journal_table {
	struct journal_entry *by_now[JOURNAL_BUCKETS];
	struct journal_entry *by_was[JOURNAL_BUCKETS];
	struct journal_entry *oldest;
	struct journal_entry *newest;
	unsigned int created; /* entries without an old path */
	unsigned int found;   /* the others */
};

/* The file at that path; NULL: none is known. */
struct journal_entry *journal_table_find(struct journal_table *table, const char *path);

/* The one that was there before the run and is gone. */
struct journal_entry *journal_table_find_gone(struct journal_table *table, const char *path);

/* Whether the one that was at that path is at another now. */
bool journal_table_has_moved(const struct journal_table *table, const char *path);

/* Adds a file at @path, which was at @was before the run (NULL: it was not there). NULL: no memory,
 * or as many as are told of; those that @matter have room of their own. */
struct journal_entry *journal_table_add(struct journal_table *table, const char *path,
					const char *was, bool matters);

/* Gives it another path (NULL: it is gone); without memory it is forgotten. */
void journal_table_move(struct journal_table *table, struct journal_entry *entry, const char *path);

/* The same for all that is below a directory. */
void journal_table_move_below(struct journal_table *table, const char *from, const char *to);

void journal_table_remove(struct journal_table *table, struct journal_entry *entry);
void journal_table_destroy(struct journal_table *table);

#endif
