/* SPDX-License-Identifier: Apache-2.0 */
/* What the code under test prints on standard error, kept for the test to look at. */
#ifndef TESTS_UNIT_CLI_CAPTURE_H
#define TESTS_UNIT_CLI_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/fd.h"

struct capture {
	int saved; /* the test program's own standard error */
	int file;
	char text[32768];
};

/* From here on standard error goes to a file in memory. */
static inline void capture_begin(struct capture *capture)
{
	capture->saved = dup(STDERR_FILENO);
	assert_true(capture->saved >= 0);
	capture->file = memfd_create("standard error", MFD_CLOEXEC);
	assert_true(capture->file >= 0);
	assert_int_equal(dup2(capture->file, STDERR_FILENO), STDERR_FILENO);
}

/* Puts it back; what was printed is in capture->text. */
static inline void capture_end(struct capture *capture)
{
	ssize_t length;

	assert_int_equal(dup2(capture->saved, STDERR_FILENO), STDERR_FILENO);
	fd_close(&capture->saved);
	length = pread(capture->file, capture->text, sizeof(capture->text) - 1, 0);
	assert_true(length >= 0);
	capture->text[length] = '\0';
	fd_close(&capture->file);
}

/* Exactly one line was printed, and @part is in it. */
static inline void capture_expect_sentence(const struct capture *capture, const char *part)
{
	const char *newline = strchr(capture->text, '\n');

	if (!strstr(capture->text, part))
		fail_msg("'%s' is not in '%s'", part, capture->text);
	assert_non_null(newline);
	assert_int_equal(newline[1], '\0');
}

#endif
