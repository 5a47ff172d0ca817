/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/base_list.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

struct base_entry {
	const char *path;
	struct review_base base;
	char text[]; /* of the path */
};

struct base_list {
	void *tree; /* of struct base_entry, see tsearch(3) */
	size_t bytes;
};

static int compare_entries(const void *one, const void *other)
{
	const struct base_entry *a = one, *b = other;

	return strcmp(a->path, b->path);
}

static int base_list_add(struct base_list *list, const char *path, const struct review_base *base)
{
	size_t length = strlen(path) + 1;
	struct base_entry *entry, **found;

	list->bytes += sizeof(*entry) + length;
	if (length > LIMIT_REVIEW_PATH_BYTES || list->bytes > LIMIT_REVIEW_LIST_BYTES)
		return -E2BIG;
	entry = malloc(sizeof(*entry) + length);
	if (!entry)
		return -ENOMEM;
	memcpy(entry->text, path, length);
	entry->path = entry->text;
	entry->base = *base;
	found = tsearch(entry, &list->tree, compare_entries);
	if (!found) {
		free(entry);
		return -ENOMEM;
	}
	if (*found != entry) {
		(*found)->base = *base;
		free(entry);
		list->bytes -= sizeof(*entry) + length;
	}
	return 0;
}

static int base_list_add_line(struct base_list *list, char *line, ssize_t length, size_t number)
{
	struct review_base base;
	const char *path;

	line[length - 1] = '\0';
	if (length > (ssize_t)REVIEW_LINE_BYTES || strlen(line) != (size_t)length - 1 ||
	    review_base_parse(line, &path, &base) < 0) {
		log_error("line %zu of the run's file " REVIEW_BASE
			  " is not what mvagent writes; what the host had cannot be told",
			  number);
		return -EPROTO;
	}
	return base_list_add(list, path, &base);
}

static FILE *base_open(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "r");

	if (!file)
		fd_close(&copy);
	return file;
}

int base_list_read(struct base_list **list, int fd)
{
	size_t number = 0, room = 0;
	struct stat status;
	char *line = NULL;
	ssize_t length;
	int error = 0;
	FILE *file;

	*list = calloc(1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	if (fstat(fd, &status))
		return -errno;
	if (status.st_size > 4LL * LIMIT_REVIEW_LIST_BYTES)
		return -E2BIG;
	file = base_open(fd);
	if (!file)
		return -errno;
	while (!error && (length = getline(&line, &room, file)) > 0) {
		if (line[length - 1] == '\n')
			error = base_list_add_line(*list, line, length, ++number);
	}
	if (!error && ferror(file))
		error = -EIO;
	free(line);
	fclose(file);
	return error;
}

void base_list_destroy(struct base_list *list)
{
	if (!list)
		return;
	tdestroy(list->tree, free);
	free(list);
}

const struct review_base *base_list_find(const struct base_list *list, const char *path)
{
	const struct base_entry wanted = {.path = path};
	struct base_entry **found = tfind(&wanted, &list->tree, compare_entries);

	return found ? &(*found)->base : NULL;
}
