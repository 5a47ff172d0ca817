/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of two layers as one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/fs/dirent.h"
#include "vmm/fs/layer_internal.h"
#include "vmm/fs/operation.h"

#define LISTING_START_BYTES 16384U

struct lister {
	struct layer_listing *listing;
	size_t capacity;
	size_t room;
	/* Where the names of the upper layer are in the listing, in their order. (In a hash table,
	 * the guest could choose names that collide.) */
	uint32_t *names;
	uint32_t name_count;
};

/* Opens the directory behind an O_PATH descriptor. NULL with errno. */
static DIR *list_open(const struct fs_server *server, int fd)
{
	int opened = path_reopen(server->proc_fd, fd, O_RDONLY | O_DIRECTORY);
	DIR *directory;

	if (opened < 0) {
		errno = -opened;
		return NULL;
	}
	directory = fdopendir(opened);
	if (!directory)
		fd_close(&opened);
	return directory;
}

/* The next entry other than "." and "..", or NULL with *@error. */
static const struct dirent *list_next(DIR *directory, int *error)
{
	const struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(directory);
	} while (entry && dirent_is_dot(entry->d_name));
	*error = -errno;
	return entry;
}

static bool list_is_whiteout(int directory_fd, const struct dirent *entry)
{
	struct statx status;

	if (entry->d_type != DT_CHR && entry->d_type != DT_UNKNOWN)
		return false;
	return path_look(directory_fd, entry->d_name, &status) == 0 && layer_is_whiteout(&status);
}

/* Whether nothing of the upper layer, or nothing of the lower one that the upper one does not hide,
 * is there. */
static int list_check_empty(DIR *directory, bool upper, int upper_fd)
{
	const struct dirent *entry;
	struct statx status;
	int error;

	while ((entry = list_next(directory, &error))) {
		if (upper && list_is_whiteout(dirfd(directory), entry))
			continue;
		if (!upper && upper_fd >= 0 && path_look(upper_fd, entry->d_name, &status) == 0)
			continue;
		return -ENOTEMPTY;
	}
	return error;
}

static int list_check_layer(const struct fs_server *server, int fd, bool upper, int upper_fd)
{
	DIR *directory = list_open(server, fd);
	int error;

	if (!directory)
		return -errno;
	error = list_check_empty(directory, upper, upper_fd);
	closedir(directory);
	return error;
}

int layer_check_empty(const struct fs_server *server, const struct path_entry *entry)
{
	struct layer_hold hold;
	int error;

	if (entry->layers == INODE_LOWER)
		return list_check_layer(server, entry->fd, false, -1);
	error = layer_hold(server, entry->fd, &hold);
	if (error)
		return error;
	error = list_check_layer(server, entry->fd, true, -1);
	if (!error && entry->layers == INODE_MERGED)
		error = list_check_layer(server, entry->lower_fd, false, entry->fd);
	layer_release(server, &hold);
	return error;
}

int layer_remove_whiteouts(const struct fs_server *server, int fd)
{
	const struct dirent *entry;
	struct layer_hold hold;
	int error = layer_hold(server, fd, &hold);
	DIR *directory;

	if (error)
		return error;
	directory = list_open(server, fd);
	if (!directory)
		error = -errno;
	while (!error && (entry = list_next(directory, &error))) {
		if (list_is_whiteout(dirfd(directory), entry) &&
		    unlinkat(dirfd(directory), entry->d_name, 0))
			error = -errno;
	}
	if (directory)
		closedir(directory);
	layer_release(server, &hold);
	return error;
}

static const struct linux_dirent64 *list_entry(const struct layer_listing *listing, size_t at)
{
	return (const void *)(listing->bytes + at);
}

static int list_compare(const void *one, const void *other, void *context)
{
	const uint32_t *at = one, *other_at = other;

	return strcmp(list_entry(context, *at)->d_name, list_entry(context, *other_at)->d_name);
}

