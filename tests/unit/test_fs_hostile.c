/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest kernel that lies: names that are no names, ids and handles that were never given out,
 * messages of any size, files that must not be opened, and a host that swaps what is looked up.
 * Beside the share lies a canary; whatever is sent, it stays as it was.
 */
#include "tests/unit/fs_harness.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <time.h>

static const char canary_text[] = "canary";

static void canary_path(const struct harness *h, char path[512])
{
	snprintf(path, 512, "%s/canary", h->outside);
}

static int setup(void **state)
{
	struct harness *h = harness_create(*state ? "/tmp" : "/dev/shm", false, 0);
	char path[512];
	int fd;

	canary_path(h, path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, canary_text, sizeof(canary_text)), sizeof(canary_text));
	close(fd);
	*state = h;
	return 0;
}

/* The canary is alone and as it was; no descriptor of the server leads outside. */
static int teardown(void **state)
{
	struct harness *h = *state;
	char path[512], text[16];
	DIR *directory = opendir(h->outside);
	struct stat status;
	int count = 0;
	int fd;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	assert_int_equal(count, 3);
	canary_path(h, path);
	assert_int_equal(lstat(path, &status), 0);
	assert_int_equal(status.st_nlink, 1);
	assert_int_equal(status.st_size, sizeof(canary_text));
	assert_int_equal(status.st_mode & 07777, 0644);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), sizeof(canary_text));
	assert_memory_equal(text, canary_text, sizeof(canary_text));
	close(fd);
	harness_destroy(h);
	return 0;
}

/* Every operation that takes a name, with @name as each of the names that it takes. */
static void send_name_everywhere(struct harness *h, uint64_t directory, uint64_t file,
				 struct piece name, int expected)
{
	struct fuse_mkdir_in mkdir_in = {.mode = 0755};
	struct fuse_mknod_in mknod_in = {.mode = S_IFREG | 0600};
	struct fuse_link_in link_in = {.oldnodeid = file};
	struct fuse_create_in create_in = {.flags = O_RDWR, .mode = 0600};
	struct fuse_rename_in rename_in = {.newdir = directory};
	struct fuse_rename2_in rename2_in = {.newdir = directory};
	const struct {
		uint32_t opcode;
		struct piece pieces[3];
	} messages[] = {
		{FUSE_LOOKUP, {name, NONE, NONE}},
		{FUSE_UNLINK, {name, NONE, NONE}},
		{FUSE_RMDIR, {name, NONE, NONE}},
		{FUSE_SYMLINK, {name, NAME("target"), NONE}},
		{FUSE_MKDIR, {PIECE(mkdir_in), name, NONE}},
		{FUSE_MKNOD, {PIECE(mknod_in), name, NONE}},
		{FUSE_LINK, {PIECE(link_in), name, NONE}},
		{FUSE_CREATE, {PIECE(create_in), name, NONE}},
		{FUSE_RENAME, {PIECE(rename_in), name, NAME("ok")}},
		{FUSE_RENAME, {PIECE(rename_in), NAME("file"), name}},
		{FUSE_RENAME2, {PIECE(rename2_in), name, NAME("ok")}},
		{FUSE_RENAME2, {PIECE(rename2_in), NAME("file"), name}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		int error = harness_call(h, messages[i].opcode, directory, messages[i].pieces[0],
					 messages[i].pieces[1], messages[i].pieces[2]);

		assert_int_equal(error, expected);
	}
}

static void test_names(void **state)
{
	struct harness *h = *state;
	static const char *const names[] = {
		"",
		".",
		"..",
		"/",
		"a/b",
		"/etc/passwd",
		"../outside/canary",
		"./file",
		"file/",
		"dir/../../outside",
		"//",
		"dir/",
		"..//",
		"\xff/\xff",
		"/proc/self/fd/0",
	};
	char too_long[4096];
	uint64_t file, directory;

	harness_host_write(h, "file", "x");
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "dir", 0755, &directory), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "file", &file), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		send_name_everywhere(h, FUSE_ROOT_ID, file, NAME(names[i]), -EINVAL);
		send_name_everywhere(h, directory, file, NAME(names[i]), -EINVAL);
	}
	for (size_t length = LIMIT_FS_NAME_BYTES + 1; length < sizeof(too_long); length *= 2) {
		memset(too_long, 'n', length);
		too_long[length] = '\0';
		send_name_everywhere(h, FUSE_ROOT_ID, file, NAME(too_long), -ENAMETOOLONG);
	}
	assert_true(harness_host_exists(h, "file"));
	assert_true(harness_host_exists(h, "dir"));
	assert_false(harness_host_exists(h, "ok"));
}

