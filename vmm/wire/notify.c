/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/notify.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The fixed part of a record as it travels. */
struct header {
	uint32_t length;
	uint32_t kind;
	uint64_t parent;
	uint64_t child;
	uint32_t mask;
	uint32_t cookie;
	uint32_t name_length;
	uint32_t zero;
};
_Static_assert(sizeof(struct header) == NOTIFY_HEADER_BYTES, "no padding");

static bool name_valid(const struct notify_record *record)
{
	size_t length = record->name_length;

	if (!record->parent)
		return length == 0;
	if (length == 0 || length > NOTIFY_NAME_BYTES || memchr(record->name, '/', length) ||
	    memchr(record->name, '\0', length))
		return false;
	return record->name[0] != '.' || !(length == 1 || (length == 2 && record->name[1] == '.'));
}

static bool event_valid(const struct notify_record *record)
{
	const uint32_t events = NOTIFY_ENTRY_EVENTS | NOTIFY_INODE_EVENTS;

	if (!(record->mask & events) || record->mask & ~(events | NOTIFY_IS_DIRECTORY))
		return false;
	return record->parent || (record->child && !(record->mask & NOTIFY_ENTRY_EVENTS));
}

static bool record_valid(const struct notify_record *record)
{
	if (!name_valid(record))
		return false;
	if (record->kind != NOTIFY_EVENT && (record->mask || record->cookie))
		return false;
	switch (record->kind) {
	case NOTIFY_INVAL_INODE:
		return record->child && !record->parent;
	case NOTIFY_INVAL_ENTRY:
		return record->parent;
	case NOTIFY_EXPIRE_ENTRY:
		return record->parent && !record->child;
	case NOTIFY_EVENT:
		return event_valid(record);
	case NOTIFY_INVAL_ALL:
		return !record->parent && !record->child;
	}
	return false;
}

int notify_encode(const struct notify_record *record, uint8_t bytes[NOTIFY_RECORD_BYTES],
		  size_t *length)
{
	struct header header = {
		.kind = htole32(record->kind),
		.parent = htole64(record->parent),
		.child = htole64(record->child),
		.mask = htole32(record->mask),
		.cookie = htole32(record->cookie),
		.name_length = htole32(record->name_length),
	};

	if (!record_valid(record))
		return -EINVAL;
	*length = sizeof(header) + record->name_length;
	header.length = htole32((uint32_t)*length);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), record->name, record->name_length);
	return 0;
}

int notify_decode(const uint8_t *bytes, size_t length, struct notify_record *record)
{
	struct header header;
	size_t size;

	if (length < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	*record = (struct notify_record){
		.kind = le32toh(header.kind),
		.parent = le64toh(header.parent),
		.child = le64toh(header.child),
		.mask = le32toh(header.mask),
		.cookie = le32toh(header.cookie),
		.name_length = le32toh(header.name_length),
	};
	size = le32toh(header.length);
	if (header.zero || record->name_length > NOTIFY_NAME_BYTES ||
	    size != sizeof(header) + record->name_length)
		return -EPROTO;
	if (length < size)
		return 0;
	memcpy(record->name, bytes + sizeof(header), record->name_length);
	return record_valid(record) ? (int)size : -EPROTO;
}

/* Both halves of READY: one says the version, the other that the bytes mean it. */
static void ready_values(uint32_t values[2])
{
	values[0] = htole32(NOTIFY_VERSION);
	values[1] = htole32(~NOTIFY_VERSION);
}

void notify_encode_ready(uint8_t bytes[NOTIFY_READY_BYTES])
{
	uint32_t values[2];

	ready_values(values);
	memcpy(bytes, values, sizeof(values));
}

int notify_decode_ready(const uint8_t bytes[NOTIFY_READY_BYTES])
{
	uint32_t values[2];

	ready_values(values);
	return memcmp(bytes, values, sizeof(values)) ? -EPROTO : 0;
}
