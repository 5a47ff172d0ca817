/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/text.h"

/* More than a pipe holds: what a dead process left is read to its end; one that floods is left
 * alone until the next turn. */
#define READS_AT_ONCE 128

int messages_open(struct messages *messages, const char *name, int *writing_fd)
{
	int pair[2];

	*messages = (struct messages){.fd = -1, .name = name};
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	messages->fd = pair[0];
	*writing_fd = pair[1];
	return 0;
}

/* "NAME: text" in one write, whatever the process itself put before it. */
static void messages_print(struct messages *messages, const char *text, size_t length)
{
	char line[MESSAGES_LINE_BYTES + 64];
	size_t name_length = strlen(messages->name);
	bool named = length > name_length + 1 && memcmp(text, messages->name, name_length) == 0 &&
		     memcmp(text + name_length, ": ", 2) == 0;
	const size_t skipped = named ? name_length + 2 : 0;
	int total;

	snprintf(messages->last, sizeof(messages->last), "%.*s", (int)(length - skipped),
		 text + skipped);
	total = snprintf(line, sizeof(line), "%s: %s\n", messages->name, messages->last);
	fd_write_full(STDERR_FILENO, line, (size_t)total);
}

static void messages_end_line(struct messages *messages)
{
	size_t length = messages->length;

	messages->length = 0;
	if (messages->passed > LIMIT_MESSAGES_BYTES)
		return;
	messages->passed += length + 1;
	if (messages->passed > LIMIT_MESSAGES_BYTES) {
		static const char more[] = "it says more, which is left out";

		messages_print(messages, more, sizeof(more) - 1);
		return;
	}
	text_make_printable(messages->line, length);
	messages_print(messages, messages->line, length);
}

static void messages_take(struct messages *messages, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != '\n')
			messages->line[messages->length++] = bytes[i] ? bytes[i] : '?';
		if (bytes[i] == '\n' || messages->length == MESSAGES_LINE_BYTES)
			messages_end_line(messages);
	}
}

static void messages_close(struct messages *messages)
{
	if (messages->length)
		messages_end_line(messages);
	fd_close(&messages->fd);
}

void messages_pass(struct messages *messages)
{
	char bytes[4096];

	for (int i = 0; i < READS_AT_ONCE && messages->fd >= 0; i++) {
		ssize_t count = read(messages->fd, bytes, sizeof(bytes));

		if (count > 0)
			messages_take(messages, bytes, (size_t)count);
		else if (count == 0)
			messages_close(messages);
		else if (errno != EINTR)
			return;
	}
}

void messages_finish(struct messages *messages)
{
	messages_pass(messages);
	if (messages->fd >= 0)
		messages_close(messages);
}
