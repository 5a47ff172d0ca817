/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/posix/check.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A group takes seconds; one that waits for ever must not take the suite with it. */
#define PROCESS_SECONDS 300

#define WHAT_BYTES 512

const char *check_errno_name(int error)
{
	const char *name = error ? strerrorname_np(error) : "success";

	return name ? name : "an unknown error";
}

static bool count_passed(struct suite *suite)
{
	suite->counters->passed++;
	return true;
}

static bool count_failed(struct suite *suite, const char *what, const char *wanted, const char *got)
{
	suite->counters->failed++;
	printf("FAIL %s: %s: expected %s, got %s\n", suite->group, what, wanted, got);
	fflush(stdout);
	return false;
}

#define FORMAT_WHAT(what, format)                                 \
	do {                                                      \
		va_list arguments;                                \
		va_start(arguments, format);                      \
		vsnprintf(what, sizeof(what), format, arguments); \
		va_end(arguments);                                \
	} while (0)

bool check_result(struct suite *suite, long result, int wanted, const char *format, ...)
{
	int got = result == -1 ? errno : 0;
	char what[WHAT_BYTES];

	if (got == wanted)
		return count_passed(suite);
	FORMAT_WHAT(what, format);
	return count_failed(suite, what, check_errno_name(wanted), check_errno_name(got));
}

bool check_equal_numbers(struct suite *suite, long long got, long long wanted, const char *format,
			 ...)
{
	char what[WHAT_BYTES], got_text[64], wanted_text[64];

	if (got == wanted)
		return count_passed(suite);
	FORMAT_WHAT(what, format);
	snprintf(got_text, sizeof(got_text), "%lld (0%llo)", got, (unsigned long long)got);
	snprintf(wanted_text, sizeof(wanted_text), "%lld (0%llo)", wanted,
		 (unsigned long long)wanted);
	return count_failed(suite, what, wanted_text, got_text);
}

bool check_true(struct suite *suite, bool condition, const char *format, ...)
{
	char what[WHAT_BYTES];

	if (condition)
		return count_passed(suite);
	FORMAT_WHAT(what, format);
	return count_failed(suite, what, "it to hold", "that it does not");
}

bool check_bytes(struct suite *suite, const void *got, const void *wanted, size_t size,
		 const char *format, ...)
{
	const unsigned char *got_bytes = got, *wanted_bytes = wanted;
	char what[WHAT_BYTES], got_text[64], wanted_text[64];
	size_t at = 0;

	while (at < size && got_bytes[at] == wanted_bytes[at])
		at++;
	if (at == size)
		return count_passed(suite);
	FORMAT_WHAT(what, format);
	snprintf(got_text, sizeof(got_text), "%#x", got_bytes[at]);
	snprintf(wanted_text, sizeof(wanted_text), "byte %#x at %zu", wanted_bytes[at], at);
	return count_failed(suite, what, wanted_text, got_text);
}

void *check_bad_address(void)
{
	return (void *)8;
}

void check_skip(struct suite *suite, unsigned int count, const char *format, ...)
{
	char what[WHAT_BYTES];

	suite->counters->skipped += count;
	FORMAT_WHAT(what, format);
	printf("skip %s: %s\n", suite->group, what);
}

int must(struct suite *suite, long result, const char *what)
{
	if (result == -1) {
		count_failed(suite, what, "success of what the test needs first",
			     check_errno_name(errno));
		_exit(0);
	}
	return (int)result;
}

int expect_unless(struct suite *suite, enum deviation deviation, int standard, int there)
{
	if (!suite->share)
		return standard;
	suite->counters->deviations[deviation]++;
	return there;
}

void check_in_process(struct suite *suite, const char *name, void (*body)(struct suite *suite))
{
	char got[64];
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(PROCESS_SECONDS);
		body(suite);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("conform: fork");
		exit(2);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	snprintf(got, sizeof(got), "%s %d", WIFSIGNALED(status) ? "signal" : "exit status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	count_failed(suite, name, "it to run to its end", got);
}
