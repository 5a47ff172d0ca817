/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/selftest_place.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/wire/selftest.h"

#define CANARY      "canary"
#define CANARY_TEXT "nobody changes this"
#define SOCKET      "socket"
#define IMAGE       "image"
#define INITRD      "initrd"
#define SHARE       "share"

/* All that is in the directory. */
static const char *const names[] = {CANARY, SOCKET, IMAGE, INITRD, SHARE};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

void selftest_place_init(struct selftest_place *place)
{
	*place = (struct selftest_place){
		.directory_fd = -1,
		.share_fd = -1,
		.image_fd = -1,
		.initrd_fd = -1,
		.local_fd = -1,
		.network_fd = -1,
		.process_fd = -1,
	};
}

static int place_write(int directory_fd, const char *name, const void *bytes, size_t length)
{
	FD_CLEANUP int fd =
		openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd_write_full(fd, bytes, length);
}

/* A share with a file, and a link that leads out. */
static int place_make_share(struct selftest_place *place)
{
	int error;

	if (mkdirat(place->directory_fd, SHARE, 0700) < 0)
		return -errno;
	place->share_fd = openat(place->directory_fd, SHARE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place->share_fd < 0)
		return -errno;
	error = place_write(place->share_fd, "inside", "inside", 6);
	if (!error && symlinkat("../" CANARY, place->share_fd, "out") < 0)
		error = -errno;
	return error;
}

static int place_make_files(struct selftest_place *place)
{
	int error;

	place->image = malloc(SELFTEST_DISK_BYTES);
	if (!place->image)
		return -ENOMEM;
	for (uint32_t i = 0; i < SELFTEST_DISK_BYTES / sizeof(*place->image); i++)
		place->image[i] = SELFTEST_DISK_WORD + i;
	error = place_write(place->directory_fd, IMAGE, place->image, SELFTEST_DISK_BYTES);
	error = error ? error : place_write(place->directory_fd, INITRD, "not read", 8);
	error = error ? error
		      : place_write(place->directory_fd, CANARY, CANARY_TEXT, strlen(CANARY_TEXT));
	if (error)
		return error;
	place->image_fd = openat(place->directory_fd, IMAGE, O_RDONLY | O_CLOEXEC);
	place->initrd_fd = openat(place->directory_fd, INITRD, O_RDONLY | O_CLOEXEC);
	if (place->image_fd < 0 || place->initrd_fd < 0 ||
	    fstatat(place->directory_fd, CANARY, &place->canary, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	fdatasync(place->image_fd); /* or its pages could not be dropped from the cache */
	return 0;
}

static int place_make_sockets(struct selftest_place *place)
{
	const struct sockaddr_in network = {.sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un local = {.sun_family = AF_UNIX};

	snprintf(local.sun_path, sizeof(local.sun_path), "%s/" SOCKET, place->path);
	place->local_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (place->local_fd < 0 ||
	    bind(place->local_fd, (const struct sockaddr *)&local, sizeof(local)) < 0 ||
	    listen(place->local_fd, 8) < 0)
		return -errno;
	place->network_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (place->network_fd >= 0 &&
	    (bind(place->network_fd, (const struct sockaddr *)&network, sizeof(network)) < 0 ||
	     listen(place->network_fd, 8) < 0))
		fd_close(&place->network_fd);
	return 0;
}

static noreturn void place_sleep(pid_t parent)
{
	sigset_t all;
	int number;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent) /* or it is gone already */
		sigwait(&all, &number);
	_exit(1);
}

static int place_start_process(struct selftest_place *place)
{
	const pid_t parent = getpid();

	place->process = fork();
	if (place->process < 0)
		return -errno;
	if (place->process == 0)
		place_sleep(parent);
	place->process_fd = (int)syscall(SYS_pidfd_open, place->process, 0);
	return place->process_fd < 0 ? -errno : 0;
}

int selftest_place_create(struct selftest_place *place)
{
	const char *parent = getenv("TMPDIR");
	int error;

	/* Short enough for the address of a socket in it. */
	if (!parent || !*parent || strlen(parent) > sizeof(place->path) - 32)
		parent = "/tmp";
	snprintf(place->path, sizeof(place->path), "%s/" SELFTEST_PLACE_PREFIX "XXXXXX", parent);
	if (!mkdtemp(place->path)) {
		error = -errno;
		place->path[0] = '\0';
		return log_errno(error, "cannot make a directory in %s", parent);
	}
	place->directory_fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* As long as it is locked it is not a killed process's. */
	error = place->directory_fd < 0 || flock(place->directory_fd, LOCK_EX | LOCK_NB) ? -errno
											 : 0;
	error = error ? error : place_make_share(place);
	error = error ? error : place_make_files(place);
	error = error ? error : place_make_sockets(place);
	error = error ? error : place_start_process(place);
	return error ? log_errno(error, "cannot make what the attacks must not reach") : 0;
}

/* All that is in a directory, also what a guest has made there; only what has something in it
 * stays. */
static void place_empty(const struct selftest_place *place, const char *name)
{
	int fd = openat(place->directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!directory) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(directory), entry->d_name, 0) < 0)
			unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
	}
	closedir(directory);
}

