/* SPDX-License-Identifier: Apache-2.0 */
/* A share under review while its user works in it, and listings while the guest changes what they
 * are of. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/unit/fs_review.h"
#include "vmm/wire/notify.h"

static int guest_end; /* of the notify stream */
static uint8_t waiting[1 << 16];
static size_t waiting_length;

/* By another process: what this one does counts as the server's own. */
static void host(struct review *r, const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd '%s' && %s", r->h->directory, command);
	if (system(line) != 0)
		fail_msg("failed: %s", command);
}

/* A tree made by a shell, watched by a guest that takes notes. */
static struct review *create(const char *command)
{
	struct review *r = review_create_place("/dev/shm");
	uint8_t ready[NOTIFY_READY_BYTES];
	int pair[2];

	host(r, command);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	guest_end = pair[0];
	waiting_length = 0;
	review_serve(r, (struct fs_config){.notify_fd = pair[1]});
	notify_encode_ready(ready);
	assert_int_equal(write(guest_end, ready, sizeof(ready)), sizeof(ready));
	harness_serve_host(r->h);
	return r;
}

static void destroy(struct review *r)
{
	close(guest_end);
	review_note_host(r);
	review_destroy(r);
}

static bool next_note(struct review *r, struct notify_record *record)
{
	ssize_t length, used;

	harness_serve_host(r->h);
	length = read(guest_end, waiting + waiting_length, sizeof(waiting) - waiting_length);
	if (length > 0)
		waiting_length += (size_t)length;
	used = notify_decode(waiting, waiting_length, record);
	assert_true(used >= 0);
	memmove(waiting, waiting + used, waiting_length - (size_t)used);
	waiting_length -= (size_t)used;
	return used > 0;
}

static void expect_note(struct review *r, enum notify_kind kind, const char *name, uint64_t child)
{
	struct notify_record record;

	assert_true(next_note(r, &record));
	assert_int_equal(record.kind, kind);
	assert_string_equal(record.name, name);
	assert_int_equal(record.child, child);
}

static void expect_quiet(struct review *r)
{
	struct notify_record record;

	if (next_note(r, &record))
		fail_msg("a note of kind %d for '%s'", record.kind, record.name);
}

static uint64_t look(struct review *r, uint64_t parent, const char *name)
{
	uint64_t id;

	return call_lookup(r->h, parent, name, &id) ? 0 : id;
}

static void expect_content(struct review *r, uint64_t id, const char *text)
{
	struct fuse_open_out out;

	r->h->capacity = 4096;
	assert_int_equal(call_open(r->h, FUSE_OPEN, id, O_RDONLY, &out), 0);
	assert_int_equal(call_read(r->h, FUSE_READ, out.fh, 0, 4096), 0);
	assert_int_equal(r->h->payload_size, strlen(text));
	assert_memory_equal(r->h->payload, text, strlen(text));
	assert_int_equal(call_release(r->h, FUSE_RELEASE, id, out.fh), 0);
}

/* Opens for writing, so that the file is copied, and writes one letter. */
static void touch(struct review *r, uint64_t id)
{
	struct fuse_open_out out;
	uint32_t written;

	assert_int_equal(call_open(r->h, FUSE_OPEN, id, O_RDWR, &out), 0);
	assert_int_equal(call_write(r->h, out.fh, 0, "G", 1, 0, 0, &written), 0);
	assert_int_equal(call_release(r->h, FUSE_RELEASE, id, out.fh), 0);
}

static void test_untouched_is_live(void **state)
{
	struct review *r = create("mkdir d && echo one >d/f && echo two >d/g && echo x >d/h");
	uint64_t d = look(r, FUSE_ROOT_ID, "d"), f = look(r, d, "f"), g = look(r, d, "g");

	(void)state;
	touch(r, g);
	expect_quiet(r);
	host(r, "echo changed >d/f && echo new >d/new && rm d/h");
	assert_int_equal(look(r, d, "f"), f);
	expect_content(r, f, "changed\n");
	expect_content(r, look(r, d, "new"), "new\n");
	assert_int_equal(look(r, d, "h"), 0);
	destroy(r);
}

