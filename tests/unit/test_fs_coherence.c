/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest may keep, and how it hears of changes by the host. */
#include <sys/inotify.h>
#include <sys/socket.h>

#include "tests/unit/fs_harness.h"
#include "vmm/wire/notify.h"

static int guest_end; /* of the notify stream */
static uint8_t waiting[1 << 20];
static size_t waiting_length;

static struct harness *create(enum fs_cache cache, bool ready)
{
	struct harness *h = harness_create_place("/dev/shm");
	struct fs_config config = {.cache = cache, .policy = policy_create()};
	uint8_t bytes[NOTIFY_READY_BYTES];
	int pair[2];

	assert_int_equal(policy_add_defaults(config.policy), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	/* As little room as there can be, so that a slow guest is one at once. */
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
	guest_end = pair[0];
	waiting_length = 0;
	config.notify_fd = pair[1];
	harness_serve(h, &config);
	if (ready) {
		notify_encode_ready(bytes);
		assert_int_equal(write(guest_end, bytes, sizeof(bytes)), sizeof(bytes));
		harness_serve_host(h);
	}
	return h;
}

static int setup_ready(void **state)
{
	*state = create(FS_CACHE_SHARED, true);
	return 0;
}

static int teardown(void **state)
{
	close(guest_end);
	harness_destroy(*state);
	return 0;
}

/* The next record that the guest would get, or false. */
static bool next_note(struct harness *h, struct notify_record *record)
{
	ssize_t length, used;

	harness_serve_host(h);
	length = read(guest_end, waiting + waiting_length, sizeof(waiting) - waiting_length);
	if (length > 0)
		waiting_length += (size_t)length;
	used = notify_decode(waiting, waiting_length, record);
	assert_true(used >= 0);
	if (used == 0)
		return false;
	memmove(waiting, waiting + used, waiting_length - (size_t)used);
	waiting_length -= (size_t)used;
	return true;
}

static void expect_quiet(struct harness *h)
{
	struct notify_record record;

	if (next_note(h, &record))
		fail_msg("unexpected note of kind %d, name '%s', mask %x", record.kind, record.name,
			 record.mask);
}

static void expect_note(struct harness *h, enum notify_kind kind, uint64_t parent, const char *name,
			uint64_t child, uint32_t mask)
{
	struct notify_record record;

	assert_true(next_note(h, &record));
	assert_int_equal(record.kind, kind);
	assert_int_equal(record.parent, parent);
	assert_string_equal(record.name, name ? name : "");
	assert_int_equal(record.child, child);
	assert_int_equal(record.mask, mask);
}

static struct fuse_entry_out lookup(struct harness *h, uint64_t parent, const char *name)
{
	struct fuse_entry_out entry;

	assert_int_equal(harness_call(h, FUSE_LOOKUP, parent, NAME(name), NONE, NONE), 0);
	assert_int_equal(h->payload_size, sizeof(entry));
	memcpy(&entry, h->payload, sizeof(entry));
	return entry;
}

static void host_mkdir(struct harness *h, const char *name)
{
	char path[512];

	harness_path(h, name, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void host_command(struct harness *h, const char *format)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd '%s' && %s", h->directory, format);
	assert_int_equal(system(command), 0);
}

/* What this test program writes counts as the server's own: the host is another process. */
static void test_host_changes(void **state)
{
	struct harness *h = *state;
	uint64_t d, f;

	host_command(h, "mkdir d && echo old >d/f");
	d = lookup(h, FUSE_ROOT_ID, "d").nodeid;
	f = lookup(h, d, "f").nodeid;
	lookup(h, d, "absent");
	expect_quiet(h);

	host_command(h, "echo new >>d/f");
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, f, 0);
	expect_note(h, NOTIFY_EVENT, d, "f", f, IN_MODIFY | IN_CLOSE_WRITE);
	expect_quiet(h);
	host_command(h, "chmod 600 d/f");
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, f, 0);
	expect_note(h, NOTIFY_EVENT, d, "f", f, IN_ATTRIB);
	host_command(h, "mkdir d/absent");
	expect_note(h, NOTIFY_EXPIRE_ENTRY, d, "absent", 0, 0);
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, d, 0);
	expect_note(h, NOTIFY_EVENT, d, "absent", 0, IN_CREATE | IN_ISDIR);
	host_command(h, "rm d/f");
	expect_note(h, NOTIFY_EXPIRE_ENTRY, d, "f", 0, 0);
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, d, 0);
	expect_note(h, NOTIFY_EVENT, d, "f", 0, IN_DELETE);
	expect_quiet(h);
}

