/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of FUSE messages against the file server on a real directory, with a canary beside it.
 * The input is a list of records; a record may refer to nodes and handles that earlier replies gave
 * out, so that the fuzzer gets past the tables:
 *
 *   opcode, node, patch, room: one byte each; length: two bytes, little endian; then the arguments
 *
 * The first byte says how the share is served: 1 read-only, 2 with few descriptors, 4 with the
 * built-in rules (and then a hidden and a protected file are canaries too), 8 and 16 the cache
 * mode, 32 under review (and then the share is a canary as a whole).
 *
 * @node picks from the known node ids. @patch & 0x80 puts a known handle, & 0x40 a known node id,
 * over the first eight bytes of the arguments. @room * 16 is the payload space of the reply.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/fs/policy.h"
#include "vmm/fs/server.h"

#define RECORD_HEAD   6U
#define RECORD_MAX    64U /* messages in one sequence */
#define KNOWN_MAX     32U /* ids remembered */
#define CANARY        "canary"
#define LINKED        "linked"  /* a file outside that has a link in the share */
#define SECRET        "s3cr3t!" /* in a hidden file */
#define CONFIG        "config"  /* in a protected one */
#define REPLY_MAXIMUM (16 + 256 * 16)

static char base[64], share[80], outside[80], upper[80];
static uint64_t share_hash; /* of all that a change of the share would alter */
static int start_directory; /* the server leaves it; a fuzzer's own paths may be relative */

struct session {
	struct fs_server *server;
	struct descriptor_chain chain;
	uint8_t request[65536 + sizeof(struct fuse_in_header)];
	uint8_t reply[REPLY_MAXIMUM + 16];
	uint64_t nodes[KNOWN_MAX];
	uint64_t handles[KNOWN_MAX];
	unsigned int node_count;
	unsigned int handle_count;
	uint64_t unique;
	bool rules;
	bool review;
};

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	(void)status;
	(void)flag;
	return walk->level > 0 ? remove(path) : 0;
}

static void write_text(const char *directory, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* The file is as it was written, and no more than that. */
static void check_text(const char *directory, const char *name, const char *text)
{
	char path[128], found[64];
	struct stat status;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	CHECK(lstat(path, &status) == 0 && status.st_mode == (S_IFREG | 0644));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, found, sizeof(found)) == (ssize_t)strlen(text));
	CHECK(memcmp(found, text, strlen(text)) == 0);
	close(fd);
}

static void clean_up(void)
{
	chmod(share, 0755);
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rmdir(base);
}

