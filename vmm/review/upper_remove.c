/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of a tree that a guest made. It may be deeper than the stack, the descriptors or a path
 * of the kernel; so what is found two levels down moves up to the first, and waits there for its
 * own turn. Each directory moves once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/review/upper.h"

/* Opens a directory for reading, after making it the user's to change. fd or -errno. */
static int remove_open(int directory_fd, const char *name)
{
	int FD_CLEANUP fd = tree_open_entry(directory_fd, name);
	struct review_object object;
	int error = fd < 0 ? fd : tree_status(fd, &object);

	if (!error && (object.mode & S_IRWXU) != S_IRWXU)
		error = tree_change_mode(fd, S_IRWXU);
	return error ? error : tree_reopen(fd);
}

/* Moves the directory @name up to @top_fd, to a name that is free there. */
static int remove_move_up(int directory_fd, const char *name, int top_fd, unsigned long *counter)
{
	int error,
		FD_CLEANUP moved = remove_open(directory_fd, name); /* to be writable: its ".." */
	char free_name[32];

	if (moved < 0)
		return moved;
	do {
		snprintf(free_name, sizeof(free_name), "removed-%lu", ++*counter);
		error = renameat2(directory_fd, name, top_fd, free_name, RENAME_NOREPLACE) ? -errno
											   : 0;
	} while (error == -EEXIST);
	return error;
}

/* Empties the directory @name of @top_fd and removes it. */
static int remove_directory(int top_fd, const char *name, unsigned long *counter)
{
	int FD_CLEANUP fd = remove_open(top_fd, name);
	struct tree_names names;
	bool more;
	int error;

	if (fd < 0)
		return fd;
	error = tree_list(fd, &names);
	more = error == -E2BIG;
	if (more)
		error = 0;
	for (size_t i = 0; !error && i < names.count; i++) {
		if (unlinkat(fd, names.names[i], 0) == 0 ||
		    unlinkat(fd, names.names[i], AT_REMOVEDIR) == 0)
			continue;
		error = remove_move_up(fd, names.names[i], top_fd, counter);
	}
	tree_names_destroy(&names);
	/* Else the rest is for the next round. */
	if (!error && !more && unlinkat(top_fd, name, AT_REMOVEDIR))
		error = -errno;
	return error;
}

int upper_remove_contents(int directory_fd)
{
	unsigned long counter = 0;
	struct tree_names names;
	int error;

	do {
		error = tree_list(directory_fd, &names);
		if (error == -E2BIG)
			error = 0;
		for (size_t i = 0; !error && i < names.count; i++) {
			if (unlinkat(directory_fd, names.names[i], 0))
				error = errno == EISDIR ? remove_directory(directory_fd,
									   names.names[i], &counter)
							: -errno;
		}
		/* What moved up meanwhile is there now. */
		if (!error && !names.count)
			break;
		tree_names_destroy(&names);
	} while (!error);
	tree_names_destroy(&names);
	return error;
}