static void test_touched_is_frozen(void **state)
{
	struct review *r = create("mkdir d && echo one >d/f && echo two >d/g");
	uint64_t d = look(r, FUSE_ROOT_ID, "d"), f = look(r, d, "f");
	struct review_base before, after;
	struct stat status;

	(void)state;
	touch(r, f);
	assert_true(review_base(r, "d/f", &before));
	host(r, "sleep 0.05 && echo changed >d/f");
	expect_content(r, f, "Gne\n");
	/* The line of base stays that of the copy, whatever the guest does next. */
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "f"), 0);
	assert_true(review_base(r, "d/f", &after));
	assert_int_equal(before.inode, after.inode);
	assert_int_equal(before.ctime_ns, after.ctime_ns);
	assert_int_equal(fstatat(r->lower_fd, "d/f", &status, 0), 0);
	assert_int_not_equal(status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec,
			     after.ctime_ns);
	assert_true(review_is_whiteout_at(r, "d/f"));
	/* What the host makes after the guest has made its own has no line: a conflict. */
	assert_int_equal(call_mknod(r->h, d, "own", S_IFREG | 0644, NULL), 0);
	host(r, "echo host >d/own");
	expect_content(r, look(r, d, "own"), "");
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "own"), 0);
	assert_true(review_is_whiteout_at(r, "d/own"));
	assert_false(review_base(r, "d/own", &after));
	destroy(r);
}

/* The guest has not heard yet: it must not write into what is not there any more. */
static void test_replaced_by_the_host(void **state)
{
	struct review *r =
		create("mkdir -p d/e && cd d && echo one >f && echo two >g && echo x >e/f");
	uint64_t d = look(r, FUSE_ROOT_ID, "d"), f = look(r, d, "f"), g = look(r, d, "g");
	uint64_t e = look(r, d, "e");
	struct fuse_open_out out;

	(void)state;
	host(r, "echo new >new && mv new d/f && rm d/g && mv d/e d/moved");
	assert_int_equal(call_open(r->h, FUSE_OPEN, f, O_RDWR, &out), -ESTALE);
	assert_int_equal(call_open(r->h, FUSE_OPEN, g, O_RDWR, &out), -ESTALE);
	assert_int_equal(call_mknod(r->h, e, "own", S_IFREG | 0644, NULL), -ESTALE);
	assert_int_equal(look(r, d, "g"), 0);
	touch(r, look(r, d, "f"));
	expect_content(r, look(r, d, "f"), "Gew\n");
	assert_int_equal(call_mknod(r->h, look(r, d, "moved"), "own", S_IFREG | 0644, NULL), 0);
	assert_true(review_upper_has(r, "d/moved/own"));
	destroy(r);
}

static void test_notes(void **state)
{
	struct review *r = create("mkdir d && echo one >d/f && echo two >d/g && echo x >d/h");
	uint64_t d = look(r, FUSE_ROOT_ID, "d"), f = look(r, d, "f"), g = look(r, d, "g");

	(void)state;
	touch(r, f);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "h"), 0);
	expect_quiet(r);
	/* The directory is merged by now, and watched as before. */
	host(r, "echo more >>d/g");
	expect_note(r, NOTIFY_INVAL_INODE, "", g);
	expect_note(r, NOTIFY_EVENT, "g", g);
	expect_quiet(r);
	/* Of what the guest has its own, programs hear nothing. */
	host(r, "echo more >>d/f");
	expect_note(r, NOTIFY_INVAL_INODE, "", f);
	expect_quiet(r);
	host(r, "rm d/h && echo again >d/h");
	expect_quiet(r);
	host(r, "echo new >d/new");
	expect_note(r, NOTIFY_EXPIRE_ENTRY, "new", 0);
	expect_note(r, NOTIFY_INVAL_INODE, "", d);
	destroy(r);
}

static void test_directories_come_and_go(void **state)
{
	struct review *r = create("mkdir -p d/e && echo 1 >d/e/f && echo 2 >d/e/g");
	uint64_t d = look(r, FUSE_ROOT_ID, "d"), e = look(r, d, "e"), f = look(r, e, "f"), x;
	struct notify_record record;

	(void)state;
	touch(r, f);
	/* The host has none any more: what the guest changed is left. */
	host(r, "rm -r d");
	while (next_note(r, &record))
		continue;
	assert_int_equal(look(r, FUSE_ROOT_ID, "d"), d);
	assert_int_equal(look(r, d, "e"), e);
	assert_int_equal(look(r, e, "f"), f);
	assert_int_equal(look(r, e, "g"), 0);
	expect_content(r, f, "G\n");
	/* One of the guest's, and then one of the host's by that name: one directory. */
	assert_int_equal(call_mkdir(r->h, FUSE_ROOT_ID, "x", 0755, &x), 0);
	assert_int_equal(call_mknod(r->h, x, "own", S_IFREG | 0644, NULL), 0);
	assert_int_equal(look(r, x, "theirs"), 0);
	host(r, "mkdir x && echo theirs >x/theirs && echo host >x/own");
	while (next_note(r, &record))
		continue;
	assert_int_equal(look(r, FUSE_ROOT_ID, "x"), x);
	/* The guest must forget that there is no such name. */
	assert_true(next_note(r, &record));
	assert_int_equal(record.kind, NOTIFY_INVAL_ALL);
	expect_content(r, look(r, x, "theirs"), "theirs\n");
	expect_content(r, look(r, x, "own"), "");
	/* And it is watched. */
	host(r, "echo more >>x/theirs");
	expect_note(r, NOTIFY_INVAL_INODE, "", look(r, x, "theirs"));
	destroy(r);
}

