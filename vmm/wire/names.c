/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/names.h"

#include <errno.h>
#include <string.h>

size_t names_encode_greeting(const struct names_greeting *greeting,
			     uint8_t bytes[NAMES_GREETING_BYTES])
{
	uint8_t *next = bytes + NAMES_GREETING_HEADER;

	bytes[0] = greeting->offers;
	bytes[1] = (uint8_t)((greeting->proxy ? NAMES_PROXY : 0) |
			     (greeting->ssh_agent ? NAMES_SSH_AGENT : 0));
	bytes[2] = greeting->address_count;
	for (unsigned int i = 0; i < greeting->address_count; i++) {
		const struct names_address *address = &greeting->addresses[i];

		*next++ = address->version;
		next = (uint8_t *)mempcpy(next, address->bytes, sizeof(address->bytes));
		*next++ = (uint8_t)address->port;
		*next++ = (uint8_t)(address->port >> 8);
	}
	return (size_t)(next - bytes);
}

int names_decode_greeting(const uint8_t *bytes, size_t length, struct names_greeting *greeting)
{
	const uint8_t *next = bytes + NAMES_GREETING_HEADER;

	if (length < NAMES_GREETING_HEADER)
		return 0;
	*greeting = (struct names_greeting){.offers = bytes[0],
					    .proxy = bytes[1] & NAMES_PROXY,
					    .ssh_agent = bytes[1] & NAMES_SSH_AGENT,
					    .address_count = bytes[2]};
	if (bytes[1] & ~(NAMES_PROXY | NAMES_SSH_AGENT) ||
	    greeting->address_count > LIMIT_ROUTE_ADDRESSES)
		return -EPROTO;
	if (length - NAMES_GREETING_HEADER < greeting->address_count * (size_t)NAMES_ADDRESS_BYTES)
		return 0;
	for (unsigned int i = 0; i < greeting->address_count; i++) {
		struct names_address *address = &greeting->addresses[i];

		address->version = next[0];
		memcpy(address->bytes, next + 1, sizeof(address->bytes));
		address->port = (uint16_t)(next[17] | next[18] << 8);
		if ((address->version != 4 && address->version != 6) || !address->port)
			return -EPROTO;
		next += NAMES_ADDRESS_BYTES;
	}
	return (int)(next - bytes);
}

size_t names_encode_answer(const struct names_answer *answer, uint8_t bytes[NAMES_ANSWER_BYTES])
{
	bytes[0] = answer->port_count;
	for (unsigned int i = 0; i < answer->port_count; i++) {
		bytes[1 + 2 * i] = (uint8_t)answer->ports[i];
		bytes[2 + 2 * i] = (uint8_t)(answer->ports[i] >> 8);
	}
	return 1 + 2 * (size_t)answer->port_count;
}

int names_decode_answer(const uint8_t *bytes, size_t length, struct names_answer *answer)
{
	if (!length)
		return 0;
	*answer = (struct names_answer){.port_count = bytes[0]};
	if (answer->port_count > LIMIT_ROUTE_PORTS)
		return -EPROTO;
	if (length < 1 + 2 * (size_t)answer->port_count)
		return 0;
	for (unsigned int i = 0; i < answer->port_count; i++)
		answer->ports[i] = (uint16_t)(bytes[1 + 2 * i] | bytes[2 + 2 * i] << 8);
	return 1 + 2 * (int)answer->port_count;
}
