/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one frame was about that the guest's network card dropped, as mvagent-vmm tells it to the
 * supervisor: enough to say what the guest tried to reach, and of a fixed size.
 */
#ifndef MVAGENT_WIRE_FRAME_H
#define MVAGENT_WIRE_FRAME_H

#include <stdint.h>

/* What can be said of it. Each has room of its own in the record, so that a scan of ports does not
 * take the place of the names that were asked for. */
enum frame_class {
	FRAME_OTHER, /* an ethertype that is none of the below, or a frame cut short */
	FRAME_ARP,   /* destination: the address asked for */
	FRAME_TCP,
	FRAME_UDP,
	FRAME_NAME, /* a question by DNS, mDNS or LLMNR: name */
	FRAME_ICMP, /* ports: 0 and the type; also ICMPv6, and so neighbour discovery */
	FRAME_IP,   /* any other protocol, or a later fragment */
	FRAME_CLASSES,
};

#define FRAME_NAME_BYTES 254 /* RFC 1035, 2.3.4: 255 octets on the wire */

struct frame_summary {
	uint8_t frame_class; /* enum frame_class */
	uint8_t version;     /* of IP: 4, 6 or 0 */
	uint8_t protocol;    /* IP's number; for ARP its operation */
	uint8_t zero;
	uint16_t ethertype; /* behind VLAN tags; below 0x600 it is a length */
	uint16_t source_port;
	uint16_t destination_port;
	uint8_t source[16]; /* IPv4 addresses take the first four bytes */
	uint8_t destination[16];
	char name[FRAME_NAME_BYTES]; /* printable ASCII in small letters, padded with NULs */
};

#endif