static void rewrite_for_ever(int lower_fd)
{
	static char bytes[300000];

	/* Whatever becomes of the test. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0;; i++) {
		FD_CLEANUP int fd = openat(lower_fd, "d/f", O_WRONLY | O_CLOEXEC);

		memset(bytes, 'a' + i % 26, sizeof(bytes));
		if (pwrite(fd, bytes, sizeof(bytes), 0) < 0)
			_exit(1);
		usleep((useconds_t)(i % 8) * 300);
	}
}

/* A file that the host changes all the time: a copy that is not what the host has shows that in its
 * line of base. */
static void test_torn_copies_are_conflicts(void **state)
{
	struct review *r = create("mkdir d && head -c 300000 /dev/zero >d/f");
	uint64_t d = look(r, FUSE_ROOT_ID, "d");
	static char upper[300000], lower[300000];
	int conflicts = 0;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		rewrite_for_ever(r->lower_fd);
	for (int i = 0; i < 30; i++) {
		struct review_base base = {0};
		struct stat status;
		FD_CLEANUP int fd = -1;
		FD_CLEANUP int host_fd = -1;

		touch(r, look(r, d, "f"));
		kill(child, SIGSTOP);
		waitpid(child, NULL, WUNTRACED);
		assert_true(review_base(r, "d/f", &base));
		assert_int_equal(fstatat(r->lower_fd, "d/f", &status, 0), 0);
		fd = openat(r->upper_fd, "d/f", O_RDONLY | O_CLOEXEC);
		host_fd = openat(r->lower_fd, "d/f", O_RDONLY | O_CLOEXEC);
		assert_int_equal(pread(fd, upper, sizeof(upper), 0), sizeof(upper));
		assert_int_equal(pread(host_fd, lower, sizeof(lower), 0), sizeof(lower));
		if (status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec == base.ctime_ns)
			assert_memory_equal(upper + 1, lower + 1, sizeof(upper) - 1);
		else
			conflicts++;
		/* Forgets the copy, as nobody but a test does. */
		assert_int_equal(unlinkat(r->upper_fd, "d/f", 0), 0);
		assert_int_equal(harness_init_session(r->h), 0);
		d = look(r, FUSE_ROOT_ID, "d");
		kill(child, SIGCONT);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	print_message("%d of 30 were changed meanwhile\n", conflicts);
	destroy(r);
}

/* --- listings --- */

struct listing {
	struct review *r;
	uint64_t fh;
	uint64_t offset;
	uint32_t room;
	unsigned int count;
	char names[1024][16];
	uint64_t offsets[1024];
};

static void listing_open(struct listing *listing, struct review *r, uint64_t directory)
{
	struct fuse_open_out out;

	*listing = (struct listing){.r = r, .room = 200};
	assert_int_equal(call_open(r->h, FUSE_OPENDIR, directory, O_RDONLY, &out), 0);
	listing->fh = out.fh;
}

/* Reads on; returns how many entries came. */
static unsigned int listing_read(struct listing *listing)
{
	unsigned int before = listing->count;
	size_t at = 0;

	listing->r->h->capacity = listing->room;
	assert_int_equal(
		call_read(listing->r->h, FUSE_READDIR, listing->fh, listing->offset, listing->room),
		0);
	while (at < listing->r->h->payload_size) {
		struct fuse_dirent entry;

		memcpy(&entry, listing->r->h->payload + at, FUSE_NAME_OFFSET);
		snprintf(listing->names[listing->count], 16, "%.*s", (int)entry.namelen,
			 (char *)listing->r->h->payload + at + FUSE_NAME_OFFSET);
		listing->offset = entry.off;
		listing->offsets[listing->count++] = entry.off;
		at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
	}
	return listing->count - before;
}

static unsigned int listing_has(const struct listing *listing, const char *name)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < listing->count; i++)
		found += strcmp(listing->names[i], name) == 0;
	return found;
}