static void test_ends_of_names(void **state)
{
	struct harness *h = *state;
	struct fuse_mkdir_in in = {.mode = 0755};
	struct fuse_rename_in rename_in = {.newdir = FUSE_ROOT_ID};
	uint32_t xattr[2] = {3, 0};
	uint64_t file;

	harness_host_write(h, "file", "x");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "file", &file), 0);
	/* no NUL; bytes after the NUL; no name at all */
	assert_int_equal(harness_call(h, FUSE_LOOKUP, 1, BYTES("file", 4), NONE, NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_LOOKUP, 1, BYTES("file\0\0", 6), NONE, NONE),
			 -EINVAL);
	assert_int_equal(harness_call(h, FUSE_LOOKUP, 1, BYTES("file\0/../x", 11), NONE, NONE),
			 -EINVAL);
	assert_int_equal(harness_call(h, FUSE_LOOKUP, 1, NONE, NONE, NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_MKDIR, 1, PIECE(in), BYTES("d", 1), NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_MKDIR, 1, PIECE(in), BYTES("d\0d", 4), NONE),
			 -EINVAL);
	assert_int_equal(harness_call(h, FUSE_MKDIR, 1, PIECE(in), NONE, NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_UNLINK, 1, BYTES("file\0x", 7), NONE, NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_RENAME, 1, PIECE(rename_in), NAME("file"), NONE),
			 -EINVAL);
	assert_int_equal(
		harness_call(h, FUSE_RENAME, 1, PIECE(rename_in), NAME("file"), BYTES("x\0y", 4)),
		-EINVAL);
	assert_int_equal(harness_call(h, FUSE_SYMLINK, 1, NAME("l"), BYTES("a\0b", 4), NONE),
			 -EINVAL);
	assert_int_equal(harness_call(h, FUSE_SYMLINK, 1, NAME("l"), NONE, NONE), -EINVAL);
	/* The size of a value is that of what follows the name, neither more nor less. */
	assert_int_equal(
		harness_call(h, FUSE_SETXATTR, file, PIECE(xattr), NAME("user.x"), BYTES("vv", 2)),
		-EINVAL);
	assert_int_equal(harness_call(h, FUSE_SETXATTR, file, PIECE(xattr), NAME("user.x"),
				      BYTES("vvvv", 4)),
			 -EINVAL);
	assert_true(harness_host_exists(h, "file"));
	assert_false(harness_host_exists(h, "d"));
	assert_false(harness_host_exists(h, "l"));
}

/* Every operation, with arguments of every length from nothing up, for a node that is not. */
static void test_every_opcode_of_every_size(void **state)
{
	struct harness *h = *state;
	static const uint64_t nodes[] = {0, 1, 2, 1ULL << 32, (1ULL << 32) + 1, UINT64_MAX};
	static const uint8_t fills[] = {0x00, 0x01, 0x2f, 0x41, 0xff};
	uint8_t bytes[256];

	for (size_t fill = 0; fill < ARRAY_SIZE(fills); fill++) {
		memset(bytes, fills[fill], sizeof(bytes));
		for (uint32_t opcode = 0; opcode < WIRE_OPCODE_COUNT + 3; opcode++) {
			if (opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET ||
			    opcode == FUSE_INTERRUPT)
				continue;
			for (size_t size = 0; size < sizeof(bytes); size += size < 70 ? 1 : 31) {
				uint64_t node = nodes[size % ARRAY_SIZE(nodes)];

				harness_call(h, opcode, node, BYTES(bytes, size), NONE, NONE);
				if (opcode == FUSE_INIT || opcode == FUSE_DESTROY)
					harness_init_session(h);
			}
		}
	}
	assert_int_equal(harness_call(h, 53, 1, NONE, NONE, NONE), -ENOSYS);
	assert_int_equal(harness_call(h, UINT32_MAX, 1, NONE, NONE, NONE), -ENOSYS);
}

