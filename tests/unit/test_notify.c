/* SPDX-License-Identifier: Apache-2.0 */
/* The records about the host's changes: what is encoded comes back byte for byte as documented,
 * what breaks a rule is refused by both ends, and init's feeder keeps to the stream's order. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/notify.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/wire/notify.h"

static struct notify_record named(enum notify_kind kind, const char *name)
{
	struct notify_record record = {.kind = kind, .parent = 1};

	record.name_length = (uint32_t)strlen(name);
	memcpy(record.name, name, record.name_length);
	return record;
}

static struct notify_record event(const char *name, uint32_t mask)
{
	struct notify_record record = named(NOTIFY_EVENT, name);

	record.mask = mask;
	return record;
}

static void assert_returns(const struct notify_record *record)
{
	uint8_t bytes[NOTIFY_RECORD_BYTES];
	struct notify_record decoded;
	size_t length;

	assert_int_equal(notify_encode(record, bytes, &length), 0);
	assert_int_equal(length, NOTIFY_HEADER_BYTES + record->name_length);
	/* Every prefix is an incomplete record, the whole is a record. */
	for (size_t part = 0; part < length; part++)
		assert_int_equal(notify_decode(bytes, part, &decoded), 0);
	assert_int_equal(notify_decode(bytes, length, &decoded), length);
	assert_int_equal(decoded.kind, record->kind);
	assert_int_equal(decoded.parent, record->parent);
	assert_int_equal(decoded.child, record->child);
	assert_int_equal(decoded.mask, record->mask);
	assert_int_equal(decoded.cookie, record->cookie);
	assert_int_equal(decoded.name_length, record->name_length);
	assert_memory_equal(decoded.name, record->name, record->name_length);
	assert_int_equal(decoded.name[record->name_length], 0);
}

static void test_every_kind_returns(void **state)
{
	struct notify_record record = {.kind = NOTIFY_INVAL_INODE, .child = UINT64_MAX};

	(void)state;
	assert_returns(&record);
	record = (struct notify_record){.kind = NOTIFY_INVAL_ALL};
	assert_returns(&record);
	record = named(NOTIFY_INVAL_ENTRY, "gone");
	assert_returns(&record);
	record.child = 77;
	assert_returns(&record);
	record = named(NOTIFY_EXPIRE_ENTRY, "...");
	assert_returns(&record);
	record = event("new\n\xff", IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ISDIR);
	record.child = 5;
	assert_returns(&record);
	record = event("to", IN_MOVED_TO);
	record.cookie = 0x80000001;
	assert_returns(&record);
	record = (struct notify_record){.kind = NOTIFY_EVENT, .child = 5, .mask = IN_MOVE_SELF};
	assert_returns(&record);
}

static void test_longest_name_returns(void **state)
{
	struct notify_record record = named(NOTIFY_EXPIRE_ENTRY, "");

	(void)state;
	record.name_length = NOTIFY_NAME_BYTES;
	memset(record.name, 'n', NOTIFY_NAME_BYTES);
	assert_returns(&record);
}