static void test_listing_of_both(void **state)
{
	struct review *r = create("mkdir d && cd d && for i in $(seq 100); do echo >l$i; done");
	uint64_t d = look(r, FUSE_ROOT_ID, "d");
	struct listing listing, other;
	unsigned int count, at;
	char name[16];

	(void)state;
	for (unsigned int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "u%u", i);
		assert_int_equal(call_mknod(r->h, d, name, S_IFREG | 0644, NULL), 0);
		snprintf(name, sizeof(name), "l%u", 2 * i + 1);
		if (i % 2)
			assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, name), 0);
		else
			touch(r, look(r, d, name));
	}
	listing_open(&listing, r, d);
	listing_read(&listing);
	/* While it is open: its places stay, and what is new may come or not. */
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "u3"), 0);
	assert_int_equal(call_mknod(r->h, d, "late", S_IFREG | 0644, NULL), 0);
	while (listing_read(&listing))
		continue;
	count = listing.count;
	assert_int_equal(listing_has(&listing, "."), 1);
	assert_int_equal(listing_has(&listing, ".."), 1);
	assert_in_range(count, 2 + 75 + 49, 2 + 75 + 51);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(listing_has(&listing, listing.names[i]), 1);
	assert_int_equal(listing_has(&listing, "l3"), 0);
	assert_int_equal(listing_has(&listing, "l1"), 1);
	/* telldir(3) and seekdir(3) */
	at = count / 2;
	strcpy(name, listing.names[at + 1]);
	listing.offset = listing.offsets[at];
	listing.count = 0;
	assert_true(listing_read(&listing) > 0);
	assert_string_equal(listing.names[0], name);
	/* Positions that nobody was told. */
	for (uint64_t position = 1; position < 100; position += 7) {
		listing.offset = position;
		listing.count = 0;
		listing_read(&listing);
	}
	listing.offset = UINT64_MAX;
	assert_int_equal(listing_read(&listing), 0);
	/* rewinddir(3) */
	listing.offset = 0;
	listing.count = 0;
	while (listing_read(&listing))
		continue;
	assert_int_equal(listing.count, 2 + 75 + 50);
	assert_int_equal(listing_has(&listing, "late"), 1);
	assert_int_equal(listing_has(&listing, "u3"), 0);
	/* A guest that has kept the beginning reads on by another handle. */
	listing_open(&other, r, d);
	at = listing.count / 2;
	other.offset = listing.offsets[at];
	while (listing_read(&other))
		continue;
	assert_int_equal(other.count, listing.count - at - 1);
	for (unsigned int i = 0; i < other.count; i++)
		assert_string_equal(other.names[i], listing.names[at + 1 + i]);
	destroy(r);
}

/* As rm -r does it: reads some, removes those, reads on. */
static void test_removal_while_listing(void **state)
{
	struct review *r = create("mkdir d && cd d && for i in $(seq 300); do echo >l$i; done");
	uint64_t d = look(r, FUSE_ROOT_ID, "d");
	unsigned int removed = 0, done = 0, gone = 0;
	struct listing listing;

	(void)state;
	listing_open(&listing, r, d);
	listing_read(&listing);
	/* Not yet read, and of the host's directory alone until now. */
	for (unsigned int i = 1; i <= 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "l%u", i);
		if (i % 2 && !listing_has(&listing, name))
			gone += call_remove(r->h, FUSE_UNLINK, d, name) == 0;
	}
	assert_true(gone > 100);
	do {
		for (; done < listing.count; done++) {
			if (listing.names[done][0] == '.')
				continue;
			assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, listing.names[done]), 0);
			removed++;
		}
	} while (listing_read(&listing));
	assert_int_equal(removed + gone, 300);
	/* What was open to the host's directory sees the guest's now. */
	listing.offset = 0;
	listing.count = 0;
	while (listing_read(&listing))
		continue;
	assert_int_equal(listing.count, 2);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), 0);
	destroy(r);
}

/* Directories of two layers have two descriptors each. */
static void test_few_descriptors(void **state)
{
	struct review *r = review_create_place("/dev/shm");
	uint64_t nodes[200], files[200];
	char name[16];

	(void)state;
	host(r, "for i in $(seq 0 199); do mkdir d$i && echo $i >d$i/f; done");
	review_serve(r, (struct fs_config){.fd_limit = LIMIT_FS_FD_MINIMUM});
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		nodes[i] = look(r, FUSE_ROOT_ID, name);
		files[i] = look(r, nodes[i], "f");
		touch(r, files[i]);
		assert_in_range(fs_server_usage(r->h->server).descriptors, 2, LIMIT_FS_FD_MINIMUM);
	}
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%u\n", i);
		name[0] = 'G';
		expect_content(r, files[i], name);
		assert_int_equal(look(r, nodes[i], "absent"), 0);
	}
	/* As many as are counted are open. */
	assert_int_equal(harness_init_session(r->h), 0);
	assert_int_equal(fs_server_usage(r->h->server).descriptors, 2);
	review_destroy(r);
}

