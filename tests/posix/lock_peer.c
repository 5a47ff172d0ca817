/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/posix/lock_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/poll.h>
#include <sys/wait.h>
#include <unistd.h>

static int serve(int fd, const char *path, const struct lock_request *request)
{
	struct flock lock = {
		.l_type = (short)request->type,
		.l_whence = SEEK_SET,
		.l_start = request->first,
		.l_len = request->length,
	};

	switch (request->command) {
	case LOCK_FLOCK:
		return flock(fd, request->type) ? errno : 0;
	case LOCK_SET:
		return fcntl(fd, F_SETLK, &lock) ? errno : 0;
	case LOCK_WAIT:
		return fcntl(fd, F_SETLKW, &lock) ? errno : 0;
	case LOCK_OPEN_SET:
		return fcntl(fd, F_OFD_SETLK, &lock) ? errno : 0;
	case LOCK_QUERY:
		return fcntl(fd, F_GETLK, &lock) ? -errno : lock.l_type;
	case LOCK_REOPEN:
		return close(open(path, O_RDONLY)) ? errno : 0;
	}
	return EINVAL;
}

static void run(const char *path, int commands, int answers)
{
	struct lock_request request;
	int fd;

	/* What the other process has open would be locked by this one as well. */
	for (int other = 3; other < 256; other++)
		if (other != commands && other != answers)
			close(other);
	fd = open(path, O_RDWR);
	while (read(commands, &request, sizeof(request)) == sizeof(request)) {
		int answer = fd < 0 ? EBADF : serve(fd, path, &request);

		if (write(answers, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

int lock_peer_start(struct lock_peer *peer, const char *path)
{
	int commands[2], answers[2];

	if (pipe2(commands, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		return -1;
	peer->pid = fork();
	if (peer->pid < 0)
		return -1;
	if (peer->pid == 0) {
		close(commands[1]);
		close(answers[0]);
		run(path, commands[0], answers[1]);
	}
	close(commands[0]);
	close(answers[1]);
	peer->commands = commands[1];
	peer->answers = answers[0];
	return 0;
}

void lock_peer_send(const struct lock_peer *peer, struct lock_request request)
{
	/* A peer that is gone is noticed when it does not answer. */
	signal(SIGPIPE, SIG_IGN);
	if (write(peer->commands, &request, sizeof(request)) != sizeof(request))
		return;
}

int lock_peer_has_answer(const struct lock_peer *peer, int milliseconds)
{
	struct pollfd waiting = {.fd = peer->answers, .events = POLLIN};

	return poll(&waiting, 1, milliseconds) == 1;
}

int lock_peer_answer(const struct lock_peer *peer)
{
	int answer;

	if (!lock_peer_has_answer(peer, 20000) ||
	    read(peer->answers, &answer, sizeof(answer)) != sizeof(answer))
		return -1;
	return answer;
}

int lock_peer_do(const struct lock_peer *peer, struct lock_request request)
{
	lock_peer_send(peer, request);
	return lock_peer_answer(peer);
}

void lock_peer_stop(struct lock_peer *peer)
{
	close(peer->commands);
	close(peer->answers);
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
}
