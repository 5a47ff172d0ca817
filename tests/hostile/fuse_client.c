/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest kernel that means harm, with no Linux in between: drives a real mvagent-fs process over
 * vhost-user with random FUSE messages in random chains, while the host swaps names beneath it, and
 * with rings that break the rules. A canary beside the share must stay as it was, and the server
 * must go on serving.
 *
 *   fuse_client PATH-OF-MVAGENT-FS [SEED [SECONDS]]
 *
 * Prints one line a test, "ok NAME" or "not ok NAME: why".
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/hostile/fuse_machine.h"
#include "tests/hostile/fuse_record.h"
#include "tests/hostile/fuse_tree.h"
#include "vmm/wire/notify.h"

static const char *server_path;
static unsigned int seconds = 3;

/* Names that are in the share or may come to be there, and names that are none. */
static const char *const names[] = {"f",      "d",      "l",      "p",      "swapped",
				    "canary", "escape", "new1",   "new2",   "new3",
				    "new4",   "made",   "user.a", "user.b", "security.capability"};
static const char *const no_names[] = {
	"..", ".", "", "/", "a/b", "../outside/canary", "/etc/passwd", "d/../..", "swapped/canary"};

static size_t put_name(uint8_t *at)
{
	const char *name = random_below(6) ? names[random_below(ARRAY_SIZE(names))]
					   : no_names[random_below(ARRAY_SIZE(no_names))];
	size_t length = strlen(name);

	if (random_below(50) == 0) {
		length = random_below(600);
		memset(at, 'n', length);
		at[length] = random_below(2) ? '\0' : 'x';
	} else {
		memcpy(at, name, length + 1);
	}
	return length + 1;
}

/* What gives out ids and uses them comes most often; ends of sessions are begun anew elsewhere. */
static uint32_t random_opcode(void)
{
	static const uint8_t often[] = {FUSE_LOOKUP,      FUSE_LOOKUP,  FUSE_CREATE, FUSE_CREATE,
					FUSE_OPEN,        FUSE_OPENDIR, FUSE_READ,   FUSE_WRITE,
					FUSE_READDIRPLUS, FUSE_SETATTR, FUSE_MKDIR,  FUSE_RENAME,
					FUSE_LINK};
	uint32_t opcode;

	if (random_below(2))
		return often[random_below(ARRAY_SIZE(often))];
	do {
		opcode = 1 + random_below(FUSE_OPCODES - 1);
	} while (opcode == FUSE_DESTROY || opcode == FUSE_INIT ||
		 (opcode == FUSE_FORGET && random_below(8)) ||
		 (opcode == FUSE_BATCH_FORGET && random_below(8)));
	return opcode;
}

/* Small numbers, flags and sizes far more often than any others. */
static uint64_t random_number(void)
{
	static const uint64_t favourites[] = {0,
					      1,
					      2,
					      4,
					      8,
					      0100,
					      0777,
					      0644,
					      4096,
					      65536,
					      O_RDWR | O_TRUNC,
					      O_CREAT | O_EXCL,
					      UINT64_MAX,
					      INT64_MAX,
					      06777,
					      S_IFCHR | 0666,
					      S_IFREG | 0644};

	return random_below(4) ? favourites[random_below(ARRAY_SIZE(favourites))]
			       : (uint64_t)random_below(UINT32_MAX) << random_below(33);
}