/* A directory that was moved has nothing of the host's any more. */
static void test_moved_is_frozen(void **state)
{
	struct review *r = create("mkdir -p d/e && echo one >d/f && echo two >d/e/f");
	uint64_t d = look(r, FUSE_ROOT_ID, "d"), e = look(r, d, "e");

	(void)state;
	touch(r, look(r, e, "f"));
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "new", 0), 0);
	host(r, "echo late >d/late && echo late >d/e/late");
	assert_int_equal(look(r, d, "late"), 0);
	assert_int_equal(look(r, e, "late"), 0);
	expect_content(r, look(r, e, "f"), "Gwo\n");
	/* Nor does it come back where it was: the whiteout stays. */
	assert_int_equal(look(r, FUSE_ROOT_ID, "d"), 0);
	destroy(r);
}

static void test_hidden_names(void **state)
{
	struct review *r = review_create_place("/dev/shm");
	struct fs_config config = {.policy = policy_create()};
	struct review_base base;
	uint64_t d, id, sub;

	(void)state;
	host(r, "mkdir -p d .git/hooks sub && echo s >d/.env && echo f >d/f");
	host(r, "echo c >.git/config && ln d/.env sub/alias && mkdir k && echo k >k/.netrc");
	host(r, "cp .git/config .git/config.lock");
	config.scan = true;
	assert_int_equal(policy_add_defaults(config.policy), 0);
	review_serve(r, config);
	d = look(r, FUSE_ROOT_ID, "d");
	assert_int_equal(look(r, d, ".env"), 0);
	sub = look(r, FUSE_ROOT_ID, "sub");
	assert_int_equal(look(r, sub, "alias"), 0);
	/* Nor does its other name become a copy that is not hidden. */
	assert_int_equal(call_rename(r->h, sub, "alias", sub, "x", 0), -ENOENT);
	assert_int_equal(call_rename(r->h, d, "f", sub, "alias", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(call_rename(r->h, d, "f", sub, "alias", 0), -EACCES);
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, sub, "alias"), -ENOENT);
	assert_false(review_upper_has(r, "sub/alias"));
	assert_int_equal(call_mknod(r->h, d, ".env", S_IFREG | 0644, NULL), -EACCES);
	assert_int_equal(call_rename(r->h, d, "f", d, ".env", 0), -EACCES);
	/* It would have to move along. */
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "e", 0), -EXDEV);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "sub", FUSE_ROOT_ID, "e", 0), -EXDEV);
	assert_int_equal(call_rename(r->h, FUSE_ROOT_ID, "k", FUSE_ROOT_ID, "e", 0), -EXDEV);
	assert_false(review_upper_has(r, "k/.netrc"));
	assert_int_equal(call_remove(r->h, FUSE_UNLINK, d, "f"), 0);
	assert_int_equal(call_remove(r->h, FUSE_RMDIR, FUSE_ROOT_ID, "d"), -ENOTEMPTY);
	assert_false(review_upper_has(r, "d/.env"));
	/* What is protected is the guest's to change here, and `mvagent apply`'s to refuse. */
	d = look(r, FUSE_ROOT_ID, ".git");
	assert_int_equal(call_rename(r->h, d, "config.lock", d, "config", 0), 0);
	assert_int_equal(look(r, d, "config.lock"), 0);
	review_expect_untouched(r);
	id = look(r, look(r, FUSE_ROOT_ID, ".git"), "config");
	touch(r, id);
	expect_content(r, id, "G\n");
	assert_int_equal(call_mknod(r->h, look(r, look(r, FUSE_ROOT_ID, ".git"), "hooks"),
				    "pre-commit", S_IFREG | 0755, NULL),
			 0);
	assert_true(review_base(r, ".git/config", &base));
	review_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_untouched_is_live),
		cmocka_unit_test(test_touched_is_frozen),
		cmocka_unit_test(test_replaced_by_the_host),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_directories_come_and_go),
		cmocka_unit_test(test_torn_copies_are_conflicts),
		cmocka_unit_test(test_listing_of_both),
		cmocka_unit_test(test_removal_while_listing),
		cmocka_unit_test(test_few_descriptors),
		cmocka_unit_test(test_moved_is_frozen),
		cmocka_unit_test(test_hidden_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
