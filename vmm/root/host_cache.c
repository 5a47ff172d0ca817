/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/host_cache_file.h"
#include "vmm/root/host_check.h"
#include "vmm/root/host_key.h"

/* A file that is being written by another process, or was left by one that was killed. */
#define STALE_SECONDS 60

struct host_cache {
	int directory_fd;
	char *key;
	size_t key_length;
	char name[40];
};

/* FNV-1a, 64 bits: it only has to tell a user's own few images apart. */
static uint64_t hash(const char *text, size_t length)
{
	uint64_t value = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (uint8_t)text[i]) * 0x100000001b3ULL;
	return value;
}

/* Nobody but the user can have put it there. */
static bool is_private(int fd, mode_t type)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type &&
	       status.st_uid == geteuid() && !(status.st_mode & (S_IRWXG | S_IRWXO));
}

int host_cache_open(struct host_cache **cache, int directory_fd, const struct host_plan *plan)
{
	struct host_cache *created;
	int error;

	*cache = NULL;
	if (directory_fd < 0)
		return 0;
	if (!is_private(directory_fd, S_IFDIR)) {
		log_warning("the cache of the root is not used: its directory is not yours alone");
		return 0;
	}
	created = calloc(1, sizeof(*created));
	if (!created)
		return log_errno(-ENOMEM, "cannot use the cache of the root");
	created->directory_fd = directory_fd;
	error = host_key_make(plan, &created->key, &created->key_length);
	if (error) {
		free(created);
		return log_errno(error, "cannot use the cache of the root");
	}
	snprintf(created->name, sizeof(created->name), HOST_CACHE_PREFIX "%016llx",
		 (unsigned long long)hash(created->key, created->key_length));
	*cache = created;
	return 0;
}

void host_cache_close(struct host_cache *cache)
{
	if (!cache)
		return;
	free(cache->key);
	free(cache);
}

int host_cache_load(struct host_cache *cache, const struct host_plan *plan,
		    struct host_image *image)
{
	FD_CLEANUP int fd = -1;

	if (!cache)
		return -ENOENT;
	fd = openat(cache->directory_fd, cache->name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	if (is_private(fd, S_IFREG) &&
	    host_cache_file_map(fd, cache->key, cache->key_length, image) == 0) {
		if (host_check_numbers(image, plan) && host_check_directories(image, plan))
			return 0;
		host_image_destroy(image);
	}
	unlinkat(cache->directory_fd, cache->name, 0);
	return -ENOENT;
}

/* A new file under a name that no reader looks for. Descriptor or -errno. */
static int create_new(struct host_cache *cache, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(cache->directory_fd, name, flags, 0600);
	struct stat status;

	if (fd >= 0)
		return fd;
	if (errno != EEXIST || fstatat(cache->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) ||
	    time(NULL) - status.st_mtime < STALE_SECONDS)
		return -EBUSY;
	unlinkat(cache->directory_fd, name, 0);
	fd = openat(cache->directory_fd, name, flags, 0600);
	return fd < 0 ? -errno : fd;
}

void host_cache_save(struct host_cache *cache, const struct host_image *image, int64_t second)
{
	FD_CLEANUP int fd = -1;
	char new_name[sizeof(cache->name) + 4];
	int error;

	if (!cache)
		return;
	if (!host_check_is_settled(image, second)) {
		log_info("the image of the root is not kept: the host changed just now");
		return;
	}
	host_cache_file_prune(cache->directory_fd);
	snprintf(new_name, sizeof(new_name), "%s.new", cache->name);
	fd = create_new(cache, new_name);
	if (fd < 0)
		return;
	error = host_cache_file_write(fd, cache->key, cache->key_length, image);
	if (!error && renameat(cache->directory_fd, new_name, cache->directory_fd, cache->name))
		error = -errno;
	if (error) {
		unlinkat(cache->directory_fd, new_name, 0);
		log_info("the image of the root is not kept: %s", strerror(-error));
	}
}