static void test_rename_by_host(void **state)
{
	struct harness *h = *state;
	uint64_t a;

	host_command(h, "echo 1 >a; echo 2 >b");
	a = lookup(h, FUSE_ROOT_ID, "a").nodeid;
	host_command(h, "mv a c");
	expect_note(h, NOTIFY_EXPIRE_ENTRY, FUSE_ROOT_ID, "a", 0, 0);
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, FUSE_ROOT_ID, 0);
	expect_note(h, NOTIFY_EVENT, FUSE_ROOT_ID, "a", 0, IN_MOVED_FROM);
	expect_note(h, NOTIFY_EXPIRE_ENTRY, FUSE_ROOT_ID, "c", 0, 0);
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, FUSE_ROOT_ID, 0);
	expect_note(h, NOTIFY_INVAL_INODE, 0, NULL, a, 0);
	expect_note(h, NOTIFY_EVENT, FUSE_ROOT_ID, "c", a, IN_MOVED_TO);
	expect_quiet(h);
}

/* What the guest does itself is no news to it. */
static void test_own_changes_are_quiet(void **state)
{
	struct harness *h = *state;
	uint64_t d, f, fh;
	uint32_t written;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "d", 0755, &d), 0);
	lookup(h, d, "absent");
	assert_int_equal(call_create(h, d, "f", O_RDWR, 0644, &f, &fh), 0);
	assert_int_equal(call_write(h, fh, 0, "text", 4, 0, 0, &written), 0);
	assert_int_equal(call_release(h, FUSE_RELEASE, f, fh), 0);
	assert_int_equal(call_rename(h, d, "f", d, "g", 0), 0);
	assert_int_equal(call_remove(h, FUSE_UNLINK, d, "g"), 0);
	expect_quiet(h);
}

static void test_hidden_names_are_quiet(void **state)
{
	struct harness *h = *state;

	lookup(h, FUSE_ROOT_ID, "absent");
	host_command(h, "echo secret >.env; rm .env");
	expect_quiet(h);
}

static void test_validity(void **state)
{
	struct harness *h = create(FS_CACHE_SHARED, false);
	struct fuse_entry_out entry;
	char from[512], to[512];

	*state = h;
	/* Without a guest that listens, a second. */
	harness_host_write(h, "f", "x");
	host_mkdir(h, "d");
	entry = lookup(h, FUSE_ROOT_ID, "f");
	assert_int_equal(entry.entry_valid, 1);
	assert_int_equal(entry.attr_valid, 1);
	assert_int_equal(lookup(h, FUSE_ROOT_ID, "absent").entry_valid, 1);
	teardown(state);

	*state = h = create(FS_CACHE_SHARED, true);
	harness_host_write(h, "f", "x");
	host_mkdir(h, "d");
	entry = lookup(h, FUSE_ROOT_ID, "f");
	assert_int_equal(entry.entry_valid, 600);
	assert_int_equal(entry.attr_valid, 600);
	assert_int_equal(lookup(h, FUSE_ROOT_ID, "absent").entry_valid, 600);
	/* A directory's own attributes hold from when it is watched itself. */
	entry = lookup(h, FUSE_ROOT_ID, "d");
	assert_int_equal(entry.entry_valid, 600);
	assert_int_equal(entry.attr_valid, 1);
	lookup(h, entry.nodeid, "absent");
	assert_int_equal(lookup(h, FUSE_ROOT_ID, "d").attr_valid, 600);
	/* A file with another name may be changed by that. */
	harness_path(h, "f", from);
	harness_path(h, "g", to);
	assert_int_equal(link(from, to), 0);
	entry = lookup(h, FUSE_ROOT_ID, "g");
	assert_int_equal(entry.entry_valid, 1);
	assert_int_equal(entry.attr_valid, 1);
	/* When the guest has stopped to listen, nothing new holds for longer than a second. */
	shutdown(guest_end, SHUT_RDWR);
	harness_serve_host(h);
	assert_int_equal(lookup(h, FUSE_ROOT_ID, "d").entry_valid, 1);
}

