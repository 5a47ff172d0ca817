/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses, and which of them lie on the public internet. */
#ifndef MVAGENT_RELAY_ADDRESS_H
#define MVAGENT_RELAY_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
	int family;        /* AF_INET or AF_INET6 */
	uint8_t bytes[16]; /* the first four are IPv4's; the rest is 0 */
};

#define ADDRESS_TEXT_BYTES 48

/* Reads dotted quads, or IPv6 with or without brackets. An IPv4 address in IPv6's clothes
 * (::ffff:a.b.c.d) becomes what it is. 0 or -EINVAL. */
int address_read(const char *text, size_t length, struct address *address);

/* Takes the address out of a struct sockaddr_in or sockaddr_in6, as above. 0 or -EAFNOSUPPORT. */
int address_of_socket(const struct sockaddr *from, struct address *address);

/* Fills in @to and returns its length. */
socklen_t address_to_socket(const struct address *address, uint16_t port,
			    struct sockaddr_storage *to);

/* As text: a.b.c.d, or [IPv6] with brackets. */
void address_write(const struct address *address, char text[ADDRESS_TEXT_BYTES]);

bool address_equals(const struct address *one, const struct address *other);

/* What is against connecting there for a name that is allowed, "loopback" or "private" for
 * instance; NULL for an address of the public internet. */
const char *address_objection(const struct address *address);

/* Whether it may be a host of somebody's own network: private addresses (RFC 1918, RFC 4193), and
 * ranges that networks use as if they were (100.64.0.0/10, those for documentation and benchmarks).
 * Nothing that is this host, link-local or a metadata service. */
bool address_is_private(const struct address *address);

#endif
