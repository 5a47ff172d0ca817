/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPARE_BYTES 65536U

int review_changes_add(struct review_changes *changes, const struct review_change *change)
{
	size_t length = strlen(change->path) + 1;
	struct review_change *added;

	if (changes->count == LIMIT_REVIEW_CHANGES ||
	    length > LIMIT_REVIEW_LIST_BYTES - changes->bytes)
		return -E2BIG;
	if (changes->count == changes->room) {
		size_t room = changes->room ? 2 * changes->room : 64;
		struct review_change *grown = reallocarray(changes->list, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		changes->list = grown;
		changes->room = room;
	}
	added = &changes->list[changes->count];
	*added = *change;
	added->path = strdup(change->path);
	if (!added->path)
		return -ENOMEM;
	changes->bytes += length;
	changes->count++;
	return 0;
}

void review_changes_destroy(struct review_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		free(changes->list[i].path);
	free(changes->list);
	*changes = (struct review_changes){0};
}

bool review_paths_cover(const struct review_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (tree_path_is_within(path, paths->paths[i]))
			return true;
	}
	return paths->count == 0;
}

bool review_paths_lead_through(const struct review_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (tree_path_is_within(paths->paths[i], path))
			return true;
	}
	return paths->count == 0;
}

/* Fills the buffer unless the file ends. Its length or -errno. */
static ssize_t read_block(int fd, char *buffer)
{
	size_t length = 0;

	while (length < COMPARE_BYTES) {
		ssize_t count = read(fd, buffer + length, COMPARE_BYTES - length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			break;
		length += (size_t)count;
	}
	return (ssize_t)length;
}

int review_same_content(int one, int other)
{
	char one_block[COMPARE_BYTES], other_block[COMPARE_BYTES];
	ssize_t one_length, other_length;

	do {
		one_length = read_block(one, one_block);
		other_length = read_block(other, other_block);
		if (one_length < 0 || other_length < 0)
			return (int)(one_length < 0 ? one_length : other_length);
		if (one_length != other_length ||
		    memcmp(one_block, other_block, (size_t)one_length) != 0)
			return 0;
	} while (one_length > 0);
	return 1;
}
