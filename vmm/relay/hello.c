/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/hello.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"

/* RFC 8446, 5.1 and 4 */
#define RECORD_HEADER_BYTES  5U
#define RECORD_HANDSHAKE     22
#define RECORD_BYTES         16384U
#define MESSAGE_HEADER_BYTES 4U
#define MESSAGE_CLIENT_HELLO 1

/* RFC 8446, 4.2; draft-ietf-tls-esni, 5; RFC 6066, 3 */
enum {
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ENCRYPTED_HELLO = 0xfe0d,
	NAME_TYPE_HOST = 0,
};

/* A part of the message that is left to be read. */
struct part {
	const uint8_t *bytes;
	size_t length;
};

static bool take(struct part *part, size_t length, struct part *taken)
{
	if (length > part->length)
		return false;
	if (taken)
		*taken = (struct part){part->bytes, length};
	part->bytes += length;
	part->length -= length;
	return true;
}

static bool take_number(struct part *part, unsigned int size, size_t *number)
{
	struct part bytes;

	*number = 0;
	if (!take(part, size, &bytes))
		return false;
	for (unsigned int i = 0; i < size; i++)
		*number = *number << 8 | bytes.bytes[i];
	return true;
}

/* A vector (RFC 8446, 3.4): its length in @size bytes, and it. */
static bool take_vector(struct part *part, unsigned int size, struct part *vector)
{
	size_t length;

	return take_number(part, size, &length) && take(part, length, vector);
}

/* A list of names, of which one may be a host's. */
static bool read_server_name(struct part extension, char name[NAME_BYTES])
{
	struct part list, host;
	size_t type;

	if (!take_vector(&extension, 2, &list) || extension.length)
		return false;
	/* More than one name, or another kind of name, nobody sends: RFC 6066, 3. */
	if (!take_number(&list, 1, &type) || type != NAME_TYPE_HOST ||
	    !take_vector(&list, 2, &host) || list.length || !host.length)
		return false;
	name_read((const char *)host.bytes, host.length, name);
	return true;
}

static enum hello read_extensions(struct part extensions, char name[NAME_BYTES])
{
	bool named = false, encrypted = false;
	struct part extension;
	size_t type;

	while (extensions.length) {
		if (!take_number(&extensions, 2, &type) || !take_vector(&extensions, 2, &extension))
			return HELLO_BROKEN;
		if (type == EXTENSION_ENCRYPTED_HELLO)
			encrypted = true;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (named || !read_server_name(extension, name))
			return HELLO_BROKEN;
		named = true;
	}
	if (encrypted)
		return HELLO_ENCRYPTED;
	return named ? HELLO_NAMED : HELLO_UNNAMED;
}

/* RFC 8446, 4.1.2: version, random, session, cipher suites, compression, extensions. */
static enum hello read_message(struct part message, char name[NAME_BYTES])
{
	struct part extensions;

	if (!take(&message, 2 + 32, NULL) || !take_vector(&message, 1, &extensions) ||
	    !take_vector(&message, 2, &extensions) || !take_vector(&message, 1, &extensions))
		return HELLO_BROKEN;
	if (!message.length)
		return HELLO_UNNAMED; /* before TLS 1.3 there need be none */
	if (!take_vector(&message, 2, &extensions) || message.length)
		return HELLO_BROKEN;
	return read_extensions(extensions, name);
}

/* The message out of the records that it is cut into; HELLO_NAMED when it is whole. */
static enum hello join_records(struct part stream, uint8_t *message, size_t *joined)
{
	size_t type, version, length, wanted = MESSAGE_HEADER_BYTES;

	*joined = 0;
	while (*joined < wanted) {
		struct part record;

		if (!stream.length)
			return HELLO_MORE;
		if (stream.bytes[0] != RECORD_HANDSHAKE)
			return *joined ? HELLO_BROKEN : HELLO_NOT_TLS;
		if (stream.length > 1 && stream.bytes[1] != 3)
			return *joined ? HELLO_BROKEN : HELLO_NOT_TLS;
		if (!take_number(&stream, 1, &type) || !take_number(&stream, 2, &version) ||
		    !take_number(&stream, 2, &length))
			return HELLO_MORE;
		if (!length || length > RECORD_BYTES || *joined + length > LIMIT_RELAY_FIRST_BYTES)
			return HELLO_BROKEN;
		if (!take(&stream, length, &record))
			return HELLO_MORE;
		memcpy(message + *joined, record.bytes, length);
		*joined += length;
		if (message[0] != MESSAGE_CLIENT_HELLO)
			return HELLO_BROKEN;
		if (*joined < MESSAGE_HEADER_BYTES)
			continue;
		wanted = MESSAGE_HEADER_BYTES +
			 ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
		if (wanted > LIMIT_RELAY_FIRST_BYTES)
			return HELLO_BROKEN;
	}
	/* Nothing may follow it in its last record: the server has to answer first. */
	return *joined == wanted ? HELLO_NAMED : HELLO_BROKEN;
}

enum hello hello_read(const uint8_t *bytes, size_t length, char name[NAME_BYTES])
{
	uint8_t message[LIMIT_RELAY_FIRST_BYTES];
	size_t joined;
	enum hello result = join_records((struct part){bytes, length}, message, &joined);

	name[0] = '\0';
	if (result != HELLO_NAMED)
		return result;
	return read_message(
		(struct part){message + MESSAGE_HEADER_BYTES, joined - MESSAGE_HEADER_BYTES}, name);
}
