/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/accounts.h"
#include "guest/files.h"

#define LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS     "0123456789"
#define USER_BYTES 32 /* of a login name, as useradd(8) has it */

/* The names go into files whose fields end at a colon or a space, so that whatever else comes is
 * replaced by a name that surely works. */
static const char *checked_host(const char *name)
{
	return !name[0] || name[strspn(name, LETTERS DIGITS "-._")] ? "mvagent" : name;
}

static const char *checked_user(const char *name)
{
	size_t length = strspn(name, LETTERS DIGITS "-._");

	if (!length || name[length] || length > USER_BYTES || !strchr(LETTERS "_", name[0]))
		return "agent";
	return name;
}

static int write_name_file(const char *path, const char *text, struct failure *failure)
{
	int error = files_write(path, text);

	return error ? failure_set(failure, SESSION_STAGE_SETUP, error, "writing %s", path) : 0;
}

int names_set_host(const char *host_name, struct failure *failure)
{
	const char *name = checked_host(host_name);
	char text[512];
	int error;

	if (sethostname(name, strlen(name)) < 0)
		return failure_set(failure, SESSION_STAGE_SETUP, -errno, "setting the host name");
	if (mkdir("/etc", 0755) < 0 && errno != EEXIST)
		return failure_set(failure, SESSION_STAGE_SETUP, -errno, "making /etc");
	snprintf(text, sizeof(text), "%s\n", name);
	error = write_name_file("/etc/hostname", text, failure);
	if (error)
		return error;
	snprintf(text, sizeof(text), "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost %s\n",
		 name, name);
	error = write_name_file("/etc/hosts", text, failure);
	if (error)
		return error;
	/* guest/resolver.c. The host name has no domain that would be searched as well. */
	return write_name_file("/etc/resolv.conf", "nameserver 127.0.0.1\n", failure);
}

/* Edits one of the two files; it is written only if that changes something. */
static int edit_file(const char *path, accounts_edit *edit, const struct account *account)
{
	char *old, *edited = NULL;
	int error = files_read(path, &old);

	if (error)
		return error;
	error = edit(old, account, &edited);
	if (!error && strcmp(old, edited) != 0)
		error = files_write(path, edited);
	free(edited);
	free(old);
	return error;
}

int names_add_user(const struct session_start *start, struct failure *failure)
{
	const struct account account = {
		.name = checked_user(start->user),
		.uid = start->uid,
		.gid = start->gid,
		.home = strpbrk(start->home, ":\n") ? "/" : start->home,
		.shell = access("/bin/bash", X_OK) ? "/bin/sh" : "/bin/bash",
	};
	int error = edit_file("/etc/passwd", accounts_edit_passwd, &account);

	if (error)
		return failure_set(failure, SESSION_STAGE_SETUP, error, "writing /etc/passwd");
	error = edit_file("/etc/group", accounts_edit_group, &account);
	if (error)
		return failure_set(failure, SESSION_STAGE_SETUP, error, "writing /etc/group");
	return 0;
}
