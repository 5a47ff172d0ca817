/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/journal_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"

static unsigned int bucket_of(const char *path)
{
	uint32_t hash = 2166136261U;

	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 16777619U;
	return hash % JOURNAL_BUCKETS;
}

struct journal_entry *journal_table_find(struct journal_table *table, const char *path)
{
	struct journal_entry *entry = table->by_now[bucket_of(path)];

	while (entry && strcmp(entry->now, path) != 0)
		entry = entry->next_now;
	return entry;
}

struct journal_entry *journal_table_find_gone(struct journal_table *table, const char *path)
{
	struct journal_entry *entry = table->by_was[bucket_of(path)];

	while (entry && (entry->now || strcmp(entry->was, path) != 0))
		entry = entry->next_was;
	return entry;
}

bool journal_table_has_moved(const struct journal_table *table, const char *path)
{
	const struct journal_entry *entry = table->by_was[bucket_of(path)];

	while (entry && strcmp(entry->was, path) != 0)
		entry = entry->next_was;
	return entry && entry->now && strcmp(entry->now, path) != 0;
}

static void link_now(struct journal_table *table, struct journal_entry *entry)
{
	struct journal_entry **bucket = &table->by_now[bucket_of(entry->now)];

	entry->next_now = *bucket;
	*bucket = entry;
}

static void unlink_now(struct journal_table *table, struct journal_entry *entry)
{
	struct journal_entry **at;

	if (!entry->now)
		return;
	for (at = &table->by_now[bucket_of(entry->now)]; *at != entry; at = &(*at)->next_now)
		;
	*at = entry->next_now;
}

static void unlink_was(struct journal_table *table, struct journal_entry *entry)
{
	struct journal_entry **at;

	if (!entry->was)
		return;
	for (at = &table->by_was[bucket_of(entry->was)]; *at != entry; at = &(*at)->next_was)
		;
	*at = entry->next_was;
}

static bool has_room(const struct journal_table *table, bool was_there, bool matters)
{
	unsigned int limit = LIMIT_JOURNAL_FILES + (matters ? LIMIT_JOURNAL_MATTERS : 0);

	return (was_there ? table->found : table->created) < limit;
}

struct journal_entry *journal_table_add(struct journal_table *table, const char *path,
					const char *was, bool matters)
{
	struct journal_entry *entry =
		has_room(table, was, matters) ? calloc(1, sizeof(*entry)) : NULL;
	struct journal_entry **bucket;

	if (!entry)
		return NULL;
	entry->now = strdup(path);
	entry->was = was ? strdup(was) : NULL;
	if (!entry->now || (was && !entry->was)) {
		free(entry->now);
		free(entry->was);
		free(entry);
		return NULL;
	}
	link_now(table, entry);
	if (was) {
		bucket = &table->by_was[bucket_of(was)];
		entry->next_was = *bucket;
		*bucket = entry;
	}
	entry->older = table->newest;
	*(table->newest ? &table->newest->newer : &table->oldest) = entry;
	table->newest = entry;
	*(was ? &table->found : &table->created) += 1;
	return entry;
}

void journal_table_move(struct journal_table *table, struct journal_entry *entry, const char *path)
{
	char *copy = path ? strdup(path) : NULL;

	if (path && !copy) {
		journal_table_remove(table, entry);
		return;
	}
	unlink_now(table, entry);
	free(entry->now);
	entry->now = copy;
	if (copy)
		link_now(table, entry);
}

void journal_table_move_below(struct journal_table *table, const char *from, const char *to)
{
	size_t length = strlen(from);
	struct journal_entry *newer;

	for (struct journal_entry *entry = table->oldest; entry; entry = newer) {
		char *path = NULL;

		newer = entry->newer;
		if (!entry->now || strncmp(entry->now, from, length) != 0 ||
		    entry->now[length] != '/')
			continue;
		if (asprintf(&path, "%s%s", to, entry->now + length) < 0) {
			journal_table_remove(table, entry);
			continue;
		}
		journal_table_move(table, entry, path);
		free(path);
	}
}

void journal_table_remove(struct journal_table *table, struct journal_entry *entry)
{
	unlink_now(table, entry);
	unlink_was(table, entry);
	*(entry->older ? &entry->older->newer : &table->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &table->newest) = entry->older;
	*(entry->was ? &table->found : &table->created) -= 1;
	free(entry->now);
	free(entry->was);
	free(entry);
}

void journal_table_destroy(struct journal_table *table)
{
	struct journal_entry *newer;

	for (struct journal_entry *entry = table->oldest; entry; entry = newer) {
		newer = entry->newer;
		free(entry->now);
		free(entry->was);
		free(entry);
	}
}
