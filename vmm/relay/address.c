/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/bytes.h"

/* A part of the address space that is not the public internet. */
struct range {
	uint8_t bytes[16];
	unsigned int bits;
	const char *objection;
};

/* The registries of special addresses: RFC 6890 and its updates. The first that fits counts. */
static const struct range ranges4[] = {
	{{169, 254, 169, 254}, 32, "a cloud's metadata service"},
	{{168, 63, 129, 16}, 32, "a cloud's metadata service"}, /* Azure; a public number */
	{{100, 100, 100, 200}, 32, "a cloud's metadata service"},
	{{192, 0, 0, 192}, 32, "a cloud's metadata service"},
	{{0}, 8, "this host"},
	{{10}, 8, "private"},
	{{100, 64}, 10, "shared by a provider's customers"},
	{{127}, 8, "loopback"},
	{{169, 254}, 16, "link-local"},
	{{172, 16}, 12, "private"},
	{{192, 0, 0}, 24, "reserved"},
	{{192, 0, 2}, 24, "reserved for documentation"},
	{{192, 88, 99}, 24, "reserved"},
	{{192, 168}, 16, "private"},
	{{198, 18}, 15, "reserved for benchmarks"},
	{{198, 51, 100}, 24, "reserved for documentation"},
	{{203, 0, 113}, 24, "reserved for documentation"},
	{{224}, 4, "multicast"},
	{{240}, 4, "reserved"},
};

static const struct range ranges6[] = {
	{{0xfd, 0x00, 0x0e, 0xc2, [15] = 0x54, [14] = 0x02}, 128, "a cloud's metadata service"},
	{{[15] = 1}, 128, "loopback"},
	{{0}, 96, "reserved"}, /* unspecified, and IPv4-compatible addresses */
	{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "private"}, /* RFC 8215: NAT64 of a site's own */
	{{0x01}, 64, "reserved"},                              /* RFC 6666 */
	{{0x20, 0x01}, 23, "reserved"},                        /* RFC 2928, Teredo too */
	{{0x20, 0x01, 0x0d, 0xb8}, 32, "reserved for documentation"},
	{{0x3f, 0xff}, 20, "reserved for documentation"},
	{{0x5f}, 16, "reserved"}, /* RFC 9602 */
	{{0xfc}, 7, "private"},
	{{0xfe, 0x80}, 10, "link-local"},
	{{0xfe, 0xc0}, 10, "private"},
	{{0xff}, 8, "multicast"},
};

/* Addresses with an IPv4 address in them, which decides. */
struct wrapping {
	uint8_t bytes[12];
	unsigned int bits;
	unsigned int offset; /* of the IPv4 address */
};

static const struct wrapping wrappings[] = {
	{{0x00, 0x64, 0xff, 0x9b}, 96, 12},   /* RFC 6052: NAT64 */
	{{[10] = 0xff, [11] = 0xff}, 96, 12}, /* RFC 4291, 2.5.5.2 */
	{{[8] = 0xff, [9] = 0xff}, 96, 12},   /* RFC 2765 */
	{{0x20, 0x02}, 16, 2},                /* RFC 3056: 6to4 */
};

static bool begins_with(const uint8_t *bytes, const uint8_t *prefix, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;

	if (memcmp(bytes, prefix, whole) != 0)
		return false;
	return !rest || !((bytes[whole] ^ prefix[whole]) >> (8 - rest));
}

static const char *find_range(const struct range *ranges, size_t count, const uint8_t *bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (begins_with(bytes, ranges[i].bytes, ranges[i].bits))
			return ranges[i].objection;
	}
	return NULL;
}

const char *address_objection(const struct address *address)
{
	if (address->family == AF_INET)
		return find_range(ranges4, ARRAY_SIZE(ranges4), address->bytes);
	for (size_t i = 0; i < ARRAY_SIZE(wrappings); i++) {
		if (begins_with(address->bytes, wrappings[i].bytes, wrappings[i].bits))
			return find_range(ranges4, ARRAY_SIZE(ranges4),
					  address->bytes + wrappings[i].offset);
	}
	return find_range(ranges6, ARRAY_SIZE(ranges6), address->bytes);
}

bool address_is_private(const struct address *address)
{
	static const char *const own[] = {
		"private",
		"shared by a provider's customers",
		"reserved for documentation",
		"reserved for benchmarks",
	};
	const char *objection = address_objection(address);

	for (size_t i = 0; objection && i < ARRAY_SIZE(own); i++) {
		if (strcmp(objection, own[i]) == 0)
			return true;
	}
	return false;
}

static void address_set(struct address *address, int family, const void *bytes)
{
	const uint8_t *mapped = bytes;

	*address = (struct address){.family = family};
	if (family == AF_INET6 && begins_with(mapped, wrappings[1].bytes, wrappings[1].bits)) {
		address->family = AF_INET;
		memcpy(address->bytes, mapped + 12, 4);
	} else {
		memcpy(address->bytes, bytes, family == AF_INET ? 4 : 16);
	}
}

int address_read(const char *text, size_t length, struct address *address)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	if (length >= sizeof(copy) || memchr(text, '\0', length))
		return -EINVAL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (inet_pton(AF_INET, copy, bytes) == 1)
		address_set(address, AF_INET, bytes);
	else if (inet_pton(AF_INET6, copy, bytes) == 1)
		address_set(address, AF_INET6, bytes);
	else
		return -EINVAL;
	return 0;
}

int address_of_socket(const struct sockaddr *from, struct address *address)
{
	if (from->sa_family == AF_INET)
		address_set(address, AF_INET, &((const struct sockaddr_in *)from)->sin_addr);
	else if (from->sa_family == AF_INET6)
		address_set(address, AF_INET6, &((const struct sockaddr_in6 *)from)->sin6_addr);
	else
		return -EAFNOSUPPORT;
	return 0;
}

socklen_t address_to_socket(const struct address *address, uint16_t port,
			    struct sockaddr_storage *to)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = (sa_family_t)address->family;
	if (address->family == AF_INET) {
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, address->bytes, sizeof(four->sin_addr));
		return sizeof(*four);
	}
	six->sin6_port = htons(port);
	memcpy(&six->sin6_addr, address->bytes, sizeof(six->sin6_addr));
	return sizeof(*six);
}

void address_write(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	char bare[INET6_ADDRSTRLEN];

	inet_ntop(address->family, address->bytes, bare, sizeof(bare));
	snprintf(text, ADDRESS_TEXT_BYTES, address->family == AF_INET ? "%s" : "[%s]", bare);
}

bool address_equals(const struct address *one, const struct address *other)
{
	return one->family == other->family &&
	       memcmp(one->bytes, other->bytes, sizeof(one->bytes)) == 0;
}
