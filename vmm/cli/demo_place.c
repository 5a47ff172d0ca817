/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/demo_place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/review/upper.h"

struct sample {
	const char *path, *text;
	mode_t mode;
};

/* The project: a program with a mistake in it, and the test that finds it. */
static const struct sample samples[] = {
	{"project/README.md", "# greet\n\nSays hello: `sh greet.sh NAME`. `sh test.sh` tests it.\n",
	 0644},
	{"project/greet.sh", "echo \"Hello,$1!\"\n", 0644},
	{"project/test.sh",
	 "wanted='Hello, Ada!'\n"
	 "got=$(sh greet.sh Ada)\n"
	 "[ \"$got\" = \"$wanted\" ] || { echo \"FAILED: '$got', not '$wanted'\"; exit 1; }\n"
	 "echo 'all tests pass'\n",
	 0644},
};

static int write_file(const struct demo_place *place, const char *path, const char *text,
		      mode_t mode)
{
	FD_CLEANUP int fd =
		openat(place->directory_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
}

static int make_marks(struct demo_place *place)
{
	for (unsigned int i = 0; i < DEMO_SECRET_COUNT; i++) {
		unsigned char random[(DEMO_MARK_SIZE - 1) / 2];

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		for (unsigned int k = 0; k < sizeof(random); k++)
			snprintf(place->marks[i] + (size_t)2 * k, 3, "%02x", random[k]);
	}
	return setenv(DEMO_VARIABLE, place->marks[DEMO_SECRET_VARIABLE], 1) ? -errno : 0;
}

static int make_files(const struct demo_place *place)
{
	static const char *const directories[] = {"project", "home", "home/.ssh", "record"};
	char text[128];
	int error;

	for (unsigned int i = 0; i < ARRAY_SIZE(directories); i++) {
		if (mkdirat(place->directory_fd, directories[i], 0700) < 0)
			return -errno;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(samples); i++) {
		error = write_file(place, samples[i].path, samples[i].text, samples[i].mode);
		if (error)
			return error;
	}
	snprintf(text, sizeof(text), "(a private key) %s\n", place->marks[DEMO_SECRET_KEY]);
	error = write_file(place, "home/.ssh/id_ed25519", text, 0600);
	snprintf(text, sizeof(text), "TOKEN=%s\n", place->marks[DEMO_SECRET_HIDDEN]);
	return error ? error : write_file(place, "project/.env", text, 0600);
}

/* A repository of it, where this host has git: the rest of the demo does without. */
static int make_repository(const struct demo_place *place)
{
	static const char script[] =
		"command -v git >/dev/null || exit 0\n"
		"export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1\n"
		"unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY\n"
		"printf '.env\\n' >.gitignore && git init -q --template= &&\n"
		"git add -A && git -c user.name=Developer -c user.email=developer@example.org "
		"commit -q -m 'Say hello'\n";
	pid_t child = fork();
	int status;

	if (child < 0)
		return -errno;
	if (child == 0) {
		if (chdir(place->project) == 0)
			execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return status == 0 ? 0 : -ECHILD;
}

static int make_listener(struct demo_place *place)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	place->listener_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (place->listener_fd < 0 ||
	    bind(place->listener_fd, (const struct sockaddr *)&address, length) < 0 ||
	    listen(place->listener_fd, 8) < 0 ||
	    getsockname(place->listener_fd, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	place->port = ntohs(address.sin_port);
	return 0;
}

int demo_place_create(struct demo_place *place)
{
	const char *parent = getenv("TMPDIR");
	int error;

	parent = parent && *parent == '/' && strlen(parent) < PATH_MAX / 2 ? parent : "/tmp";
	snprintf(place->path, sizeof(place->path), "%s/" DEMO_PLACE_PREFIX "XXXXXX", parent);
	if (!mkdtemp(place->path)) {
		error = -errno;
		place->path[0] = '\0';
		return log_errno(error, "cannot make a directory in %s", parent);
	}
	snprintf(place->project, sizeof(place->project), "%s/project", place->path);
	snprintf(place->home, sizeof(place->home), "%s/home", place->path);
	place->directory_fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = place->directory_fd < 0 || flock(place->directory_fd, LOCK_EX | LOCK_NB) ? -errno
											 : 0;
	error = error ? error : make_marks(place);
	error = error ? error : make_files(place);
	error = error ? error : make_listener(place);
	if (error)
		return log_errno(error, "cannot make what the demo needs in %s", place->path);
	error = make_repository(place);
	return error ? log_errno(error, "cannot make a git repository in %s", place->project) : 0;
}

bool demo_place_was_reached(const struct demo_place *place)
{
	struct pollfd poll_fd = {.fd = place->listener_fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

bool demo_place_has(const struct demo_place *place, const char *path)
{
	/* Whatever it may be that keeps us from looking: it is not known to be absent. */
	return faccessat(place->directory_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

void demo_place_destroy(struct demo_place *place)
{
	int error = place->directory_fd < 0 ? 0 : upper_remove_contents(place->directory_fd);

	if (place->path[0] && (error || rmdir(place->path) < 0))
		log_warning("%s could not be removed: %s", place->path,
			    strerror(error ? -error : errno));
	fd_close(&place->directory_fd);
	fd_close(&place->listener_fd);
	unsetenv(DEMO_VARIABLE);
	*place = DEMO_PLACE_NONE;
}