/* A guest makes files and directories without having looked there before. */
static void test_validity_of_new(void **state)
{
	struct harness *h = *state;
	struct fuse_mkdir_in in = {.mode = 0755};
	struct fuse_entry_out entry;

	assert_int_equal(call_create(h, FUSE_ROOT_ID, "f", O_RDWR | O_EXCL, 0644, NULL, NULL), 0);
	memcpy(&entry, h->payload, sizeof(entry));
	assert_int_equal(entry.entry_valid, 600);
	assert_int_equal(entry.attr_valid, 600);
	assert_int_equal(harness_call(h, FUSE_MKDIR, FUSE_ROOT_ID, PIECE(in), NAME("made"), NONE),
			 0);
	memcpy(&entry, h->payload, sizeof(entry));
	assert_int_equal(entry.entry_valid, 600);
	assert_int_equal(entry.attr_valid, 600);
	/* The host's changes are heard of in both. */
	host_command(h, "chmod 0600 f && touch made/new");
	expect_note(h, NOTIFY_INVAL_INODE, 0, "", lookup(h, FUSE_ROOT_ID, "f").nodeid, 0);
	expect_note(h, NOTIFY_EVENT, FUSE_ROOT_ID, "f", lookup(h, FUSE_ROOT_ID, "f").nodeid,
		    IN_ATTRIB);
	expect_note(h, NOTIFY_EXPIRE_ENTRY, entry.nodeid, "new", 0, 0);
}

/* Until when a directory's "." says that what is not listed is not there. */
static uint64_t listing_valid(struct harness *h, uint64_t directory)
{
	struct fuse_open_out open;
	uint64_t valid = UINT64_MAX;

	assert_int_equal(call_open(h, FUSE_OPENDIR, directory, O_RDONLY, &open), 0);
	assert_int_equal(call_read(h, FUSE_READDIRPLUS, open.fh, 0, 4096), 0);
	for (size_t at = 0; at < h->payload_size;) {
		struct fuse_direntplus entry;

		memcpy(&entry, h->payload + at, FUSE_NAME_OFFSET_DIRENTPLUS);
		if (entry.dirent.namelen == 1 &&
		    h->payload[at + FUSE_NAME_OFFSET_DIRENTPLUS] == '.') {
			assert_int_equal(entry.entry_out.nodeid, 0);
			valid = entry.entry_out.entry_valid;
		}
		at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + entry.dirent.namelen);
	}
	assert_int_equal(call_release(h, FUSE_RELEASEDIR, directory, open.fh), 0);
	return valid;
}

static void test_validity_of_listings(void **state)
{
	struct harness *h = create(FS_CACHE_SHARED, true);

	*state = h;
	host_mkdir(h, "empty");
	assert_int_equal(listing_valid(h, lookup(h, FUSE_ROOT_ID, "empty").nodeid), 600);
	teardown(state);
	*state = h = create(FS_CACHE_SHARED, false);
	assert_int_equal(listing_valid(h, FUSE_ROOT_ID), 1);
	teardown(state);
	*state = h = create(FS_CACHE_NONE, false);
	assert_int_equal(listing_valid(h, FUSE_ROOT_ID), 0);
}

static void test_other_modes(void **state)
{
	struct harness *h = create(FS_CACHE_EXCLUSIVE, false);
	struct fuse_init_out out;
	struct fuse_entry_out entry;
	uint64_t fh;

	*state = h;
	assert_int_equal(harness_init_session(h), 0);
	memcpy(&out, h->payload, sizeof(out));
	assert_true(out.flags & FUSE_WRITEBACK_CACHE);
	harness_host_write(h, "f", "x");
	entry = lookup(h, FUSE_ROOT_ID, "f");
	assert_true(entry.entry_valid > 3600 && entry.attr_valid > 3600);
	/* The guest fills in the rest of a page that it writes a part of. */
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "w", O_WRONLY, 0600, NULL, &fh), 0);
	assert_int_equal(call_read(h, FUSE_READ, fh, 0, 16), 0);
	teardown(state);

	*state = h = create(FS_CACHE_NONE, true);
	assert_int_equal(harness_init_session(h), 0);
	memcpy(&out, h->payload, sizeof(out));
	assert_false(out.flags & FUSE_WRITEBACK_CACHE);
	harness_host_write(h, "f", "x");
	entry = lookup(h, FUSE_ROOT_ID, "f");
	assert_int_equal(entry.entry_valid + entry.attr_valid, 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "absent", NULL), -ENOENT);
	{
		struct fuse_open_out open;

		assert_int_equal(call_open(h, FUSE_OPEN, entry.nodeid, O_RDONLY, &open), 0);
		assert_true(open.open_flags & FOPEN_DIRECT_IO);
	}
}

