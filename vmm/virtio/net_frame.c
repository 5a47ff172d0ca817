/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/net_frame.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"

/* Records at once, and one more in each interval: a guest that floods is not worth a message each.
 */
#define BURST       32U
#define INTERVAL_NS (UINT64_C(100) * CLOCK_NS_PER_MS)

#define VLAN_TAGS  2 /* IEEE 802.1ad: an outer and an inner one */
#define EXTENSIONS 8 /* headers between IPv6's and what it carries */

/* RFC 1035, 4.1.1; mDNS and LLMNR are the same (RFC 6762, 18 and RFC 4795, 2.1.1) */
#define NAME_HEADER_BYTES 12U

/* What is left of the frame. */
struct cursor {
	const uint8_t *bytes;
	size_t length;
};

static uint16_t get16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static bool skip(struct cursor *cursor, size_t count)
{
	if (count > cursor->length)
		return false;
	cursor->bytes += count;
	cursor->length -= count;
	return true;
}

static char printable(uint8_t byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	return byte > ' ' && byte < 0x7f && byte != '.' ? (char)byte : '?';
}

/* The name of the first question. A pointer is not followed: a first name has nothing to point to.
 * Returns whether there is one. */
static bool read_question(struct frame_summary *summary, struct cursor cursor)
{
	size_t used = 0;
	uint8_t label;

	if (cursor.length < NAME_HEADER_BYTES || !get16(cursor.bytes + 4))
		return false;
	skip(&cursor, NAME_HEADER_BYTES);
	while (cursor.length && (label = cursor.bytes[0]) != 0) {
		if (label > 63 || label >= cursor.length ||
		    used + label + 1U >= sizeof(summary->name))
			break;
		if (used)
			summary->name[used++] = '.';
		for (unsigned int i = 1; i <= label; i++)
			summary->name[used++] = printable(cursor.bytes[i]);
		skip(&cursor, label + 1U);
	}
	return used > 0;
}

static bool is_name_port(uint16_t port)
{
	return port == 53 || port == 5353 || port == 5355;
}

static void read_ports(struct frame_summary *summary, struct cursor cursor)
{
	summary->frame_class = summary->protocol == IPPROTO_TCP ? FRAME_TCP : FRAME_UDP;
	if (cursor.length < 8)
		return;
	summary->source_port = get16(cursor.bytes);
	summary->destination_port = get16(cursor.bytes + 2);
	if (summary->protocol == IPPROTO_TCP || !is_name_port(summary->destination_port))
		return;
	skip(&cursor, 8);
	if (read_question(summary, cursor))
		summary->frame_class = FRAME_NAME;
}

/* What IP carries, when it is not a later fragment. */
static void read_transport(struct frame_summary *summary, struct cursor cursor)
{
	switch (summary->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		read_ports(summary, cursor);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		summary->frame_class = FRAME_ICMP;
		if (cursor.length)
			summary->destination_port = cursor.bytes[0];
		break;
	default:
		break;
	}
}

/* RFC 791, 3.1 */
static void read_ipv4(struct frame_summary *summary, struct cursor cursor)
{
	size_t header;

	if (cursor.length < 20 || cursor.bytes[0] >> 4 != 4)
		return;
	header = (cursor.bytes[0] & 0xfUL) * 4;
	summary->frame_class = FRAME_IP;
	summary->version = 4;
	summary->protocol = cursor.bytes[9];
	memcpy(summary->source, cursor.bytes + 12, 4);
	memcpy(summary->destination, cursor.bytes + 16, 4);
	if (get16(cursor.bytes + 6) & 0x1fff || header < 20 || !skip(&cursor, header))
		return;
	read_transport(summary, cursor);
}

/* Passes the headers between (RFC 8200, 4), as far as they are known and few. Returns whether what
 * IP carries begins here. */
