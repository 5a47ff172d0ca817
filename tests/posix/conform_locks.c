/* SPDX-License-Identifier: Apache-2.0 */
/* Locks between processes: flock(2), and fcntl(2) of a process or of an open file. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/lock_peer.h"

static struct lock_request flock_request(int operation)
{
	return (struct lock_request){LOCK_FLOCK, operation | LOCK_NB, 0, 0};
}

static int set_lock(int fd, int command, int type, off_t first, off_t length)
{
	struct flock lock = {
		.l_type = (short)type, .l_whence = SEEK_SET, .l_start = first, .l_len = length};

	return fcntl(fd, command, &lock);
}

/* Shared locks go together, exclusive ones with nothing, whatever the descriptor may do. */
static void check_flock(struct suite *suite, const char *path, int flags)
{
	static const int kinds[] = {LOCK_SH, LOCK_EX};
	int fd = must(suite, open(path, flags), "open"), copy, second;
	struct lock_peer peer;

	must(suite, lock_peer_start(&peer, "f"), "starting a peer");
	for (int mine = 0; mine < 2; mine++)
		for (int theirs = 0; theirs < 2; theirs++) {
			check_result(suite, flock(fd, kinds[mine] | LOCK_NB), 0, "flock %s", path);
			if (path[0] == 'f')
				check_equal(suite,
					    lock_peer_do(&peer, flock_request(kinds[theirs])),
					    mine || theirs ? EWOULDBLOCK : 0,
					    "flock %d while another has %d", kinds[theirs],
					    kinds[mine]);
			second = must(suite, open(path, flags), "open");
			check_result(suite, flock(second, kinds[theirs] | LOCK_NB),
				     mine || theirs ? EWOULDBLOCK : 0,
				     "flock %d of a second descriptor of %s", kinds[theirs], path);
			close(second);
			check_result(suite, flock(fd, LOCK_UN), 0, "flock LOCK_UN");
			check_equal(suite, lock_peer_do(&peer, flock_request(LOCK_UN)), 0,
				    "flock LOCK_UN there");
		}
	/* A duplicate holds the same lock; closing the last one lets it go. */
	copy = dup(fd);
	check_result(suite, flock(fd, LOCK_EX | LOCK_NB), 0, "flock");
	check_result(suite, flock(copy, LOCK_EX | LOCK_NB), 0, "flock of a duplicate");
	close(fd);
	second = must(suite, open(path, flags), "open");
	check_result(suite, flock(second, LOCK_SH | LOCK_NB), EWOULDBLOCK,
		     "flock while a duplicate holds it");
	close(copy);
	check_result(suite, flock(second, LOCK_EX | LOCK_NB), 0, "flock after the last was closed");
	check_result(suite, flock(second, LOCK_SH | LOCK_NB), 0, "flock from exclusive to shared");
	check_result(suite, flock(second, 0), EINVAL, "flock of nothing");
	close(second);
	check_result(suite, flock(second, LOCK_SH), EBADF, "flock of a closed descriptor");
	lock_peer_stop(&peer);
}

void conform_locks(struct suite *suite)
{
	struct lock_peer peer;
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");

	must(suite, mkdir("d", 0755), "mkdir");
	check_flock(suite, "f", O_RDONLY);
	check_flock(suite, "f", O_WRONLY);
	check_flock(suite, "d", O_RDONLY | O_DIRECTORY);
	/* A process that dies lets go, and whoever waits goes on. */
	must(suite, lock_peer_start(&peer, "f"), "starting a peer");
	check_equal(suite, lock_peer_do(&peer, flock_request(LOCK_EX)), 0, "flock there");
	check_result(suite, flock(fd, LOCK_SH | LOCK_NB), EWOULDBLOCK, "flock here");
	lock_peer_stop(&peer);
	check_result(suite, flock(fd, LOCK_EX), 0, "flock after the other died");
	must(suite, lock_peer_start(&peer, "f"), "starting a peer");
	lock_peer_send(&peer, (struct lock_request){LOCK_FLOCK, LOCK_EX, 0, 0});
	check_true(suite, !lock_peer_has_answer(&peer, 100), "flock waits for the other");
	check_result(suite, flock(fd, LOCK_UN), 0, "flock LOCK_UN");
	check_equal(suite, lock_peer_answer(&peer), 0, "flock that waited");
	/* The two kinds of locks do not see each other on a local file system. */
	check_result(suite, set_lock(fd, F_SETLK, F_WRLCK, 0, 0), 0, "F_SETLK beside a flock");
	lock_peer_stop(&peer);
	close(fd);
}