/* Arguments for @opcode: the fixed part with plausible contents, then names and data. */
static size_t make_arguments(struct machine *machine, uint32_t opcode, uint8_t *at)
{
	static const uint8_t fixed[FUSE_OPCODES] = {
		[FUSE_FORGET] = 8,       [FUSE_GETATTR] = 16,   [FUSE_SETATTR] = 88,
		[FUSE_MKNOD] = 16,       [FUSE_MKDIR] = 8,      [FUSE_RENAME] = 8,
		[FUSE_LINK] = 8,         [FUSE_OPEN] = 8,       [FUSE_READ] = 40,
		[FUSE_WRITE] = 40,       [FUSE_RELEASE] = 24,   [FUSE_FSYNC] = 16,
		[FUSE_SETXATTR] = 8,     [FUSE_GETXATTR] = 8,   [FUSE_LISTXATTR] = 8,
		[FUSE_OPENDIR] = 8,      [FUSE_READDIR] = 40,   [FUSE_RELEASEDIR] = 24,
		[FUSE_FSYNCDIR] = 16,    [FUSE_ACCESS] = 8,     [FUSE_CREATE] = 16,
		[FUSE_BATCH_FORGET] = 8, [FUSE_FALLOCATE] = 32, [FUSE_READDIRPLUS] = 40,
		[FUSE_RENAME2] = 16,     [FUSE_LSEEK] = 24,     [FUSE_COPY_FILE_RANGE] = 56,
		[FUSE_SYNCFS] = 8,       [FUSE_TMPFILE] = 16,   [FUSE_STATX] = 24,
		[FUSE_IOCTL] = 32,       [FUSE_INIT] = 64,
	};
	size_t size = fixed[opcode];

	for (size_t i = 0; i < size; i += 8) {
		uint64_t number = random_number();

		if (random_below(2))
			number |= random_number() << 32;
		memcpy(at + i, &number, 8);
	}
	if (size >= 8 && random_below(8)) {
		bool node = opcode == FUSE_LINK || opcode == FUSE_RENAME || opcode == FUSE_RENAME2;
		uint64_t id = node ? machine_node(machine) : machine_handle(machine);

		if (node || (opcode != FUSE_CREATE && opcode != FUSE_MKNOD))
			memcpy(at, &id, 8);
	}
	/* The disk of this machine is not what is under attack. */
	if (opcode == FUSE_FALLOCATE || opcode == FUSE_COPY_FILE_RANGE)
		memset(at + 8, 0, size - 8);
	if (random_below(20) == 0)
		return random_below((uint32_t)size + 20);
	switch (opcode) {
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_SYMLINK:
		size += put_name(at + size);
		/* fall through */
	case FUSE_LOOKUP:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_MKDIR:
	case FUSE_MKNOD:
	case FUSE_LINK:
	case FUSE_CREATE:
	case FUSE_TMPFILE:
	case FUSE_SETXATTR:
	case FUSE_GETXATTR:
	case FUSE_REMOVEXATTR:
		return size + put_name(at + size);
	case FUSE_WRITE:
	case FUSE_BATCH_FORGET:
		return size + random_below(2000);
	default:
		return size;
	}
}

/* Sends random messages until the time is over; returns how many. */
static unsigned long attack(struct machine *machine)
{
	static uint8_t arguments[8192];
	struct timespec start, now;
	unsigned long count = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		uint32_t opcode = random_opcode();
		size_t size = make_arguments(machine, opcode, arguments);

		if (random_below(20000) == 0)
			machine_init(machine);
		machine_send(machine, opcode, machine_node(machine), arguments, size);
		count++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < (time_t)seconds);
	machine_collect(machine);
	return count;
}

/* The server still answers what is right. */
static bool still_serves(struct machine *machine)
{
	struct fuse_getattr_in in = {0};
	struct fuse_attr_out out;

	if (machine_init(machine))
		return false;
	return machine_call(machine, FUSE_GETATTR, FUSE_ROOT_ID, &in, sizeof(in), &out,
			    sizeof(out)) == 0 &&
	       S_ISDIR(out.attr.mode);
}

static int report(const char *name, const char *why)
{
	if (why)
		printf("not ok %s: %s\n", name, why);
	else
		printf("ok %s\n", name);
	fflush(stdout);
	return why ? 1 : 0;
}

/* One way to serve a share, and what a guest may do to it then. */
struct manner {
	const char *name;
	/* "UPPER" stands for that directory, "NOTIFY" for a socket that notes are sent by. */
	const char *options[MACHINE_OPTIONS];
	bool keeps_share; /* nothing in it changes */
};

static const struct manner manners[] = {
	{"fuse_hostile_messages", {NULL}, false},
	{"fuse_hostile_messages_read_only", {"--read-only"}, true},
	{"fuse_hostile_messages_review", {"--upper", "UPPER"}, true},
	{"fuse_hostile_messages_exclusive", {"--cache", "exclusive"}, false},
	{"fuse_hostile_messages_epoll", {"--no-io-uring", "--cache", "none"}, false},
	{"fuse_hostile_messages_watched", {"--notify-fd", "NOTIFY"}, false},
	{"fuse_hostile_messages_watched_review",
	 {"--notify-fd", "NOTIFY", "--upper", "UPPER", "--no-io-uring"},
	 true},
};

/* The guest's end of the socket for notes: says that it is ready, and then reads nothing of what it
 * is told. */
static void begin_notes(int pair[2], char number[16])
{
	uint8_t ready[NOTIFY_READY_BYTES];

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	need(fcntl(pair[0], F_SETFD, FD_CLOEXEC) == 0, "fcntl");
	notify_encode_ready(ready);
	need(write(pair[0], ready, sizeof(ready)) == (ssize_t)sizeof(ready), "READY");
	snprintf(number, 16, "%d", pair[1]);
}