static bool pass_extensions(struct frame_summary *summary, struct cursor *cursor)
{
	for (int i = 0; i < EXTENSIONS; i++) {
		const uint8_t *bytes = cursor->bytes;
		size_t length;

		switch (summary->protocol) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			length = cursor->length < 2 ? SIZE_MAX : (bytes[1] + 1UL) * 8;
			break;
		case IPPROTO_FRAGMENT:
			length = cursor->length < 8 || get16(bytes + 2) & 0xfff8 ? SIZE_MAX : 8;
			break;
		default:
			return true;
		}
		if (length > cursor->length)
			return false;
		summary->protocol = bytes[0];
		skip(cursor, length);
	}
	return false;
}

/* RFC 8200, 3 */
static void read_ipv6(struct frame_summary *summary, struct cursor cursor)
{
	if (cursor.length < 40 || cursor.bytes[0] >> 4 != 6)
		return;
	summary->frame_class = FRAME_IP;
	summary->version = 6;
	summary->protocol = cursor.bytes[6];
	memcpy(summary->source, cursor.bytes + 8, 16);
	memcpy(summary->destination, cursor.bytes + 24, 16);
	skip(&cursor, 40);
	if (pass_extensions(summary, &cursor))
		read_transport(summary, cursor);
}

/* RFC 826, for IPv4 over Ethernet */
static void read_arp(struct frame_summary *summary, struct cursor cursor)
{
	static const uint8_t start[] = {0, 1, 8, 0, 6, 4};

	summary->frame_class = FRAME_ARP;
	if (cursor.length < 28 || memcmp(cursor.bytes, start, sizeof(start)) != 0)
		return;
	summary->version = 4;
	summary->protocol = cursor.bytes[7];
	memcpy(summary->source, cursor.bytes + 14, 4);
	memcpy(summary->destination, cursor.bytes + 24, 4);
}

void net_frame_summarize(struct frame_summary *summary, const uint8_t *frame, size_t length)
{
	struct cursor cursor = {frame, bytes_minimum(length, NET_FRAME_BYTES)};

	*summary = (struct frame_summary){.frame_class = FRAME_OTHER};
	if (!skip(&cursor, 2UL * ETH_ALEN) || cursor.length < 2)
		return;
	summary->ethertype = get16(cursor.bytes);
	skip(&cursor, 2);
	for (int i = 0; i < VLAN_TAGS && cursor.length >= 4 &&
			(summary->ethertype == ETH_P_8021Q || summary->ethertype == ETH_P_8021AD);
	     i++) {
		summary->ethertype = get16(cursor.bytes + 2);
		skip(&cursor, 4);
	}
	if (summary->ethertype == ETH_P_IP)
		read_ipv4(summary, cursor);
	else if (summary->ethertype == ETH_P_IPV6)
		read_ipv6(summary, cursor);
	else if (summary->ethertype == ETH_P_ARP)
		read_arp(summary, cursor);
}

static bool is_same_kind(const struct frame_summary *one, const struct frame_summary *other)
{
	return one->ethertype == other->ethertype && one->protocol == other->protocol &&
	       one->destination_port == other->destination_port &&
	       memcmp(one->destination, other->destination, sizeof(one->destination)) == 0 &&
	       memcmp(one->name, other->name, sizeof(one->name)) == 0;
}

/* Whether one more may be recorded now. */
static bool is_slow_enough(struct net_frames_seen *seen, uint64_t now_ns)
{
	uint64_t passed = (now_ns - seen->moment_ns) / INTERVAL_NS;

	if (passed) {
		seen->burst -= (unsigned int)bytes_minimum(seen->burst, passed);
		seen->moment_ns = now_ns;
	}
	if (seen->burst == BURST)
		return false;
	seen->burst++;
	return true;
}

enum net_frame_news net_frames_add(struct net_frames_seen *seen,
				   const struct frame_summary *summary, uint64_t now_ns)
{
	struct frame_summary *kinds = seen->kinds[summary->frame_class];
	unsigned int *count = &seen->counts[summary->frame_class];

	for (unsigned int i = 0; i < *count; i++) {
		if (is_same_kind(&kinds[i], summary))
			return NET_FRAME_KNOWN;
	}
	if (*count == LIMIT_FRAMES_OF_A_CLASS || !is_slow_enough(seen, now_ns))
		return NET_FRAME_MISSED;
	kinds[(*count)++] = *summary;
	return NET_FRAME_NEW;
}