static void test_replies_without_room(void **state)
{
	struct harness *h = *state;
	struct fs_usage before;
	uint64_t directory;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "dir", 0755, &directory), 0);
	harness_host_write(h, "file", "x");
	before = fs_server_usage(h->server);
	h->capacity = sizeof(struct fuse_entry_out) - 1;
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "file", NULL), -EINVAL);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "new", O_RDWR, 0600, NULL, NULL), -EINVAL);
	h->capacity = 0;
	assert_int_equal(harness_call(h, FUSE_STATFS, 1, NONE, NONE, NONE), -EINVAL);
	assert_int_equal(harness_call(h, FUSE_GETATTR, 1,
				      BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16), NONE, NONE),
			 -EINVAL);
	assert_int_equal(fs_server_usage(h->server).inodes, before.inodes);
	assert_int_equal(fs_server_usage(h->server).handles, before.handles);
	assert_int_equal(fs_server_usage(h->server).descriptors, before.descriptors);
}

static void test_forged_nodes_and_handles(void **state)
{
	struct harness *h = *state;
	struct fuse_forget_in forget_in = {.nlookup = 1};
	struct fuse_open_out open;
	struct fuse_attr attr;
	uint64_t node, fh, old, directory;
	uint32_t written;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR, 0644, &node, &fh), 0);
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t forged = node ^ 1ULL << bit;
		uint64_t forged_fh = fh ^ 1ULL << bit;

		if (forged != FUSE_ROOT_ID) {
			assert_int_equal(call_getattr(h, forged, &attr), -ESTALE);
			assert_int_equal(call_lookup(h, forged, "f", NULL), -ESTALE);
			assert_int_equal(call_open(h, FUSE_OPEN, forged, O_RDONLY, &open), -ESTALE);
			assert_int_equal(call_link(h, forged, FUSE_ROOT_ID, "g"), -ESTALE);
			assert_int_equal(call_rename(h, FUSE_ROOT_ID, "f", forged, "g", 0),
					 -ESTALE);
		}
		assert_int_equal(call_read(h, FUSE_READ, forged_fh, 0, 1), -EBADF);
		assert_int_equal(call_write(h, forged_fh, 0, "x", 1, 0, 0, &written), -EBADF);
		assert_int_equal(call_read(h, FUSE_READDIR, forged_fh, 0, 1), -EBADF);
		assert_int_equal(call_release(h, FUSE_RELEASE, node, forged_fh), -EBADF);
	}
	/* The one released, and the one that has its slot now. */
	old = fh;
	assert_int_equal(call_release(h, FUSE_RELEASE, node, fh), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDWR, &open), 0);
	assert_int_equal((uint32_t)open.fh, (uint32_t)old);
	assert_int_equal(call_read(h, FUSE_READ, old, 0, 1), -EBADF);
	assert_int_equal(call_release(h, FUSE_RELEASE, node, old), -EBADF);
	assert_int_equal(call_read(h, FUSE_READ, open.fh, 0, 1), 0);
	/* The same for nodes; and a file that is open outlives its node. */
	harness_forget(h, node, UINT64_MAX);
	assert_int_equal(call_getattr(h, node, &attr), -ESTALE);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &directory), 0);
	assert_int_equal((uint32_t)directory, (uint32_t)node);
	assert_true(directory != node);
	assert_int_equal(call_getattr(h, node, &attr), -ESTALE);
	harness_forget(h, node, 1);
	assert_int_equal(call_getattr(h, directory, &attr), 0);
	assert_int_equal(call_read(h, FUSE_READ, open.fh, 0, 1), 0);
	/* FORGET has no reply even when the guest leaves room for one. */
	{
		struct fuse_in_header header = {.opcode = FUSE_FORGET,
						.len = sizeof(header) + sizeof(forget_in),
						.nodeid = directory};

		memcpy(h->request, &header, sizeof(header));
		memcpy(h->request + sizeof(header), &forget_in, sizeof(forget_in));
		assert_int_equal(harness_serve_raw(h, header.len, 64), 0);
	}
	assert_int_equal(call_getattr(h, directory, &attr), -ESTALE);
	assert_true(fs_server_counters(h->server)->invalid >= 2);
}

