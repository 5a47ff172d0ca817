/* SPDX-License-Identifier: Apache-2.0 */
/* A review command, run in a process of its own; what it printed is kept. */
#ifndef TESTS_UNIT_REVIEW_COMMAND_H
#define TESTS_UNIT_REVIEW_COMMAND_H

#include "tests/unit/review_fixture.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "vmm/cli/review_commands.h"

#define COMMAND_WORDS 8

struct command_result {
	int status;
	char output[65536];
	char errors[8192];
};

static inline void command_take(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	assert_true(length >= 0);
	text[length] = '\0';
}

/* Runs "diff", "apply"... with up to COMMAND_WORDS - 2 arguments, the last one NULL. */
static inline void command_run(struct command_result *result, const char *verb, ...)
{
	int FD_CLEANUP output = memfd_create("output", MFD_CLOEXEC);
	int FD_CLEANUP errors = memfd_create("errors", MFD_CLOEXEC);
	int (*command)(int, char **) = strcmp(verb, "diff") == 0      ? diff_command
				       : strcmp(verb, "apply") == 0   ? apply_command
				       : strcmp(verb, "discard") == 0 ? discard_command
								      : runs_command;
	char *words[COMMAND_WORDS + 1] = {(char *)verb};
	int status, count = 1;
	va_list arguments;
	pid_t child;

	va_start(arguments, verb);
	while ((words[count] = va_arg(arguments, char *)))
		assert_true(++count < COMMAND_WORDS);
	va_end(arguments);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(output, STDOUT_FILENO);
		dup2(errors, STDERR_FILENO);
		status = command(count, words);
		fflush(stdout);
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	result->status = WEXITSTATUS(status);
	command_take(output, result->output, sizeof(result->output));
	command_take(errors, result->errors, sizeof(result->errors));
}

static inline void command_expect(const struct command_result *result, int status,
				  const char *output, const char *error)
{
	if (result->status != status || (output && !strstr(result->output, output)) ||
	    (error && !strstr(result->errors, error)))
		fail_msg("status %d, wanted %d with '%s' and '%s'\n%s\n%s", result->status, status,
			 output ? output : "", error ? error : "", result->output, result->errors);
}

#endif
