/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/root/erofs_directory.h"
#include "vmm/root/erofs_format.h"

#define READ_BYTES (64U << 10)

/* Makes room for @bytes more in the buffer. */
static int need_bytes(struct host_names *names, size_t bytes)
{
	size_t size = names->size ? names->size : READ_BYTES;
	char *grown;

	while (size - names->used < bytes)
		size *= 2;
	if (size == names->size)
		return 0;
	grown = realloc(names->buffer, size);
	if (!grown)
		return -ENOMEM;
	names->buffer = grown;
	names->size = size;
	return 0;
}

static int add_name(struct host_names *names, const char *text, size_t length, uint16_t plan)
{
	int error = need_bytes(names, length + 1);

	if (error)
		return error;
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? names->capacity * 2 : 1024;
		struct host_name *grown = reallocarray(names->list, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		names->list = grown;
		names->capacity = capacity;
	}
	names->list[names->count++] =
		(struct host_name){.place = names->used, .length = (uint8_t)length, .plan = plan};
	memcpy(names->buffer + names->used, text, length + 1);
	names->used += length + 1;
	return 0;
}

static int add_host_names(struct host_names *names, int directory_fd)
{
	char entries[READ_BYTES] __attribute__((aligned(8)));
	ssize_t length;
	int error = 0;

	while ((length = getdents64(directory_fd, entries, sizeof(entries))) > 0) {
		for (ssize_t place = 0; place < length && !error;) {
			const struct dirent64 *entry = (const void *)(entries + place);
			size_t name_length = strlen(entry->d_name);

			place += entry->d_reclen;
			if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			    name_length > EROFS_NAME_MAXIMUM)
				continue;
			error = add_name(names, entry->d_name, name_length, 0);
		}
		if (error)
			return error;
	}
	return length < 0 ? -errno : 0;
}

/* By bytes; of two equal names the plan's comes first. */
static int compare(const void *a, const void *b, void *context)
{
	const struct host_name *left = a, *right = b;
	const char *buffer = context;
	const struct erofs_name left_name = {buffer + left->place, left->length, 0, 0};
	const struct erofs_name right_name = {buffer + right->place, right->length, 0, 0};
	int order = erofs_name_compare(&left_name, &right_name);

	return order ? order : (int)right->plan - (int)left->plan;
}

static void drop_doubles(struct host_names *names)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++) {
		if (kept &&
		    strcmp(host_names_text(names, kept - 1), host_names_text(names, i)) == 0)
			continue;
		names->list[kept++] = names->list[i];
	}
	names->count = kept;
}

int host_names_gather(struct host_names *names, int directory_fd, const struct host_plan *plan,
		      uint16_t entry, int has_entry)
{
	int error = 0;

	names->count = names->used = 0;
	if (directory_fd >= 0)
		error = add_host_names(names, directory_fd);
	if (has_entry) {
		uint16_t child = plan->entries[entry].first_child;

		for (; child && !error; child = plan->entries[child].next)
			error = add_name(names, plan->entries[child].name,
					 strlen(plan->entries[child].name), child);
	}
	if (error)
		return error;
	if (names->count)
		qsort_r(names->list, names->count, sizeof(*names->list), compare, names->buffer);
	drop_doubles(names);
	return 0;
}

void host_names_free(struct host_names *names)
{
	free(names->list);
	free(names->buffer);
	*names = (struct host_names){0};
}