static void test_batch_forget(void **state)
{
	struct harness *h = *state;
	struct {
		struct fuse_in_header header;
		struct fuse_batch_forget_in in;
		struct fuse_forget_one one[3];
	} message = {.header = {.opcode = FUSE_BATCH_FORGET, .len = sizeof(message)},
		     .in = {.count = 3}};
	struct fuse_attr attr;
	uint64_t a, b;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "a", 0755, &a), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "b", 0755, &b), 0);
	message.one[0] = (struct fuse_forget_one){.nodeid = a, .nlookup = 1};
	message.one[1] = (struct fuse_forget_one){.nodeid = 99, .nlookup = 1};
	message.one[2] = (struct fuse_forget_one){.nodeid = FUSE_ROOT_ID, .nlookup = 9};
	memcpy(h->request, &message, sizeof(message));
	assert_int_equal(harness_serve_raw(h, sizeof(message), 0), 0);
	assert_int_equal(call_getattr(h, a, &attr), -ESTALE);
	assert_int_equal(call_getattr(h, b, &attr), 0);
	/* A count beyond what is there. */
	message.one[0].nodeid = b;
	message.in.count = UINT32_MAX;
	memcpy(h->request, &message, sizeof(message));
	assert_int_equal(harness_serve_raw(h, sizeof(message), 0), 0);
	assert_int_equal(call_getattr(h, b, &attr), -ESTALE);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "b", NULL), 0);
}

/* FIFOs, sockets and devices that are in the tree already are shown and never opened: an open of
 * this FIFO, if it came about, would wait or would wake its reader. */
static void test_special_files_are_not_opened(void **state)
{
	static const char *const names[] = {"fifo", "socket", "device"};
	struct harness *h = *state;
	char path[512];
	int reader;

	harness_path(h, "fifo", path);
	assert_int_equal(mkfifo(path, 0666), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	harness_path(h, "socket", path);
	assert_int_equal(mknod(path, S_IFSOCK | 0666, 0), 0);
	harness_path(h, "device", path);
	if (mknod(path, S_IFCHR | 0666, makedev(1, 5)) != 0) /* /dev/zero; needs root */
		assert_int_equal(mknod(path, S_IFSOCK | 0666, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		static const uint32_t flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC};
		struct fuse_setattr_in in = {.valid = FATTR_SIZE};
		struct fuse_open_out open;
		uint64_t node;
		char byte;

		assert_int_equal(call_lookup(h, FUSE_ROOT_ID, names[i], &node), 0);
		for (size_t j = 0; j < ARRAY_SIZE(flags); j++) {
			assert_int_equal(call_open(h, FUSE_OPEN, node, flags[j], &open), -ENXIO);
			assert_int_equal(
				call_create(h, FUSE_ROOT_ID, names[i], flags[j], 0600, NULL, NULL),
				-ENXIO);
		}
		assert_int_equal(call_open(h, FUSE_OPENDIR, node, O_RDONLY, &open), -ENOTDIR);
		assert_int_equal(call_setattr(h, node, &in, NULL), -EINVAL);
		assert_int_equal(call_lookup(h, node, "x", NULL), -ENOTDIR);
		/* End of file, not EAGAIN: nobody has opened the other end. */
		assert_int_equal(read(reader, &byte, 1), 0);
	}
	close(reader);
}

/* --- the host swaps a name while the guest looks it up --- */

struct swapper {
	char from[512], to[512];
	volatile bool stop;
};

/* Exchanges a directory and a symlink that leads outside, for ever. */
static void *swap_names(void *opaque)
{
	struct swapper *swapper = opaque;

	while (!swapper->stop)
		if (renameat2(AT_FDCWD, swapper->from, AT_FDCWD, swapper->to, RENAME_EXCHANGE))
			abort();
	return NULL;
}

/* One round of all that a guest could do with the name that is being swapped. Returns whether a
 * file below it was written to. */
static bool attack_swapped(struct harness *h, unsigned int round)
{
	struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0777};
	struct fuse_open_out open;
	uint64_t node, inner, fh;
	bool written_to = false;
	uint32_t written;

	if (call_lookup(h, FUSE_ROOT_ID, "swapped", &node))
		return false;
	if (call_lookup(h, node, "canary", &inner) == 0) {
		/* Only the harmless file of that name inside the share may be reached. */
		if (call_open(h, FUSE_OPEN, inner, O_RDWR | O_TRUNC, &open) == 0) {
			written_to = call_write(h, open.fh, 0, "inside", 6, 0, 0, &written) == 0;
			call_release(h, FUSE_RELEASE, inner, open.fh);
		}
		call_setattr(h, inner, &mode, NULL);
		call_link(h, inner, FUSE_ROOT_ID, "linked");
		call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "linked");
		harness_forget(h, inner, 2);
	}
	if (call_create(h, node, "made", O_RDWR, 0644, &inner, &fh) == 0) {
		call_release(h, FUSE_RELEASE, inner, fh);
		call_rename(h, node, "made", node, "moved", 0);
		call_remove(h, FUSE_UNLINK, node, round & 1 ? "made" : "moved");
		harness_forget(h, inner, 1);
	}
	if (call_mkdir(h, node, "newdir", 0755, &inner) == 0) {
		call_remove(h, FUSE_RMDIR, node, "newdir");
		harness_forget(h, inner, 1);
	}
	harness_forget(h, node, 1);
	return written_to;
}