void selftest_place_destroy(struct selftest_place *place)
{
	if (place->process > 0) {
		kill(place->process, SIGKILL);
		waitpid(place->process, NULL, 0);
	}
	if (place->directory_fd >= 0) {
		place_empty(place, SHARE);
		place_empty(place, ".");
	}
	if (place->path[0] && rmdir(place->path) < 0)
		log_warning("%s could not be removed: %s", place->path, strerror(errno));
	fd_close(&place->directory_fd);
	fd_close(&place->share_fd);
	fd_close(&place->image_fd);
	fd_close(&place->initrd_fd);
	fd_close(&place->local_fd);
	fd_close(&place->network_fd);
	fd_close(&place->process_fd);
	free(place->image);
	selftest_place_init(place);
}

static bool canary_is_whole(const struct selftest_place *place)
{
	FD_CLEANUP int fd = openat(place->directory_fd, CANARY, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[sizeof(CANARY_TEXT)];
	struct stat now;

	return fd >= 0 && fstat(fd, &now) == 0 && now.st_ino == place->canary.st_ino &&
	       now.st_mode == place->canary.st_mode && now.st_nlink == 1 &&
	       now.st_mtim.tv_sec == place->canary.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == place->canary.st_mtim.tv_nsec &&
	       read(fd, text, sizeof(text)) == (ssize_t)strlen(CANARY_TEXT) &&
	       memcmp(text, CANARY_TEXT, strlen(CANARY_TEXT)) == 0;
}

static bool image_is_whole(const struct selftest_place *place)
{
	uint8_t bytes[65536];

	for (size_t offset = 0; offset < SELFTEST_DISK_BYTES; offset += sizeof(bytes)) {
		if (fd_pread_full(place->image_fd, bytes, sizeof(bytes), (off_t)offset) ||
		    memcmp(bytes, (const uint8_t *)place->image + offset, sizeof(bytes)) != 0)
			return false;
	}
	return true;
}

/* Whether the directory holds what it held, and nothing else. */
static bool names_are_whole(const struct selftest_place *place)
{
	int fd = openat(place->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	unsigned int found = 0, count = 0;

	if (!directory) {
		fd_close(&fd);
		return false;
	}
	for (const struct dirent *entry; (entry = readdir(directory)); count++) {
		for (unsigned int i = 0; i < NAME_COUNT; i++)
			found += strcmp(entry->d_name, names[i]) == 0;
	}
	closedir(directory);
	return found == NAME_COUNT && count == NAME_COUNT + 2; /* "." and ".." */
}

static bool is_ready(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&pollfd, 1, 0) != 0;
}

int selftest_place_check(struct selftest_place *place, char *why, size_t size)
{
	const char *changed = NULL;

	if (!canary_is_whole(place))
		changed = "a file beside the share has changed";
	else if (!image_is_whole(place))
		changed = "the disk's image has changed";
	else if (!names_are_whole(place))
		changed = "something was made or removed beside the share";
	else if (is_ready(place->local_fd) || is_ready(place->network_fd))
		changed = "somebody has connected to a socket of the host";
	else if (is_ready(place->process_fd))
		changed = "a process of the host was sent a signal";
	if (changed)
		snprintf(why, size, "%s", changed);
	return changed ? -EPERM : 0;
}
