/* SPDX-License-Identifier: Apache-2.0 */
/* A second process that takes locks when told, so that each step has one order. */
#ifndef TESTS_POSIX_LOCK_PEER_H
#define TESTS_POSIX_LOCK_PEER_H

#include <sys/types.h>

enum lock_command {
	LOCK_FLOCK,    /* first: the operation of flock(2) */
	LOCK_SET,      /* F_SETLK; type, first, length */
	LOCK_WAIT,     /* F_SETLKW */
	LOCK_OPEN_SET, /* F_OFD_SETLK */
	LOCK_QUERY,    /* F_GETLK; the answer is the type of the lock that is in the way */
	LOCK_REOPEN,   /* opens the file once more and closes that: drops its POSIX locks */
};

struct lock_peer {
	pid_t pid;
	int commands;
	int answers;
};

struct lock_request {
	enum lock_command command;
	int type;
	off_t first;
	off_t length;
};

/* Starts a process that opens @path. 0 or -1 with errno. */
int lock_peer_start(struct lock_peer *peer, const char *path);

/* Sends a request without waiting for its answer. */
void lock_peer_send(const struct lock_peer *peer, struct lock_request request);

/* Waits for the answer: the errno, or what the command says. -1: there is none. */
int lock_peer_answer(const struct lock_peer *peer);

/* Whether an answer comes within @milliseconds. */
int lock_peer_has_answer(const struct lock_peer *peer, int milliseconds);

/* Both at once. */
int lock_peer_do(const struct lock_peer *peer, struct lock_request request);

/* Ends the process; its locks go with it. */
void lock_peer_stop(struct lock_peer *peer);

#endif