static int test_messages(const struct manner *manner)
{
	const char *options[MACHINE_OPTIONS];
	struct listener listener;
	struct tree tree;
	struct machine machine;
	const char *why = NULL;
	unsigned long count;
	char number[16];
	int notes[2];
	unsigned int last = 0;

	tree_create(&tree);
	begin_notes(notes, number);
	listener_start(&listener);
	for (unsigned int i = 0; i < MACHINE_OPTIONS; i++) {
		options[i] = manner->options[i];
		if (options[i] && strcmp(options[i], "UPPER") == 0)
			options[i] = tree.upper;
		if (options[i] && strcmp(options[i], "NOTIFY") == 0)
			options[i] = number;
		last = options[i] ? i + 1 : last;
	}
	options[last] = "--record-fd";
	options[last + 1] = listener.number;
	machine_create(&machine, server_path, tree.share, options);
	close(notes[1]);
	listener_listen(&listener);
	machine_activate(&machine);
	machine_init(&machine);
	tree_start_swapping(&tree);
	count = attack(&machine);
	tree_stop_swapping(&tree);
	if (!still_serves(&machine))
		why = "the server does not answer any more";
	/* What is no READY, and the end. */
	send(notes[0], "garbage", 7, MSG_NOSIGNAL);
	close(notes[0]);
	if (!still_serves(&machine))
		why = "the server does not answer any more without its socket for notes";
	if (machine_destroy(&machine))
		why = "the server did not end in order";
	why = why ? why : listener_finish(&listener);
	if (!tree_canary_lives(&tree))
		why = "the canary beside the share was touched";
	if (manner->keeps_share && !tree_unchanged(&tree))
		why = "the share was changed";
	printf("# %lu messages, seed %llu\n", count, (unsigned long long)first_seed);
	tree_destroy(&tree);
	return report(manner->name, why);
}

/* One way each to break a ring that holds one good request. */
static void break_ring(struct machine *machine, unsigned int variant)
{
	struct ring_driver *driver = &machine->drivers[1];
	struct ring_descriptor *table = ring_descriptors(driver);
	uint16_t head = (uint16_t)machine_add_getattr(machine);

	switch (variant) {
	case 0: /* a circle */
		table[head].flags |= RING_NEXT;
		table[head].next = head;
		break;
	case 1: /* no such descriptor */
		table[head].flags |= RING_NEXT;
		table[head].next = driver->size;
		break;
	case 2: /* beyond memory */
		table[head].address = MACHINE_BYTES - 1;
		break;
	case 3: /* past the end of all addresses */
		table[head].address = UINT64_MAX - 3;
		table[head].length = 64;
		break;
	case 4: /* written to before it is read from */
		table[head].flags |= RING_WRITE;
		break;
	case 5: /* a table that is not one */
		table[head].flags = RING_INDIRECT;
		table[head].length = 17;
		break;
	case 6: /* no such head */
		*ring_word(driver, driver->available_gpa, 2) = driver->size;
		break;
	default: /* more than the ring holds */
		driver->available_index = (uint16_t)(driver->available_index + driver->size + 1);
		break;
	}
	ring_show(driver);
	fd_signal_event(machine->kick_fds[1]);
}

#define BROKEN_RINGS 8

static int test_broken_rings(const char *name)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	const char *const options[] = {NULL};
	struct tree tree;
	struct machine machine;
	const char *why = NULL;

	tree_create(&tree);
	machine_create(&machine, server_path, tree.share, options);
	for (unsigned int variant = 0; variant < BROKEN_RINGS; variant++) {
		machine_activate(&machine);
		break_ring(&machine, variant);
		nanosleep(&moment, NULL);
		machine_reset(&machine);
		machine_activate(&machine);
		if (!still_serves(&machine))
			why = "the server does not answer after a broken ring";
		machine_reset(&machine);
	}
	if (machine_destroy(&machine))
		why = "the server did not end in order";
	if (!tree_canary_lives(&tree))
		why = "the canary beside the share was touched";
	tree_destroy(&tree);
	return report(name, why);
}

int main(int argc, char **argv)
{
	int failures = 0;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: %s PATH-OF-MVAGENT-FS [SEED [SECONDS]]\n", argv[0]);
		return 2;
	}
	server_path = argv[1];
	first_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (unsigned long long)time(NULL);
	random_state = first_seed;
	if (argc > 3)
		seconds = (unsigned int)strtoul(argv[3], NULL, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(manners); i++)
		failures += test_messages(&manners[i]);
	failures += test_broken_rings("fuse_broken_rings");
	return failures ? 1 : 0;
}
