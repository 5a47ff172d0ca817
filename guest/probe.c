/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/probe.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/=:"

#define FIRST_ITEM 4

void probe_add(struct probe_answer *answer, const void *bytes, size_t length)
{
	size_t room = PROBE_DATA_BYTES - answer->length;

	if (length > room)
		length = room;
	memcpy(answer->data + answer->length, bytes, length);
	answer->length += length;
}

static void print_data(const struct probe_answer *answer)
{
	for (size_t i = 0; i < answer->length; i++) {
		unsigned char byte = (unsigned char)answer->data[i];

		if (byte && strchr(PLAIN, byte))
			putchar(byte);
		else
			printf("%%%02x", byte);
	}
}

static const struct probe_kind *find_kind(const struct probe_kind *kinds, const char *item)
{
	for (; kinds->name; kinds++) {
		size_t length = strlen(kinds->name);

		if (strncmp(item, kinds->name, length) == 0 && item[length] == ':')
			return kinds;
	}
	return NULL;
}

static void try_item(const char *item, struct probe_answer *answer)
{
	const struct probe_kind *kind = find_kind(probe_file_kinds, item);

	if (!kind)
		kind = find_kind(probe_network_kinds, item);
	answer->length = 0;
	answer->result = -ENOSYS; /* what is not known here was not tried */
	if (kind)
		kind->try(item + strlen(kind->name) + 1, answer);
}

/* Tries everything; returns the exit status of this role's process. */
static int try_all(const char *role, const char *number, char **items)
{
	static char data[PROBE_DATA_BYTES];
	struct probe_answer answer = {.data = data};
	int count = 0;

	for (; items[count]; count++) {
		try_item(items[count], &answer);
		printf("%s %d %ld ", role, count, answer.result);
		print_data(&answer);
		putchar('\n');
	}
	printf("end %s %s %d\n", number, role, count);
	return fflush(stdout) ? 1 : 0;
}

static int become(uid_t uid, gid_t gid)
{
	if (setgroups(1, &gid) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	/* As after an execve(2): what is in /proc/self belongs to the user. */
	return prctl(PR_SET_DUMPABLE, 1) < 0 ? -errno : 0;
}

static int run_role(const char *role, uid_t uid, gid_t gid, char **argv)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(become(uid, gid) ? 1 : try_all(role, argv[1], argv + FIRST_ITEM));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	return status ? 1 : 0;
}

int probe_main(int argc, char **argv)
{
	if (argc < FIRST_ITEM || getuid() != 0)
		return 2;
	printf("probe %s\n", argv[1]);
	return run_role("agent", (uid_t)strtoul(argv[2], NULL, 10),
			(gid_t)strtoul(argv[3], NULL, 10), argv) |
	       run_role("root", 0, 0, argv);
}
