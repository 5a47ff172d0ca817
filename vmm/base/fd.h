/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: always CLOEXEC, always one owner. */
#ifndef MVAGENT_BASE_FD_H
#define MVAGENT_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Closes *@fd if it is open and sets it to -1. */
void fd_close(int *fd);

/* Declares that the variable's descriptor is closed when it goes out of scope. */
#define FD_CLEANUP __attribute__((cleanup(fd_close)))

/* Takes the descriptor out of its owner: returns *@fd and sets it to -1. */
int fd_take(int *fd);

/* Reads or writes exactly @length bytes, through short transfers and EINTR.
 * Returns 0, -errno, or -ENODATA when the file ended first. */
int fd_read_full(int fd, void *buffer, size_t length);
int fd_pread_full(int fd, void *buffer, size_t length, off_t offset);
int fd_write_full(int fd, const void *buffer, size_t length);

/* Sets or clears O_NONBLOCK. Returns 0 or -errno. */
int fd_set_nonblocking(int fd, int nonblocking);

/* An eventfd that is CLOEXEC and non-blocking (a blocking one hangs io_uring writes). fd or -errno.
 */
int fd_create_event(void);

/* Whether it is an eventfd, and not something else whose reader or writer could be kept waiting. */
bool fd_is_event(int fd);

/* Adds one to an eventfd. A full counter means that it is signalled already. */
void fd_signal_event(int fd);

/* Empties an eventfd; returns the count it held, 0 when it held none. */
unsigned long long fd_drain_event(int fd);

/* A connected pair of CLOEXEC AF_UNIX sockets of @type (SOCK_STREAM or SOCK_SEQPACKET), optionally
 * or-ed with SOCK_NONBLOCK. Returns 0 or -errno. */
int fd_create_socket_pair(int type, int pair[2]);

/* Most descriptors that go with one message of ours; Linux's bound is 253 (SCM_MAX_FD). */
#define FD_SEND_MAX 16U

/* Sends @length bytes, above 0, on a connected AF_UNIX socket, and with the first of them
 * descriptors, at most FD_SEND_MAX, which stay the caller's. No SIGPIPE. Waits where the socket
 * does. 0 or -errno (-EPIPE: the peer is gone). */
int fd_send(int socket_fd, const void *buffer, size_t length, const int *fds, unsigned int count);

#endif
