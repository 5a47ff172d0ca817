/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's part: hears what the server reports for the record while a guest attacks it. */
#ifndef MVAGENT_TESTS_FUSE_RECORD_H
#define MVAGENT_TESTS_FUSE_RECORD_H

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "tests/hostile/fuse_tree.h"
#include "vmm/base/fd.h"
#include "vmm/wire/fs_report.h"

struct listener {
	int fds[2]; /* [1] is the server's */
	pthread_t thread;
	char number[16];
	unsigned long reports, changes;
	const char *why; /* not what was to be heard */
	bool ended;
};

static inline void *listener_run(void *context)
{
	struct listener *listener = context;
	uint8_t bytes[FS_REPORT_BYTES + 1];
	struct fs_report report;
	ssize_t length;

	while ((length = recv(listener->fds[0], bytes, sizeof(bytes), 0)) > 0) {
		if (fs_report_decode(&report, bytes, (size_t)length))
			listener->why = "the server reported what is no report";
		else if (listener->ended)
			listener->why = "the server reported after its last word";
		listener->reports++;
		listener->changes += report.type == FS_REPORT_CHANGE;
		listener->ended |= report.type == FS_REPORT_SHARE;
	}
	return NULL;
}

static inline void listener_start(struct listener *listener)
{
	*listener = (struct listener){.why = NULL};
	need(fd_create_socket_pair(SOCK_SEQPACKET, listener->fds) == 0, "socketpair");
	need(fcntl(listener->fds[1], F_SETFD, 0) == 0, "fcntl");
	snprintf(listener->number, sizeof(listener->number), "%d", listener->fds[1]);
}

/* The server has its end. */
static inline void listener_listen(struct listener *listener)
{
	fd_close(&listener->fds[1]);
	need(pthread_create(&listener->thread, NULL, listener_run, listener) == 0, "thread");
}

/* The server has ended. What was wrong, or NULL. */
static inline const char *listener_finish(struct listener *listener)
{
	pthread_join(listener->thread, NULL);
	fd_close(&listener->fds[0]);
	printf("# %lu reports, %lu of them changes\n", listener->reports, listener->changes);
	if (!listener->why && !listener->ended)
		listener->why = "the server did not report what was changed";
	return listener->why;
}

#endif
