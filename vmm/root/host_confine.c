/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/jail/jail.h"
#include "vmm/root/host_tree.h"

struct places {
	unsigned int count;
	int list[LIMIT_ROOT_PLACES];
};

/* Takes over @fd. */
static int add_place(struct places *places, int fd)
{
	if (places->count == ARRAY_SIZE(places->list)) {
		fd_close(&fd);
		return -E2BIG;
	}
	places->list[places->count++] = fd;
	return 0;
}

static int add_matches(struct places *places, int directory_fd, const char *pattern);

/* One name that matches the first of the pattern. Links need no place: they are never followed. */
static int add_match(struct places *places, int directory_fd, const char *name, const char *rest)
{
	int fd = host_open(directory_fd, name, O_PATH | O_NOFOLLOW);
	int error;

	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : 0;
	if (!*rest)
		return add_place(places, fd);
	error = add_matches(places, fd, rest + 1);
	fd_close(&fd);
	return error;
}

/* Adds what a pattern of several names means below a directory. */
static int add_matches(struct places *places, int directory_fd, const char *pattern)
{
	size_t length = strcspn(pattern, "/");
	int fd = host_open(directory_fd, ".", O_RDONLY | O_DIRECTORY);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char first[NAME_MAX + 1];
	int error = 0;

	if (!directory || length > NAME_MAX) {
		fd_close(&fd);
		return 0;
	}
	memcpy(first, pattern, length);
	first[length] = '\0';
	while (!error && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fnmatch(first, entry->d_name, 0) != 0)
			continue;
		error = add_match(places, fd, entry->d_name, pattern + length);
	}
	closedir(directory);
	return error;
}

static int add_source(struct places *places, const struct plan_source *source)
{
	int error = 0;

	if (!source->only)
		return add_place(places, fcntl(source->fd, F_DUPFD_CLOEXEC, 0));
	for (const char *const *pattern = source->only; *pattern && !error; pattern++)
		error = add_matches(places, source->fd, *pattern);
	return error;
}

static int add_plan(struct places *places, const struct host_plan *plan)
{
	int error = 0;

	for (unsigned int i = 0; plan && i < plan->source_count && !error; i++)
		error = add_source(places, &plan->sources[i]);
	return error;
}

static int enter(const struct host_plan *plan, const struct places *places, bool allow_degraded,
		 uint8_t *walls)
{
	struct jail_directory directories[LIMIT_ROOT_SOURCES];
	unsigned int count = 0;

	for (; plan && count < plan->source_count; count++)
		directories[count] = (struct jail_directory){.fd = plan->sources[count].fd};
	return jail_enter(&(struct jail){
		.directories = directories,
		.directory_count = count,
		.places = places->list,
		.place_count = places->count,
		.allow_degraded = allow_degraded,
		.walls = walls,
	});
}

int host_confine(const struct host_plan *plan, bool allow_degraded, uint8_t *walls)
{
	struct places *places = calloc(1, sizeof(*places));
	int error = places ? add_plan(places, plan) : -ENOMEM;

	if (error)
		log_errno(error, "cannot confine mvagent-blk to its files");
	else
		error = enter(plan, places, allow_degraded, walls);
	for (unsigned int i = 0; places && i < places->count; i++)
		fd_close(&places->list[i]);
	free(places);
	return error;
}