static void test_host_swaps_directory_and_link(void **state)
{
	struct harness *h = *state;
	struct swapper swapper = {.stop = false};
	struct timespec start, now;
	unsigned int rounds = 0, hits = 0;
	pthread_t thread;

	harness_path(h, "swapped", swapper.from);
	harness_path(h, "escape", swapper.to);
	assert_int_equal(mkdir(swapper.from, 0755), 0);
	assert_int_equal(symlink("../outside", swapper.to), 0);
	harness_host_write(h, "swapped/canary", "harmless");
	assert_int_equal(pthread_create(&thread, NULL, swap_names, &swapper), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		hits += attack_swapped(h, rounds++);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 2);
	swapper.stop = true;
	pthread_join(thread, NULL);
	assert_true(rounds > 100);
	/* It was a real attack: it met the directory as well as the link. */
	assert_in_range(hits, 1, rounds - 1);
	assert_int_equal(fs_server_usage(h->server).inodes, 1);
	assert_int_equal(fs_server_usage(h->server).handles, 0);
}

/* A directory that was looked up inside and is moved out by the host: what is below its O_PATH
 * descriptor stays reachable, as with any open directory, but nothing leads further up. */
static void test_no_way_up(void **state)
{
	struct harness *h = *state;
	char from[512], to[512];
	uint64_t directory;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &directory), 0);
	harness_path(h, "d", from);
	snprintf(to, sizeof(to), "%s/d", h->outside);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(call_lookup(h, directory, "..", NULL), -EINVAL);
	assert_int_equal(call_lookup(h, directory, "../canary", NULL), -EINVAL);
	assert_int_equal(call_lookup(h, directory, "canary", NULL), -ENOENT);
	assert_int_equal(rename(to, from), 0);
}

