/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/diff_process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

/* What the child's descriptors are: numbers past the standard ones, the same in every run. */
#define CHILD_OLD_FD  3
#define CHILD_NEW_FD  4
#define FIRST_FREE_FD 10 /* ours, while the child's are put in place */

#define PIPE_BYTES 65536U

struct diff_child {
	pid_t pid;
	int output_fd;
};

/* A copy with a number that is none of the child's, or /dev/null. fd or -errno. */
static int copy_input(int fd)
{
	int FD_CLEANUP null = fd < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	int copy = fcntl(fd < 0 ? null : fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);

	return copy < 0 ? -errno : copy;
}

/* Where the program may be; not the user's PATH, which may lead into a work tree. */
static const char *const programs[] = {"/usr/bin/diff", "/bin/diff", "/usr/local/bin/diff",
				       "/run/current-system/sw/bin/diff"};

const char *diff_process_find(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (access(programs[i], X_OK) == 0)
			return programs[i];
	}
	return NULL;
}

static int spawn(struct diff_child *child, int old_fd, int new_fd, int pipe_fd)
{
	static char *const arguments[] = {
		"diff",    "-a", "-u", "--label",         "a",
		"--label", "b",  "--", "/proc/self/fd/3", "/proc/self/fd/4",
		NULL};
	static char *const environment[] = {"LC_ALL=C", NULL};
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return -error;
	error = posix_spawn_file_actions_adddup2(&actions, old_fd, CHILD_OLD_FD);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, new_fd, CHILD_NEW_FD);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, pipe_fd, STDOUT_FILENO);
	if (!error)
		error = ENOENT;
	for (size_t i = 0; error == ENOENT && i < ARRAY_SIZE(programs); i++)
		error = posix_spawn(&child->pid, programs[i], &actions, NULL, arguments,
				    environment);
	posix_spawn_file_actions_destroy(&actions);
	return error == ENOENT ? -ENOPKG : -error;
}

static int start(struct diff_child *child, int old_fd, int new_fd)
{
	int FD_CLEANUP old_copy = copy_input(old_fd), FD_CLEANUP new_copy = copy_input(new_fd);
	int FD_CLEANUP write_end = -1;
	int ends[2], error;

	if (old_copy < 0 || new_copy < 0)
		return old_copy < 0 ? old_copy : new_copy;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child->output_fd = ends[0];
	write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	error = write_end < 0 ? -errno : 0;
	fd_close(&ends[1]);
	if (!error)
		error = spawn(child, old_copy, new_copy, write_end);
	if (error)
		fd_close(&child->output_fd);
	return error;
}

/* Gives all but the first two lines, the names, to the sink. 0 or -errno. */
static int pass_hunks(int fd, diff_sink *sink, void *context)
{
	unsigned int lines = 2; /* still to be left out */
	char *buffer = malloc(PIPE_BYTES);
	int error = buffer ? 0 : -ENOMEM;

	while (!error) {
		ssize_t length = read(fd, buffer, PIPE_BYTES);
		char *text = buffer;

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0) {
			error = length < 0 ? -errno : 0;
			break;
		}
		while (lines && length) {
			lines -= *text++ == '\n';
			length--;
		}
		if (length)
			sink(context, text, (size_t)length);
	}
	free(buffer);
	return error;
}

int diff_process_run(int old_fd, int new_fd, diff_sink *sink, void *context)
{
	struct diff_child child = {.pid = -1, .output_fd = -1};
	int status, error = start(&child, old_fd, new_fd);

	if (error)
		return error;
	error = pass_hunks(child.output_fd, sink, context);
	fd_close(&child.output_fd);
	while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
		;
	/* diff(1): 0 is no difference, 1 is some, 2 is trouble, which it has told about. */
	if (!error && !(WIFEXITED(status) && WEXITSTATUS(status) <= 1))
		error = -EIO;
	return error;
}