static bool lister_has(const struct lister *lister, const char *name)
{
	uint32_t low = 0, high = lister->name_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const uint32_t at = lister->names[middle];
		int order = strcmp(name, list_entry(lister->listing, at)->d_name);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

/* Adds room for so many bytes. */
static int lister_grow(struct lister *lister, size_t size)
{
	struct layer_listing *grown;
	size_t wanted = lister->capacity ? lister->capacity * 2 : LISTING_START_BYTES;

	if (lister->listing && lister->listing->size + size <= lister->capacity)
		return 0;
	wanted = bytes_minimum(wanted, lister->room);
	if ((lister->listing ? lister->listing->size : 0) + size > wanted)
		return -ENOMEM;
	grown = realloc(lister->listing, sizeof(*grown) + wanted);
	if (!grown)
		return -ENOMEM;
	if (!lister->listing)
		grown->size = 0;
	lister->listing = grown;
	lister->capacity = wanted;
	return 0;
}

static int lister_add(struct lister *lister, const char *name, uint64_t number, uint8_t type)
{
	size_t length = strlen(name) + 1;
	size_t size = bytes_align_up(offsetof(struct linux_dirent64, d_name) + length, 8);
	int error = lister_grow(lister, size);
	struct linux_dirent64 *entry;

	if (error)
		return error;
	entry = (void *)(lister->listing->bytes + lister->listing->size);
	lister->listing->size += size;
	memset(entry, 0, size);
	entry->d_ino = number;
	entry->d_off = (int64_t)lister->listing->size;
	entry->d_reclen = (uint16_t)size;
	entry->d_type = type;
	memcpy(entry->d_name, name, length);
	return 0;
}

/* Makes it known which names the listing has so far. */
static int lister_index(struct lister *lister)
{
	struct layer_listing *listing = lister->listing;
	uint32_t count = 0;

	lister->names = calloc(lister->name_count + 1, sizeof(*lister->names));
	if (!lister->names)
		return -ENOMEM;
	for (size_t at = 0; at < listing->size; at += list_entry(listing, at)->d_reclen)
		if (!dirent_is_dot(list_entry(listing, at)->d_name))
			lister->names[count++] = (uint32_t)at;
	qsort_r(lister->names, count, sizeof(*lister->names), list_compare, listing);
	return 0;
}

static int lister_add_upper(struct lister *lister, const struct fs_server *server, DIR *directory)
{
	const struct dirent *entry;
	int error;

	while ((entry = list_next(directory, &error))) {
		bool whiteout = list_is_whiteout(dirfd(directory), entry);
		uint64_t number =
			whiteout ? 0 : layer_shown_number(server, dirfd(directory), entry->d_name);

		error = lister_add(lister, entry->d_name, number,
				   whiteout ? DT_WHT : entry->d_type);
		if (error)
			return error;
		lister->name_count++;
	}
	return error;
}

static int lister_add_lower(struct lister *lister, DIR *directory)
{
	const struct dirent *entry;
	int error;

	while ((entry = list_next(directory, &error))) {
		if (lister_has(lister, entry->d_name))
			continue;
		error = lister_add(lister, entry->d_name, entry->d_ino, entry->d_type);
		if (error)
			return error;
	}
	return error;
}

int layer_list(struct fs_server *server, const struct inode *directory, size_t room,
	       struct layer_listing **listing)
{
	struct lister lister = {.room = room};
	const struct inode *parent = inode_find(&server->inodes, directory->parent);
	DIR *upper = list_open(server, directory->fd);
	DIR *lower = upper ? list_open(server, directory->lower_fd) : NULL;
	int error = lower ? 0 : -errno;

	if (!error)
		error = lister_add(&lister, ".", layer_number(server, directory), DT_DIR);
	if (!error)
		error = lister_add(&lister, "..", layer_number(server, parent ? parent : directory),
				   DT_DIR);
	if (!error)
		error = lister_add_upper(&lister, server, upper);
	if (!error)
		error = lister_index(&lister);
	if (!error)
		error = lister_add_lower(&lister, lower);
	free(lister.names);
	if (upper)
		closedir(upper);
	if (lower)
		closedir(lower);
	if (error)
		free(lister.listing);
	else
		*listing = lister.listing;
	return error;
}

size_t layer_listing_seek(const struct layer_listing *listing, uint64_t position)
{
	size_t at = 0;

	while (at < listing->size && at < position)
		at += list_entry(listing, at)->d_reclen;
	return at;
}

const struct linux_dirent64 *layer_listing_at(const struct layer_listing *listing, size_t at)
{
	while (at < listing->size && list_entry(listing, at)->d_type == DT_WHT)
		at += list_entry(listing, at)->d_reclen;
	return at < listing->size ? list_entry(listing, at) : NULL;
}