/* An open that comes before the note: size and contents must belong together. */
static void test_open_before_the_note(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out out;
	uint64_t f, fh;
	uint32_t written;

	host_command(h, "echo old >f");
	f = lookup(h, FUSE_ROOT_ID, "f").nodeid;
	assert_int_equal(call_open(h, FUSE_OPEN, f, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags, FOPEN_KEEP_CACHE);
	host_command(h, "echo longer >f");
	assert_int_equal(call_open(h, FUSE_OPEN, f, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags, FOPEN_INVAL_ATTR);
	/* The guest asks again, and believes it. */
	assert_int_equal(lookup(h, FUSE_ROOT_ID, "f").attr.size, 7);
	assert_int_equal(call_open(h, FUSE_OPEN, f, O_RDWR, &out), 0);
	assert_int_equal(out.open_flags, FOPEN_KEEP_CACHE);
	/* Changes of its own it knows. */
	fh = out.fh;
	assert_int_equal(call_write(h, fh, 0, "mine and longer", 15, 0, 0, &written), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, f, O_RDONLY, &out), 0);
	assert_int_equal(out.open_flags, FOPEN_KEEP_CACHE);
}

/* The guest is not kept waiting by a host that never rests: one call takes a part. */
static void test_many_changes(void **state)
{
	struct harness *h = *state;
	unsigned int calls = 1;
	uint64_t d;

	host_command(h, "mkdir d");
	d = lookup(h, FUSE_ROOT_ID, "d").nodeid;
	lookup(h, d, "absent");
	host_command(h, "cd d && i=0; while [ $i -lt 3000 ]; do : >name-$i; i=$((i+1)); done");
	while (fs_server_serve_watch(h->server))
		calls++;
	assert_true(calls > 3);
	assert_false(fs_server_serve_watch(h->server));
}

/* Far more at once than fits: one note that says so, and then notes again. */
static void test_lost_notes(void **state)
{
	struct harness *h = *state;
	struct notify_record record;
	bool lost = false;

	host_command(h, "mkdir d; i=0; while [ $i -lt 6000 ]; do : >d/some-longer-name-$i; "
			"i=$((i+1)); done; touch f");
	for (uint64_t d = lookup(h, FUSE_ROOT_ID, "d").nodeid, i = 0; i < 3; i++)
		lookup(h, d, "absent");
	host_command(h, "cd d && chmod 600 *");
	while (next_note(h, &record))
		lost |= record.kind == NOTIFY_INVAL_ALL;
	assert_true(lost);
	lookup(h, FUSE_ROOT_ID, "f");
	host_command(h, "chmod 600 f");
	assert_true(next_note(h, &record));
	assert_int_equal(record.kind, NOTIFY_INVAL_INODE);
}

static void test_forgotten_directories(void **state)
{
	struct harness *h = *state;
	uint64_t d;

	host_command(h, "mkdir d");
	d = lookup(h, FUSE_ROOT_ID, "d").nodeid;
	lookup(h, d, "absent");
	harness_forget(h, d, 1);
	host_command(h, "touch d/absent");
	expect_quiet(h);
	d = lookup(h, FUSE_ROOT_ID, "d").nodeid;
	lookup(h, d, "other");
	host_command(h, "touch d/other");
	expect_note(h, NOTIFY_EXPIRE_ENTRY, d, "other", 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_host_changes, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(test_rename_by_host, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(test_own_changes_are_quiet, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(test_hidden_names_are_quiet, setup_ready, teardown),
		cmocka_unit_test_teardown(test_validity, teardown),
		cmocka_unit_test_setup_teardown(test_validity_of_new, setup_ready, teardown),
		cmocka_unit_test_teardown(test_validity_of_listings, teardown),
		cmocka_unit_test_teardown(test_other_modes, teardown),
		cmocka_unit_test_setup_teardown(test_open_before_the_note, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(test_many_changes, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(test_lost_notes, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_directories, setup_ready, teardown),
	};

	return cmocka_run_group_tests_name("fs coherence", tests, NULL, NULL);
}