/* Every overlap of a lock [100, 200) here with one there, by type. */
static void check_ranges(struct suite *suite, int fd, const struct lock_peer *peer)
{
	static const struct {
		off_t first, length;
		bool overlaps;
	} ranges[] = {
		{0, 100, false},      {0, 101, true}, {99, 1, false},   {100, 1, true},
		{150, 10, true},      {199, 1, true}, {200, 1, false},  {200, 0, false},
		{0, 0, true},         {150, 0, true}, {100, 100, true}, {99, 102, true},
		{1L << 40, 9, false},
	};
	static const int types[] = {F_RDLCK, F_WRLCK};

	for (int mine = 0; mine < 2; mine++)
		for (int theirs = 0; theirs < 2; theirs++)
			for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
				struct lock_request request = {LOCK_SET, types[theirs],
							       ranges[i].first, ranges[i].length};
				bool conflict = ranges[i].overlaps && (mine || theirs);

				must(suite, set_lock(fd, F_SETLK, types[mine], 100, 100),
				     "F_SETLK");
				check_equal(suite, lock_peer_do(peer, request),
					    conflict ? EAGAIN : 0, "F_SETLK %d [%ld, +%ld)",
					    types[theirs], (long)ranges[i].first,
					    (long)ranges[i].length);
				request.command = LOCK_QUERY;
				check_equal(suite, lock_peer_do(peer, request),
					    conflict ? types[mine] : F_UNLCK,
					    "F_GETLK %d [%ld, +%ld)", types[theirs],
					    (long)ranges[i].first, (long)ranges[i].length);
				request = (struct lock_request){LOCK_SET, F_UNLCK, 0, 0};
				check_equal(suite, lock_peer_do(peer, request), 0, "F_UNLCK there");
			}
	check_result(suite, set_lock(fd, F_SETLK, F_UNLCK, 0, 0), 0, "F_UNLCK");
}

/* What F_GETLK tells of the lock in the way. */
static void check_query(struct suite *suite, int fd, const struct lock_peer *peer)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};

	lock_peer_do(peer, (struct lock_request){LOCK_SET, F_WRLCK, 10, 20});
	check_result(suite, fcntl(fd, F_GETLK, &lock), 0, "F_GETLK");
	check_equal(suite, lock.l_type, F_WRLCK, "l_type");
	check_equal(suite, lock.l_start, 10, "l_start");
	check_equal(suite, lock.l_len, 20, "l_len");
	check_equal(suite, lock.l_pid, peer->pid, "l_pid");
	/* Unlocking the middle leaves both ends. */
	lock_peer_do(peer, (struct lock_request){LOCK_SET, F_UNLCK, 15, 5});
	check_result(suite, set_lock(fd, F_SETLK, F_WRLCK, 15, 5), 0, "F_SETLK in the middle");
	check_result(suite, set_lock(fd, F_SETLK, F_RDLCK, 14, 1), EAGAIN, "F_SETLK before it");
	check_result(suite, set_lock(fd, F_SETLK, F_RDLCK, 20, 1), EAGAIN, "F_SETLK behind it");
	set_lock(fd, F_SETLK, F_UNLCK, 0, 0);
	/* Closing any descriptor of the file drops all locks of the process. */
	lock_peer_do(peer, (struct lock_request){LOCK_REOPEN, 0, 0, 0});
	check_result(suite, set_lock(fd, F_SETLK, F_WRLCK, 0, 0), 0, "F_SETLK after a close there");
	set_lock(fd, F_SETLK, F_UNLCK, 0, 0);
}

