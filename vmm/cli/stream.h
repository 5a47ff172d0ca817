/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the command's standard streams, on its way between a descriptor of the user and the socket
 * that leads to the guest. A thread a stream: the user's descriptors are shared with other
 * processes and must not be made non-blocking, and a reader that is slow then holds up its own
 * stream and nothing else.
 */
#ifndef MVAGENT_CLI_STREAM_H
#define MVAGENT_CLI_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/cli/escape_filter.h"

#define STREAM_BUFFER_BYTES 65536U

struct stream {
	int from;
	int to;
	bool to_guest; /* @to is the socket, else @from is */
	bool filtered; /* terminal output: see escape_filter.h */
	int done_fd;   /* eventfd, signalled when the stream has ended; the caller's */
	bool started;
	pthread_t thread;
	struct escape_filter filter;
	int write_error; /* errno of the user's side, when output could not be written; EPIPE is no
			    error */
	uint8_t buffer[STREAM_BUFFER_BYTES];
	uint8_t filtered_buffer[ESCAPE_FILTER_OUTPUT(STREAM_BUFFER_BYTES)];
};

/* Starts the thread. Descriptors stay the caller's and must outlive it. 0 or -errno. */
int stream_start(struct stream *stream);

/* Waits for the thread; only for streams whose done_fd was signalled. */
void stream_join(struct stream *stream);

#endif