/* The share and what lies beside it, once for all inputs. */
static void prepare(void)
{
	if (base[0])
		return;
	snprintf(base, sizeof(base), "%s/mvagent-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	CHECK(mkdtemp(base));
	atexit(clean_up);
	snprintf(share, sizeof(share), "%s/share", base);
	snprintf(outside, sizeof(outside), "%s/outside", base);
	snprintf(upper, sizeof(upper), "%s/upper", base);
	CHECK(mkdir(share, 0755) == 0 && mkdir(outside, 0755) == 0 && mkdir(upper, 0755) == 0);
	write_text(outside, "canary", CANARY);
	write_text(outside, "linked", LINKED);
	start_directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(start_directory >= 0);
}

/* What every sequence begins with: a directory, a file, links that lead out, a FIFO, and what the
 * built-in rules are about. */
static void fill_share(void)
{
	char path[128], from[128];

	CHECK(chmod(share, 0755) == 0);
	CHECK(nftw(share, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	snprintf(path, sizeof(path), "%s/d", share);
	CHECK(mkdir(path, 0755) == 0);
	write_text(share, "f", "text");
	write_text(share, ".env", SECRET);
	snprintf(path, sizeof(path), "%s/.git", share);
	CHECK(mkdir(path, 0755) == 0);
	write_text(share, ".git/config", CONFIG);
	snprintf(from, sizeof(from), "%s/linked", outside);
	snprintf(path, sizeof(path), "%s/h", share);
	CHECK(link(from, path) == 0);
	snprintf(path, sizeof(path), "%s/l", share);
	CHECK(symlink("../outside", path) == 0);
	snprintf(path, sizeof(path), "%s/p", share);
	CHECK(mkfifo(path, 0644) == 0);
}

static void hash_bytes(const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		share_hash = (share_hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ULL;
}

static int hash_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	char content[64];
	int fd = S_ISREG(status->st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t length = fd < 0 ? 0 : read(fd, content, sizeof(content));

	(void)flag;
	(void)walk;
	if (fd >= 0)
		close(fd);
	CHECK(length >= 0);
	hash_bytes(path, strlen(path));
	hash_bytes(content, (size_t)length);
	hash_bytes(&status->st_mode, sizeof(status->st_mode));
	hash_bytes(&status->st_ino, sizeof(status->st_ino));
	hash_bytes(&status->st_nlink, sizeof(status->st_nlink));
	hash_bytes(&status->st_size, sizeof(status->st_size));
	hash_bytes(&status->st_mtim, sizeof(status->st_mtim));
	hash_bytes(&status->st_ctim, sizeof(status->st_ctim));
	return 0;
}

static uint64_t hash_share(void)
{
	share_hash = 0xcbf29ce484222325ULL;
	CHECK(nftw(share, hash_one, 16, FTW_PHYS) == 0);
	return share_hash;
}

/* An empty upper layer. -1: this file system cannot hold one. */
static int open_upper(void)
{
	int fd;

	chmod(upper, 0755);
	CHECK(nftw(upper, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	fd = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	if (fsetxattr(fd, "user.probe", "y", 1, 0) == 0 && mknodat(fd, "probe", S_IFCHR, 0) == 0 &&
	    unlinkat(fd, "probe", 0) == 0)
		return fd;
	close(fd);
	return -1;
}

static void check_canaries(bool rules)
{
	char path[128];
	struct stat status;
	DIR *directory;
	int count = 0;

	snprintf(path, sizeof(path), "%s/canary", outside);
	CHECK(lstat(path, &status) == 0 && status.st_nlink == 1);
	check_text(outside, "canary", CANARY);
	check_text(outside, "linked", LINKED);
	if (rules) {
		CHECK(chmod(share, 0755) == 0);
		snprintf(path, sizeof(path), "%s/.git", share);
		CHECK(chmod(path, 0755) == 0);
		check_text(share, ".env", SECRET);
		check_text(share, ".git/config", CONFIG);
	}
	directory = opendir(outside);
	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	CHECK(count == 4);
}

/* No descriptor leads to what is below the base but not in the share. */
static void check_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[4096];

	CHECK(directory);
	while ((entry = readdir(directory))) {
		ssize_t length =
			readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		if (length < 0)
			continue;
		target[length] = '\0';
		if (strncmp(target, base, strlen(base)) == 0)
			CHECK(strncmp(target, share, strlen(share)) == 0 ||
			      strncmp(target, upper, strlen(upper)) == 0);
	}
	closedir(directory);
}

static void remember(uint64_t *known, unsigned int *count, uint64_t id)
{
	known[(*count)++ % KNOWN_MAX] = id;
}

static uint64_t recall(const uint64_t *known, unsigned int count, unsigned int index)
{
	unsigned int available = count < KNOWN_MAX ? count : KNOWN_MAX;

	return available ? known[index % available] : 0;
}

/* Learns ids from a reply, as far as its opcode has any. */
static void learn(struct session *session, uint32_t opcode, const uint8_t *payload, size_t size)
{
	struct fuse_entry_out entry;
	struct fuse_open_out open;
	bool has_entry = opcode == FUSE_LOOKUP || opcode == FUSE_MKDIR || opcode == FUSE_MKNOD ||
			 opcode == FUSE_SYMLINK || opcode == FUSE_LINK || opcode == FUSE_CREATE ||
			 opcode == FUSE_TMPFILE;

	if (has_entry && size >= sizeof(entry)) {
		memcpy(&entry, payload, sizeof(entry));
		remember(session->nodes, &session->node_count, entry.nodeid);
		payload += sizeof(entry);
		size -= sizeof(entry);
	} else if (opcode != FUSE_OPEN && opcode != FUSE_OPENDIR) {
		return;
	}
	if (size >= sizeof(open)) {
		memcpy(&open, payload, sizeof(open));
		remember(session->handles, &session->handle_count, open.fh);
	}
}

/* Sends a request of @size bytes, already in the buffer, and checks what any reply must be. */
static void serve(struct session *session, uint32_t opcode, uint32_t size, uint32_t writable)
{
	struct descriptor_chain *chain = &session->chain;
	struct fuse_out_header header;
	uint32_t used;

	memset(chain, 0, sizeof(*chain));
	memset(session->reply, 0xa5, sizeof(session->reply));
	chain->readable_count = 2;
	chain->segments[0] = (struct iovec){session->request, 24};
	chain->segments[1] = (struct iovec){session->request + 24, size - 24};
	chain->readable_bytes = size;
	if (writable) {
		chain->writable_count = 2;
		chain->segments[2] = (struct iovec){session->reply, 9};
		chain->segments[3] = (struct iovec){session->reply + 9, writable - 9};
		chain->writable_bytes = writable;
	}
	used = fs_server_serve(session->server, chain);
	CHECK(used <= writable);
	for (size_t i = writable; i < sizeof(session->reply); i++)
		CHECK(session->reply[i] == 0xa5);
	if (used == 0)
		return;
	CHECK(used >= sizeof(header));
	memcpy(&header, session->reply, sizeof(header));
	CHECK(header.len == used && header.unique == session->unique);
	CHECK(header.error <= 0 && header.error > -4096);
	CHECK(header.error == 0 || used == sizeof(header));
	CHECK(!session->rules || !memmem(session->reply, used, SECRET, strlen(SECRET)));
	if (header.error == 0)
		learn(session, opcode, session->reply + sizeof(header), used - sizeof(header));
}

/* Keeps what makes the host fill memory (the share is on tmpfs) within 64 KiB. */
static void bound_size(uint32_t opcode, uint8_t *body, uint32_t length)
{
	struct fuse_fallocate_in allocate;
	struct fuse_copy_file_range_in copy;

	if (opcode == FUSE_FALLOCATE && length >= sizeof(allocate)) {
		memcpy(&allocate, body, sizeof(allocate));
		allocate.offset &= 0xffff;
		allocate.length &= 0xffff;
		memcpy(body, &allocate, sizeof(allocate));
	} else if (opcode == FUSE_COPY_FILE_RANGE && length >= sizeof(copy)) {
		memcpy(&copy, body, sizeof(copy));
		copy.len &= 0xffff;
		memcpy(body, &copy, sizeof(copy));
	}
}

static void send_record(struct session *session, const uint8_t *head, const uint8_t *arguments,
			uint32_t length)
{
	struct fuse_in_header header = {
		.len = (uint32_t)sizeof(header) + length,
		.opcode = head[0],
		.unique = ++session->unique,
		.nodeid = recall(session->nodes, session->node_count, head[1]),
	};
	uint8_t *body = session->request + sizeof(header);
	uint64_t id = head[2] & 0x80
			      ? recall(session->handles, session->handle_count, head[2] & 0x3f)
			      : recall(session->nodes, session->node_count, head[2] & 0x3f);

	memcpy(session->request, &header, sizeof(header));
	memcpy(body, arguments, length);
	if ((head[2] & 0xc0) && length >= sizeof(id))
		memcpy(body, &id, sizeof(id));
	bound_size(head[0], body, length);
	serve(session, head[0], header.len, head[3] ? 16 + head[3] * 16U : 0);
}

static void start_session(struct session *session)
{
	static const uint8_t head[RECORD_HEAD] = {FUSE_INIT, 0, 0, 8};
	struct fuse_init_in in = {.major = 7, .minor = 41, .flags = 0xffffffffU};

	remember(session->nodes, &session->node_count, FUSE_ROOT_ID);
	send_record(session, head, (const uint8_t *)&in, sizeof(in));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct session session;
	struct fs_config config = {.guest_uid = 1000, .guest_gid = 1000, .notify_fd = -1};
	struct fs_review review = {.upper_fd = -1, .base_fd = -1};
	unsigned int records = 0;
	uint64_t before = 0;

	if (size == 0)
		return 0;
	prepare();
	fill_share();
	memset(&session, 0, sizeof(session));
	config.read_only = data[0] & 1;
	config.fd_limit = data[0] & 2 ? 64 : 0;
	config.cache = data[0] & 8    ? FS_CACHE_EXCLUSIVE
		       : data[0] & 16 ? FS_CACHE_NONE
				      : FS_CACHE_SHARED;
	session.rules = data[0] & 4;
	config.policy = policy_create();
	CHECK(config.policy && (!session.rules || policy_add_defaults(config.policy) == 0));
	if (data[0] & 32)
		review.upper_fd = open_upper();
	session.review = review.upper_fd >= 0;
	if (session.review) {
		config.read_only = false;
		config.review = &review;
		before = hash_share();
	}
	config.root_fd = open(share, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(config.root_fd >= 0);
	CHECK(fs_server_create(&session.server, &config) == 0);
	close(config.root_fd);
	if (session.review)
		close(review.upper_fd);
	start_session(&session);
	for (size_t at = 1; size - at >= RECORD_HEAD && records < RECORD_MAX; records++) {
		const uint8_t *head = data + at;
		uint32_t length = (uint32_t)(head[4] | head[5] << 8);

		at += RECORD_HEAD;
		if (length > size - at)
			length = (uint32_t)(size - at);
		send_record(&session, head, data + at, length);
		at += length;
	}
	check_descriptors();
	fs_server_destroy(session.server);
	CHECK(fchdir(start_directory) == 0);
	CHECK(!session.review || hash_share() == before);
	check_canaries(session.rules && !session.review);
	return 0;
}
