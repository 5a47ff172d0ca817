/* SPDX-License-Identifier: Apache-2.0 */
/* A share to attack, with a canary beside it, and a host that never rests. */
#ifndef MVAGENT_TESTS_FUSE_TREE_H
#define MVAGENT_TESTS_FUSE_TREE_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANARY "canary"

struct tree {
	char base[64], share[80], outside[80], upper[80];
	char swapped[96], escape[96];
	pthread_t thread;
	volatile bool stop;
};

/* Whatever the tests themselves need must work. */
static inline void need(bool condition, const char *what)
{
	if (!condition) {
		perror(what);
		exit(1);
	}
}

static inline void tree_write(const char *directory, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	need(fd >= 0, path);
	need(write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static inline bool tree_holds(const char *directory, const char *name, const char *text)
{
	char path[128], found[64] = {0};
	struct stat status;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (lstat(path, &status) || status.st_nlink != 1 || status.st_mode != (S_IFREG | 0644))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, found, sizeof(found) - 1) < 0)
		return false;
	close(fd);
	return strcmp(found, text) == 0;
}

static inline int tree_count(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	need(directory != NULL, path);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static inline void tree_create(struct tree *tree)
{
	char path[128];

	memset(tree, 0, sizeof(*tree));
	snprintf(tree->base, sizeof(tree->base), "%s/mvagent-hostile-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	need(mkdtemp(tree->base) != NULL, tree->base);
	snprintf(tree->share, sizeof(tree->share), "%s/share", tree->base);
	snprintf(tree->outside, sizeof(tree->outside), "%s/outside", tree->base);
	snprintf(tree->upper, sizeof(tree->upper), "%s/upper", tree->base);
	snprintf(tree->swapped, sizeof(tree->swapped), "%s/swapped", tree->share);
	snprintf(tree->escape, sizeof(tree->escape), "%s/escape", tree->share);
	need(mkdir(tree->share, 0755) == 0 && mkdir(tree->outside, 0755) == 0, tree->share);
	need(mkdir(tree->swapped, 0755) == 0, tree->swapped);
	need(mkdir(tree->upper, 0755) == 0, tree->upper);
	need(symlink("../outside", tree->escape) == 0, tree->escape);
	tree_write(tree->outside, "canary", CANARY);
	tree_write(tree->swapped, "canary", "harmless");
	tree_write(tree->share, "f", "text");
	snprintf(path, sizeof(path), "%s/d", tree->share);
	need(mkdir(path, 0755) == 0, path);
	snprintf(path, sizeof(path), "%s/l", tree->share);
	need(symlink("../outside/canary", path) == 0, path);
	snprintf(path, sizeof(path), "%s/p", tree->share);
	need(mkfifo(path, 0644) == 0, path);
}

static inline void *tree_swap(void *opaque)
{
	struct tree *tree = opaque;

	/* The guest may remove either; then there is nothing to swap for a while. */
	while (!tree->stop)
		if (renameat2(AT_FDCWD, tree->swapped, AT_FDCWD, tree->escape, RENAME_EXCHANGE))
			usleep(100);
	return NULL;
}

static inline void tree_start_swapping(struct tree *tree)
{
	need(pthread_create(&tree->thread, NULL, tree_swap, tree) == 0, "pthread_create");
}

static inline void tree_stop_swapping(struct tree *tree)
{
	tree->stop = true;
	pthread_join(tree->thread, NULL);
}

static inline bool tree_canary_lives(const struct tree *tree)
{
	return tree_count(tree->outside) == 3 && tree_holds(tree->outside, "canary", CANARY);
}

static inline bool tree_unchanged(const struct tree *tree)
{
	return tree_count(tree->share) == 2 + 6 && tree_holds(tree->share, "f", "text");
}

static inline int tree_remove_one(const char *path, const struct stat *status, int flag,
				  struct FTW *walk)
{
	(void)status;
	(void)flag;
	(void)walk;
	return remove(path);
}

static inline void tree_destroy(struct tree *tree)
{
	need(nftw(tree->base, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, tree->base);
}

#endif
