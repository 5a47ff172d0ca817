/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/git_identity.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/cli/program_output.h"

#define VALUE_BYTES ((size_t)256)

static_assert(GIT_IDENTITY_BYTES >
		      2 * (2 * VALUE_BYTES + sizeof("\temail = \"\"\n")) + sizeof("[user]\n"),
	      "both values fit, with each byte escaped");

static bool value_is_good(const char *value)
{
	const size_t length = strlen(value);

	for (const char *c = value; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	}
	return length && length <= VALUE_BYTES;
}

/* In quotes, so that '#', ';' and spaces at its ends are part of it (git-config(1), syntax). */
static char *put_value(char *to, const char *key, const char *value)
{
	to = stpcpy(stpcpy(stpcpy(to, "\t"), key), " = \"");
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			*to++ = '\\';
		*to++ = *value;
	}
	return stpcpy(to, "\"\n");
}

int git_identity_write(const char *name, const char *email, char text[GIT_IDENTITY_BYTES])
{
	char *to;

	if (!value_is_good(name) || !value_is_good(email))
		return -EINVAL;
	to = stpcpy(text, "[user]\n");
	to = put_value(to, "name", name);
	put_value(to, "email", email);
	return 0;
}

/* The value, without the end of its line; the caller's. NULL with errno set. */
static char *ask_git(const char *key, const char *directory)
{
	/* The user's own counts more than the system's. Where the directory's repository cannot be
	 * read, what needs no repository can. */
	const struct {
		const char *scope, *directory;
	} places[] = {{"--global", directory}, {"--global", "/"}, {"--system", "/"}};
	char *text = NULL;

	for (size_t i = 0; !text && i < ARRAY_SIZE(places); i++) {
		const char *arguments[] = {"git", "config", places[i].scope, "--includes", "--get",
					   key,   NULL};

		text = program_output((char *const *)(uintptr_t)arguments, places[i].directory);
	}
	if (text && *text && text[strlen(text) - 1] == '\n')
		text[strlen(text) - 1] = '\0';
	return text;
}

static int read_value(const char *key, const char *directory, char **value)
{
	*value = ask_git(key, directory);
	if (*value && value_is_good(*value))
		return 0;
	if (!*value && errno != ENODATA)
		return log_errno(-errno, "--git-identity: cannot ask git for %s", key);
	log_error("--git-identity: your git has %s %s; set it: git config --global %s ...",
		  *value ? "a long or strange" : "no", key, key);
	return -ENODATA;
}

int git_identity_read(const char *directory, char text[GIT_IDENTITY_BYTES])
{
	char *name = NULL, *email = NULL;
	int error = read_value("user.name", directory, &name);

	if (!error)
		error = read_value("user.email", directory, &email);
	if (!error)
		error = git_identity_write(name, email, text);
	free(name);
	free(email);
	return error;
}
