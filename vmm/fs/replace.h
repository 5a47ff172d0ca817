/* SPDX-License-Identifier: Apache-2.0 */
/* Files in the making that take the place of others, and of others' open handles. */
#ifndef MVAGENT_FS_REPLACE_H
#define MVAGENT_FS_REPLACE_H

#include <stdbool.h>
#include <stdint.h>

struct fs_server;

#define REPLACE_NAME_BYTES 32

/* A file in the making; its name is for the moment before it takes another's. */
struct new_file {
	int fd; /* to read and write */
	bool named;
	char name[REPLACE_NAME_BYTES];
};

/* A name that nothing has. */
void replace_make_name(char name[REPLACE_NAME_BYTES]);

/* Makes one in a directory, without a name where the file system can. Its fd is a negative errno
 * when it could not be made. */
struct new_file replace_make_file(int directory_fd);

/* Has the handles of a node read (or write) the file behind @fd from now on. 0 or -errno. */
int replace_move_handles(struct fs_server *server, uint64_t node_id, int fd);

#endif