/* Symlinks in the tree that lead out are data to the server. */
static void test_links_lead_nowhere(void **state)
{
	static const char *const names[] = {"to-directory", "to-file", "to-proc", "to-root"};
	struct harness *h = *state;
	struct fuse_setattr_in size = {.valid = FATTR_SIZE};
	struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0};
	struct fuse_open_out open;
	char path[512];
	uint64_t node;

	harness_path(h, "to-directory", path);
	assert_int_equal(symlink("../outside", path), 0);
	harness_path(h, "to-file", path);
	assert_int_equal(symlink("../outside/canary", path), 0);
	harness_path(h, "to-proc", path);
	assert_int_equal(symlink("/proc/self/root/etc/passwd", path), 0);
	harness_path(h, "to-root", path);
	assert_int_equal(symlink("/", path), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(call_lookup(h, FUSE_ROOT_ID, names[i], &node), 0);
		assert_int_equal(call_lookup(h, node, "canary", NULL), -ENOTDIR);
		assert_int_equal(call_open(h, FUSE_OPEN, node, O_RDWR, &open), -ELOOP);
		assert_int_equal(call_open(h, FUSE_OPENDIR, node, O_RDONLY, &open), -ENOTDIR);
		assert_int_equal(call_setattr(h, node, &size, NULL), -EINVAL);
		assert_int_equal(call_setattr(h, node, &mode, NULL), -EOPNOTSUPP);
		assert_int_equal(call_mkdir(h, node, "x", 0755, NULL), -ENOTDIR);
		assert_int_equal(
			call_create(h, FUSE_ROOT_ID, names[i], O_RDWR | O_TRUNC, 0600, NULL, NULL),
			-ELOOP);
		assert_int_equal(call_mknod(h, FUSE_ROOT_ID, names[i], S_IFREG | 0600, NULL),
				 -EEXIST);
	}
}

/* What the host has mounted below the share is no part of it: seen in a listing, never entered. */
static void test_mounts_are_not_entered(void **state)
{
	struct fuse_open_out open;
	struct harness *h;
	char path[512];
	uint64_t node;

	(void)state;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip(); /* needs root */
	h = harness_create("/dev/shm", false, 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "m", 0755, &node), 0);
	harness_path(h, "m", path);
	assert_int_equal(mount(h->outside, path, NULL, MS_BIND, NULL), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "m", NULL), -EACCES);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "m", O_RDWR, 0600, NULL, NULL), -EACCES);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "m", 0755, NULL), -EEXIST);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "m"), -EBUSY);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "m", FUSE_ROOT_ID, "n", 0), -EBUSY);
	/* The directory that lies beneath was looked up before, and is what its node still means.
	 */
	assert_int_equal(call_mkdir(h, node, "beneath", 0755, NULL), 0);
	assert_int_equal(call_open(h, FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READDIRPLUS, open.fh, 0, 1024), 0);
	assert_true(h->payload_size > 2 * FUSE_NAME_OFFSET_DIRENTPLUS);
	assert_int_equal(fs_server_usage(h->server).inodes, 3);
	assert_int_equal(umount(path), 0);
	/* Also where the mount is the very directory that the guest knows by that name. */
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "m", NULL), 0);
	assert_int_equal(mount(path, path, NULL, MS_BIND, NULL), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "m", NULL), -EACCES);
	assert_int_equal(umount(path), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "m", NULL), 0);
	harness_destroy(h);
}

#define ON_TMPFS(test) cmocka_unit_test_prestate_setup_teardown(test, setup, teardown, NULL)
#define ON_DISK(test)                                          \
	{                                                      \
#test " (/tmp)", test, setup, teardown, "/tmp" \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_TMPFS(test_names),
		ON_TMPFS(test_ends_of_names),
		ON_TMPFS(test_every_opcode_of_every_size),
		ON_TMPFS(test_replies_without_room),
		ON_TMPFS(test_forged_nodes_and_handles),
		ON_TMPFS(test_batch_forget),
		ON_TMPFS(test_special_files_are_not_opened),
		ON_TMPFS(test_host_swaps_directory_and_link),
		ON_TMPFS(test_no_way_up),
		ON_TMPFS(test_links_lead_nowhere),
		cmocka_unit_test(test_mounts_are_not_entered),
		ON_DISK(test_names),
		ON_DISK(test_special_files_are_not_opened),
		ON_DISK(test_host_swaps_directory_and_link),
		ON_DISK(test_no_way_up),
		ON_DISK(test_links_lead_nowhere),
	};

	return cmocka_run_group_tests_name("fs_hostile", tests, NULL, NULL);
}
