/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/program_output.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"

static int start(char *const *arguments, const char *directory, int output, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addchdir_np(&actions, directory);
	error = posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static void read_all(int fd, char *text)
{
	size_t length = 0;
	ssize_t count = 1;

	while (count != 0 && length < PROGRAM_OUTPUT_BYTES) {
		count = read(fd, text + length, PROGRAM_OUTPUT_BYTES - length);
		if (count < 0 && errno != EINTR)
			break;
		length += count > 0 ? (size_t)count : 0;
	}
	text[length] = '\0';
}

char *program_output(char *const *arguments, const char *directory)
{
	char *text = malloc(PROGRAM_OUTPUT_BYTES + 1);
	int ends[2] = {-1, -1}, status = -1, error;
	pid_t child = 0;

	if (!text)
		return NULL;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		error = errno;
	} else {
		error = start(arguments, directory, ends[1], &child);
		fd_close(&ends[1]);
	}
	if (!error) {
		read_all(ends[0], text);
		/* One that has more to say than is read here does not wait for ever. */
		fd_close(&ends[0]);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		error = status == 0 ? 0 : ENODATA;
	}
	fd_close(&ends[0]);
	if (!error)
		return text;
	free(text);
	errno = error;
	return NULL;
}