static void check_waiting(struct suite *suite, int fd, struct lock_peer *peer)
{
	must(suite, set_lock(fd, F_SETLK, F_WRLCK, 0, 10), "F_SETLK");
	lock_peer_do(peer, (struct lock_request){LOCK_SET, F_WRLCK, 10, 10});
	lock_peer_send(peer, (struct lock_request){LOCK_WAIT, F_WRLCK, 0, 10});
	check_true(suite, !lock_peer_has_answer(peer, 100), "F_SETLKW waits");
	check_result(suite, set_lock(fd, F_SETLKW, F_WRLCK, 10, 10), EDEADLK,
		     "F_SETLKW of what would wait for ever");
	check_result(suite, set_lock(fd, F_SETLK, F_UNLCK, 0, 10), 0, "F_UNLCK");
	check_equal(suite, lock_peer_answer(peer), 0, "F_SETLKW that waited");
	check_result(suite, set_lock(fd, F_SETLK, F_RDLCK, 0, 1), EAGAIN, "F_SETLK of what it has");
	lock_peer_stop(peer);
	check_result(suite, set_lock(fd, F_SETLKW, F_WRLCK, 0, 0), 0, "F_SETLKW after it died");
	set_lock(fd, F_SETLK, F_UNLCK, 0, 0);
}

/* Locks of an open file: two descriptors of one process are two owners. */
static void check_open_file_locks(struct suite *suite, int fd)
{
	int second = must(suite, open("f", O_RDWR), "open"), copy = dup(second);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};

	check_result(suite, set_lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10), 0, "F_OFD_SETLK");
	check_result(suite, set_lock(second, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN,
		     "F_OFD_SETLK of a second descriptor");
	check_result(suite, set_lock(second, F_SETLK, F_RDLCK, 5, 1), EAGAIN,
		     "F_SETLK against a lock of an open file");
	check_result(suite, set_lock(second, F_OFD_SETLK, F_WRLCK, 10, 5), 0,
		     "F_OFD_SETLK beside it");
	check_result(suite, fcntl(second, F_OFD_GETLK, &lock), 0, "F_OFD_GETLK");
	check_equal(suite, lock.l_pid, -1, "l_pid of a lock of an open file");
	check_equal(suite, lock.l_len, 10, "l_len of it");
	lock.l_pid = 1;
	lock.l_type = F_WRLCK;
	check_result(suite, fcntl(second, F_OFD_SETLK, &lock), EINVAL, "F_OFD_SETLK with an l_pid");
	close(second);
	check_result(suite, set_lock(fd, F_OFD_SETLK, F_WRLCK, 10, 5), EAGAIN,
		     "F_OFD_SETLK while a duplicate is open");
	close(copy);
	check_result(suite, set_lock(fd, F_OFD_SETLK, F_WRLCK, 10, 5), 0,
		     "F_OFD_SETLK after the last was closed");
	set_lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0);
}

void conform_posix_locks(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");
	int reader = must(suite, open("f", O_RDONLY), "open");
	struct lock_peer peer;

	check_result(suite, set_lock(reader, F_SETLK, F_WRLCK, 0, 0), EBADF,
		     "F_SETLK F_WRLCK on O_RDONLY");
	check_result(suite, set_lock(fd, F_SETLK, 77, 0, 0), EINVAL, "F_SETLK of a bad type");
	check_result(suite, set_lock(fd, F_SETLK, F_RDLCK, -1, 0), EINVAL, "F_SETLK from -1");
	must(suite, lock_peer_start(&peer, "f"), "starting a peer");
	check_ranges(suite, fd, &peer);
	check_query(suite, fd, &peer);
	check_waiting(suite, fd, &peer);
	check_open_file_locks(suite, fd);
	close(reader);
	close(fd);
}
