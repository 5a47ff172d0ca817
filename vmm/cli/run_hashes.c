/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_hashes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/sha256.h"
#include "vmm/cli/supervisor.h"

#define KNOWN_FILE    "hashes"
#define KNOWN_NEW     "hashes.new"
#define KNOWN_MAX     ((size_t)256) /* lines */
#define IDENTITY_SIZE ((size_t)112)
#define LINE_SIZE     (IDENTITY_SIZE + SHA256_HEX_SIZE + 1)
#define FILES_MAX     12U

/* A change so long ago cannot be followed by one with the same time. */
#define SETTLED_SECONDS 3

#define WAIT_MS 50

struct hashed_file {
	const char *name;
	int fd;
	char identity[IDENTITY_SIZE];
	bool settled;
	bool known;
	bool hashed; /* by this run */
	char hash[SHA256_HEX_SIZE];
};

struct run_hashes {
	int cache_fd;
	unsigned int count;
	struct hashed_file files[FILES_MAX];
	pthread_t thread;
	bool running; /* the thread is to be joined */
	atomic_bool given_up;
};

/* Which file it is, and in which state. */
static void identify(struct hashed_file *file)
{
	struct stat status;

	if (fstat(file->fd, &status)) {
		fd_close(&file->fd);
		return;
	}
	snprintf(file->identity, sizeof(file->identity),
		 "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 ".%lx %" PRIx64 ".%lx",
		 (uint64_t)status.st_dev, (uint64_t)status.st_ino, (uint64_t)status.st_size,
		 (uint64_t)status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
		 (uint64_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
	file->settled = time(NULL) - status.st_ctim.tv_sec > SETTLED_SECONDS;
}

/* @fd is taken over; -1: it could not be opened. */
static void add_file(struct run_hashes *hashes, const char *name, int fd)
{
	struct hashed_file *file = &hashes->files[hashes->count++];

	*file = (struct hashed_file){.name = name, .fd = fd};
	if (fd >= 0)
		identify(file);
}

static void add_copy(struct run_hashes *hashes, const char *name, int fd)
{
	if (fd >= 0)
		add_file(hashes, name, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

static void add_programs(struct run_hashes *hashes, const struct installation *where)
{
	static const char *const programs[] = {"mvagent-vmm",   "mvagent-fs",     "mvagent-blk",
					       "mvagent-relay", "mvagent-secret", "mvagent-sign"};
	char path[PATH_MAX];

	add_file(hashes, "mvagent", open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	for (unsigned int i = 0; i < ARRAY_SIZE(programs); i++) {
		if (installation_program(where, programs[i], path) == 0)
			add_file(hashes, programs[i], open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
	}
}

/* Lines of "IDENTITY HASH". The text is allocated; empty when there is none. */
static char *read_known(int cache_fd)
{
	int FD_CLEANUP fd = openat(cache_fd, KNOWN_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text = calloc(1, KNOWN_MAX * LINE_SIZE + 1);
	struct stat status;

	if (text && fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH)) &&
	    read(fd, text, KNOWN_MAX * LINE_SIZE) < 0)
		*text = '\0';
	return text;
}

static void find_known(struct run_hashes *hashes, const char *known)
{
	for (unsigned int i = 0; i < hashes->count; i++) {
		struct hashed_file *file = &hashes->files[i];
		char wanted[IDENTITY_SIZE + 2];
		const char *found;

		if (file->fd < 0)
			continue;
		snprintf(wanted, sizeof(wanted), "%s ", file->identity);
		found = strstr(known, wanted);
		if (!found || (found != known && found[-1] != '\n'))
			continue;
		found += strlen(wanted);
		if (strspn(found, "0123456789abcdef") != SHA256_HEX_SIZE - 1)
			continue;
		memcpy(file->hash, found, SHA256_HEX_SIZE - 1);
		file->known = true;
	}
}

/* Puts what this run has hashed before what is known. Should it fail, it is hashed again. */
static void write_known(const struct run_hashes *hashes)
{
	char *known = read_known(hashes->cache_fd),
	     *text = calloc(1, 2 * KNOWN_MAX * LINE_SIZE + 1);
	int FD_CLEANUP fd = -1;
	unsigned int lines = 0;
	char *at = text, *line;

	if (known && text)
		fd = openat(hashes->cache_fd, KNOWN_NEW,
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	for (unsigned int i = 0; fd >= 0 && i < hashes->count; i++) {
		const struct hashed_file *file = &hashes->files[i];

		if (file->hashed && file->settled && ++lines)
			at += sprintf(at, "%s %s\n", file->identity, file->hash);
	}
	for (char *rest = known; fd >= 0 && lines && (line = strtok_r(rest, "\n", &rest));) {
		if (lines++ < KNOWN_MAX && strlen(line) < LINE_SIZE)
			at += sprintf(at, "%s\n", line);
	}
	if (fd >= 0 && (lines == 0 || fd_write_full(fd, text, (size_t)(at - text)) ||
			renameat(hashes->cache_fd, KNOWN_NEW, hashes->cache_fd, KNOWN_FILE)))
		unlinkat(hashes->cache_fd, KNOWN_NEW, 0);
	free(text);
	free(known);
}

static void hash_file(struct run_hashes *hashes, struct hashed_file *file)
{
	uint8_t buffer[65536], digest[SHA256_BYTES];
	struct sha256 hash;
	ssize_t length;
	off_t at = 0;

	sha256_begin(&hash);
	while ((length = pread(file->fd, buffer, sizeof(buffer), at)) > 0 &&
	       !atomic_load(&hashes->given_up)) {
		sha256_add(&hash, buffer, (size_t)length);
		at += length;
	}
	if (length)
		return;
	sha256_end(&hash, digest);
	sha256_format(digest, file->hash);
	file->hashed = true;
}

static void *hash_files(void *context)
{
	struct run_hashes *hashes = context;
	const struct sched_param none = {0};

	pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
	for (unsigned int i = 0; i < hashes->count; i++) {
		if (hashes->files[i].fd >= 0 && !hashes->files[i].known)
			hash_file(hashes, &hashes->files[i]);
	}
	return NULL;
}

static bool all_known(const struct run_hashes *hashes)
{
	for (unsigned int i = 0; i < hashes->count; i++) {
		if (hashes->files[i].fd >= 0 && !hashes->files[i].known)
			return false;
	}
	return true;
}

int run_hashes_begin(struct run_hashes **hashes, int cache_fd, const struct run_inputs *inputs,
		     const struct installation *where)
{
	struct run_hashes *created = calloc(1, sizeof(*created));
	char *known = created ? read_known(cache_fd) : NULL;

	if (!known) {
		free(created);
		return log_errno(-ENOMEM, "cannot hash what the run is made of");
	}
	created->cache_fd = cache_fd;
	add_programs(created, where);
	add_copy(created, "kernel", inputs->kernel_fd);
	add_copy(created, "initramfs", inputs->initrd_fd);
	/* One of the store is known by its digest already: record_line_add_root. */
	if (!inputs->image.is_stored)
		add_copy(created, "root_image", inputs->image_fd);
	find_known(created, known);
	free(known);
	*hashes = created;
	return 0;
}

void run_hashes_start(struct run_hashes *hashes)
{
	int error;

	if (all_known(hashes))
		return;
	error = pthread_create(&hashes->thread, NULL, hash_files, hashes);
	hashes->running = !error;
	if (error)
		log_errno(-error, "cannot hash what the run is made of");
}

/* Whether the thread has ended by itself. */
static bool wait_for_thread(struct run_hashes *hashes)
{
	struct timespec until;
	int error;

	do {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += WAIT_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		error = pthread_clockjoin_np(hashes->thread, NULL, CLOCK_MONOTONIC, &until);
	} while (error == ETIMEDOUT && !supervisor_pending_signal());
	return error == 0;
}

static void stop(struct run_hashes *hashes)
{
	if (!hashes->running)
		return;
	if (!wait_for_thread(hashes)) {
		atomic_store(&hashes->given_up, true);
		pthread_join(hashes->thread, NULL);
	}
	hashes->running = false;
}

cJSON *run_hashes_end(struct run_hashes *hashes)
{
	cJSON *object = cJSON_CreateObject();

	stop(hashes);
	for (unsigned int i = 0; i < hashes->count; i++) {
		const struct hashed_file *file = &hashes->files[i];

		if (file->known || file->hashed)
			cJSON_AddStringToObject(object, file->name, file->hash);
		else
			cJSON_AddNullToObject(object, file->name);
	}
	write_known(hashes);
	return object;
}

void run_hashes_destroy(struct run_hashes *hashes)
{
	if (!hashes)
		return;
	atomic_store(&hashes->given_up, true);
	stop(hashes);
	for (unsigned int i = 0; i < hashes->count; i++)
		fd_close(&hashes->files[i].fd);
	free(hashes);
}