static void test_bytes_are_as_documented(void **state)
{
	static const uint8_t expected[] = {
		42,   0,    0,    0,                /* length */
		4,    0,    0,    0,                /* EVENT */
		8,    7,    6,    5,    4, 3, 2, 1, /* parent */
		9,    0,    0,    0,    0, 0, 0, 0, /* child */
		0x80, 0,    0,    0x40,             /* IN_MOVED_TO | IN_ISDIR */
		0xef, 0xbe, 0xad, 0xde,             /* cookie */
		2,    0,    0,    0,    0, 0, 0, 0, /* name_length, zero */
		'a',  'b',
	};
	struct notify_record record = event("ab", IN_MOVED_TO | IN_ISDIR);
	uint8_t bytes[NOTIFY_RECORD_BYTES];
	size_t length;

	(void)state;
	record.parent = 0x0102030405060708;
	record.child = 9;
	record.cookie = 0xdeadbeef;
	assert_int_equal(notify_encode(&record, bytes, &length), 0);
	assert_int_equal(length, sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

static void test_masks_are_inotify(void **state)
{
	(void)state;
	assert_int_equal(NOTIFY_ENTRY_EVENTS, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO);
	assert_int_equal(NOTIFY_INODE_EVENTS,
			 IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVE_SELF);
	assert_int_equal(NOTIFY_IS_DIRECTORY, IN_ISDIR);
}

/* Both ends must refuse it: the encoder as it is, the decoder from bytes put together by hand. */
static void assert_refused(const struct notify_record *record)
{
	uint8_t bytes[NOTIFY_RECORD_BYTES] = {0};
	const uint32_t length = NOTIFY_HEADER_BYTES + record->name_length;
	struct notify_record decoded;
	size_t unused;

	assert_int_equal(notify_encode(record, bytes, &unused), -EINVAL);
	memcpy(bytes, &length, 4);
	memcpy(bytes + 4, &record->kind, 4);
	memcpy(bytes + 8, &record->parent, 8);
	memcpy(bytes + 16, &record->child, 8);
	memcpy(bytes + 24, &record->mask, 4);
	memcpy(bytes + 28, &record->cookie, 4);
	memcpy(bytes + 32, &record->name_length, 4);
	memcpy(bytes + NOTIFY_HEADER_BYTES, record->name, record->name_length);
	assert_int_equal(notify_decode(bytes, length, &decoded), -EPROTO);
}

static void test_bad_names_are_refused(void **state)
{
	static const char *const names[] = {"", ".", "..", "a/b", "/", "a/"};
	struct notify_record record;

	(void)state;
	for (size_t index = 0; index < ARRAY_SIZE(names); index++) {
		record = named(NOTIFY_INVAL_ENTRY, names[index]);
		assert_refused(&record);
	}
	record = named(NOTIFY_EXPIRE_ENTRY, "abc");
	record.name[1] = '\0';
	assert_refused(&record);
	record = named(NOTIFY_EXPIRE_ENTRY, "without-parent");
	record.parent = 0;
	assert_refused(&record);
}

static void test_bad_fields_are_refused(void **state)
{
	const struct notify_record records[] = {
		{.kind = 0},
		{.kind = NOTIFY_INVAL_ALL + 1},
		{.kind = (enum notify_kind)UINT32_MAX},
		{.kind = NOTIFY_INVAL_ALL, .child = 1},
		{.kind = NOTIFY_INVAL_ALL, .cookie = 1},
		{.kind = NOTIFY_INVAL_INODE},
		{.kind = NOTIFY_INVAL_INODE, .child = 1, .mask = IN_MODIFY},
		{.kind = NOTIFY_EXPIRE_ENTRY},
		{.kind = NOTIFY_EXPIRE_ENTRY,
		 .parent = 1,
		 .child = 2,
		 .name = "a",
		 .name_length = 1},
		{.kind = NOTIFY_INVAL_INODE,
		 .parent = 1,
		 .child = 2,
		 .name = "a",
		 .name_length = 1},
		{.kind = NOTIFY_EVENT, .child = 1},
		{.kind = NOTIFY_EVENT, .child = 1, .mask = IN_ISDIR},
		{.kind = NOTIFY_EVENT, .child = 1, .mask = IN_CREATE},
		{.kind = NOTIFY_EVENT, .child = 1, .mask = IN_DELETE_SELF},
		{.kind = NOTIFY_EVENT, .child = 1, .mask = IN_MODIFY | IN_Q_OVERFLOW},
		{.kind = NOTIFY_EVENT, .mask = IN_MODIFY},
	};

	(void)state;
	for (size_t index = 0; index < ARRAY_SIZE(records); index++)
		assert_refused(&records[index]);
}

static void test_bad_lengths_are_refused(void **state)
{
	struct notify_record record = named(NOTIFY_EXPIRE_ENTRY, "name");
	uint8_t bytes[NOTIFY_RECORD_BYTES + 64] = {0};
	size_t length;

	(void)state;
	assert_int_equal(notify_encode(&record, bytes, &length), 0);
	bytes[0]++;
	assert_int_equal(notify_decode(bytes, sizeof(bytes), &record), -EPROTO);
	bytes[0] = NOTIFY_HEADER_BYTES;
	assert_int_equal(notify_decode(bytes, sizeof(bytes), &record), -EPROTO);
	bytes[0] = NOTIFY_HEADER_BYTES + 4;
	bytes[36] = 1;
	assert_int_equal(notify_decode(bytes, sizeof(bytes), &record), -EPROTO);
	bytes[36] = 0;
	assert_int_equal(notify_decode(bytes, sizeof(bytes), &record), (int)length);
	/* A name past the bound is refused before it has come. */
	bytes[0] = (NOTIFY_HEADER_BYTES + 256) % 256;
	bytes[1] = (NOTIFY_HEADER_BYTES + 256) / 256;
	bytes[32] = 0;
	bytes[33] = 1;
	assert_int_equal(notify_decode(bytes, NOTIFY_HEADER_BYTES, &record), -EPROTO);
}

static void test_ready(void **state)
{
	static const uint8_t expected[] = {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff};
	uint8_t bytes[NOTIFY_READY_BYTES];

	(void)state;
	notify_encode_ready(bytes);
	assert_memory_equal(bytes, expected, sizeof(expected));
	assert_int_equal(notify_decode_ready(bytes), 0);
	for (size_t index = 0; index < sizeof(bytes); index++) {
		bytes[index] ^= 0x10;
		assert_int_equal(notify_decode_ready(bytes), -EPROTO);
		bytes[index] ^= 0x10;
	}
}

/* Runs a feeder on what is written here; the kernel's part of it is not there and not asked. */
static int feed(const uint8_t *bytes, size_t length)
{
	uint8_t ready[NOTIFY_READY_BYTES], more;
	int pair[2], share = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;

	assert_true(share >= 0);
	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	assert_int_equal(fd_write_full(pair[0], bytes, length), 0);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	result = notify_feed(pair[1], share);
	fd_close(&pair[1]);
	assert_int_equal(fd_read_full(pair[0], ready, sizeof(ready)), 0);
	assert_int_equal(notify_decode_ready(ready), 0);
	assert_int_equal(read(pair[0], &more, 1), 0);
	fd_close(&pair[0]);
	fd_close(&share);
	return result;
}

static void test_feeder_ends_with_the_stream(void **state)
{
	/* Past the feeder's buffer, so that a record lies across its end. */
	static uint8_t bytes[400 * NOTIFY_RECORD_BYTES];
	struct notify_record record = named(NOTIFY_EXPIRE_ENTRY, "a name of some length");
	size_t filled = 0, length;

	(void)state;
	assert_int_equal(feed(bytes, 0), 0);
	for (int count = 0; count < 400; count++) {
		assert_int_equal(notify_encode(&record, bytes + filled, &length), 0);
		filled += length;
	}
	assert_true(filled > 16384);
	assert_int_equal(feed(bytes, filled), 0);
	bytes[filled - length] = 0xff;
	assert_int_equal(feed(bytes, filled), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_returns),
		cmocka_unit_test(test_longest_name_returns),
		cmocka_unit_test(test_bytes_are_as_documented),
		cmocka_unit_test(test_masks_are_inotify),
		cmocka_unit_test(test_bad_names_are_refused),
		cmocka_unit_test(test_bad_fields_are_refused),
		cmocka_unit_test(test_bad_lengths_are_refused),
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_feeder_ends_with_the_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
