/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/operation.h"

void replace_make_name(char name[REPLACE_NAME_BYTES])
{
	uint64_t number = 0;

	/* Only against collisions: the name is made with O_EXCL or by link(2). */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (uint64_t)getpid();
	snprintf(name, REPLACE_NAME_BYTES, ".mvagent-%016llx", (unsigned long long)number);
}

struct new_file replace_make_file(int directory_fd)
{
	struct new_file file = {.named = false};

	replace_make_name(file.name);
	file.fd = path_create_unnamed(directory_fd, O_RDWR, 0600);
	if (file.fd == -EOPNOTSUPP) {
		file.fd = path_create_name(directory_fd, file.name, O_RDWR, 0600);
		file.named = file.fd >= 0;
	}
	/* As long as it is locked, nobody who finds the name takes it for a dead process's. */
	if (file.fd >= 0)
		flock(file.fd, LOCK_EX | LOCK_NB);
	return file;
}

int replace_move_handles(struct fs_server *server, uint64_t node_id, int fd)
{
	struct handle *handle;
	uint32_t cursor = 0;

	while ((handle = handle_next_of(&server->handles, node_id, &cursor)) != NULL) {
		int mode = fcntl(handle->fd, F_GETFL) & O_ACCMODE;
		FD_CLEANUP int opened = path_reopen(server->proc_fd, fd, mode);

		if (opened < 0)
			return opened;
		if (dup3(opened, handle->fd, O_CLOEXEC) < 0)
			return -errno;
	}
	return 0;
}
