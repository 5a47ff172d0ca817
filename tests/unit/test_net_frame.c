/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of frames that a guest sends to nowhere. */
#include "vmm/virtio/net_frame.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ULL

/* A frame under construction. */
struct built {
	size_t length;
	uint8_t bytes[1600];
};

static void put(struct built *built, const void *bytes, size_t length)
{
	memcpy(built->bytes + built->length, bytes, length);
	built->length += length;
}

static struct built ethernet(uint16_t ethertype)
{
	struct built built = {0};
	uint16_t wire = htons(ethertype);

	put(&built, "\x33\x33\0\0\0\1\2\0\0\0\0\1", 12);
	put(&built, &wire, sizeof(wire));
	return built;
}

static void put_ipv4(struct built *built, uint8_t protocol, const char *to)
{
	uint8_t header[20] = {0x45, [8] = 64, [9] = protocol, [12] = 10, [15] = 1};

	assert_int_equal(inet_pton(AF_INET, to, header + 16), 1);
	put(built, header, sizeof(header));
}

static void put_ipv6(struct built *built, uint8_t protocol, const char *to)
{
	uint8_t header[40] = {0x60, [6] = protocol};

	assert_int_equal(inet_pton(AF_INET6, to, header + 24), 1);
	put(built, header, sizeof(header));
}

static void put_ports(struct built *built, uint16_t from, uint16_t to)
{
	uint16_t ports[4] = {htons(from), htons(to)};

	put(built, ports, sizeof(ports));
}

static void put_question(struct built *built, const char *labels, size_t length)
{
	put(built, "\0\0\1\0\0\1\0\0\0\0\0\0", 12);
	put(built, labels, length);
	put(built, "\0\1\0\1", 4);
}

static struct frame_summary summary_of(const struct built *built)
{
	struct frame_summary summary;

	memset(&summary, 0xee, sizeof(summary));
	net_frame_summarize(&summary, built->bytes, built->length);
	return summary;
}

static void assert_destination(const struct frame_summary *summary, const char *expected)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(summary->version == 4 ? AF_INET : AF_INET6, summary->destination, text,
		  sizeof(text));
	assert_string_equal(text, expected);
}

static void tcp_and_udp(void **state)
{
	struct built built = ethernet(0x0800);
	struct frame_summary summary;

	(void)state;
	put_ipv4(&built, 6, "192.0.2.7");
	put_ports(&built, 40000, 443);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_TCP);
	assert_int_equal(summary.source_port, 40000);
	assert_int_equal(summary.destination_port, 443);
	assert_destination(&summary, "192.0.2.7");

	built = ethernet(0x86dd);
	put_ipv6(&built, 17, "ff02::1:2");
	put_ports(&built, 546, 547);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_UDP);
	assert_int_equal(summary.destination_port, 547);
	assert_destination(&summary, "ff02::1:2");
}

static void questions(void **state)
{
	static const uint16_t ports[] = {53, 5353, 5355};
	struct frame_summary summary;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct built built = ethernet(0x0800);

		put_ipv4(&built, 17, "224.0.0.251");
		put_ports(&built, 5000, ports[i]);
		put_question(&built, "\7Printer\6a.b\x1b c\5local", 21);
		summary = summary_of(&built);
		assert_int_equal(summary.frame_class, FRAME_NAME);
		assert_int_equal(summary.destination_port, ports[i]);
		/* No dot but between labels, nothing that a terminal would obey. */
		assert_string_equal(summary.name, "printer.a?b??c.local");
	}
}

/* A name that is cut, too long, or points elsewhere: as much as there is, and never more. */
static void questions_that_are_none(void **state)
{
	char labels[64 * 5 + 1] = {0};
	struct frame_summary summary;
	struct built built;

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		labels[64 * i] = 63;
		memset(labels + 64 * i + 1, 'a', 63);
	}
	built = ethernet(0x0800);
	put_ipv4(&built, 17, "10.0.0.2");
	put_ports(&built, 5000, 53);
	put_question(&built, labels, sizeof(labels));
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_NAME);
	assert_int_equal(strlen(summary.name), 3 * 64 - 1);

	built = ethernet(0x0800);
	put_ipv4(&built, 17, "10.0.0.2");
	put_ports(&built, 5000, 53);
	put_question(&built, "\xc0\x0c", 2);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_UDP);
	assert_string_equal(summary.name, "");
}

static void neighbours(void **state)
{
	struct built built = ethernet(0x0806);
	struct frame_summary summary;

	(void)state;
	put(&built, "\0\1\x08\0\6\4\0\1\2\0\0\0\0\1\x0a\0\0\2\0\0\0\0\0\0\x0a\0\0\1", 28);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_ARP);
	assert_int_equal(summary.protocol, 1);
	assert_destination(&summary, "10.0.0.1");

	/* A router's advertisement behind a hop-by-hop header. */
	built = ethernet(0x86dd);
	put_ipv6(&built, 0, "ff02::1");
	put(&built, "\x3a\0\5\2\0\0\1\0", 8);
	put(&built, "\x86\0\0\0", 4);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_ICMP);
	assert_int_equal(summary.destination_port, 134);
}

static void what_is_behind_tags_and_fragments(void **state)
{
	struct built built = ethernet(0x88a8);
	struct frame_summary summary;

	(void)state;
	put(&built, "\0\1\x81\0\0\2\x08\0", 8);
	put_ipv4(&built, 6, "10.0.0.9");
	put_ports(&built, 1, 22);
	summary = summary_of(&built);
	assert_int_equal(summary.ethertype, 0x0800);
	assert_int_equal(summary.destination_port, 22);

	/* A later fragment has no ports: what is there may be anything. */
	built = ethernet(0x0800);
	put_ipv4(&built, 6, "10.0.0.9");
	built.bytes[14 + 7] = 1;
	put_ports(&built, 1, 22);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_IP);
	assert_int_equal(summary.destination_port, 0);

	/* So many headers that nobody follows. */
	built = ethernet(0x86dd);
	put_ipv6(&built, 60, "2001:db8::1");
	for (int i = 0; i < 12; i++)
		put(&built, "\x3c\0\0\0\0\0\0\0", 8);
	summary = summary_of(&built);
	assert_int_equal(summary.frame_class, FRAME_IP);
	assert_int_equal(summary.protocol, 60);
}

/* Every cut of a good frame has a summary that says no more than the whole. */
static void cut_short(void **state)
{
	struct built built = ethernet(0x0800);

	(void)state;
	put_ipv4(&built, 17, "10.0.0.2");
	put_ports(&built, 5000, 53);
	put_question(&built, "\3www\7example\3com", 17);
	for (size_t length = 0; length < built.length; length++) {
		uint8_t *exact = malloc(length ? length : 1);
		struct frame_summary summary;

		assert_non_null(exact);
		memcpy(exact, built.bytes, length);
		net_frame_summarize(&summary, exact, length);
		if (length < 14)
			assert_int_equal(summary.ethertype, 0);
		if (length < 14 + 20)
			assert_int_equal(summary.frame_class, FRAME_OTHER);
		free(exact);
	}
}

static struct frame_summary tcp_to(uint16_t port, uint16_t from)
{
	return (struct frame_summary){.frame_class = FRAME_TCP,
				      .version = 4,
				      .protocol = 6,
				      .ethertype = 0x0800,
				      .source_port = from,
				      .destination_port = port};
}

static void only_the_first_of_a_kind(void **state)
{
	struct net_frames_seen *seen = calloc(1, sizeof(*seen));
	struct frame_summary first = tcp_to(443, 1000), again = tcp_to(443, 1001);

	(void)state;
	assert_non_null(seen);
	assert_int_equal(net_frames_add(seen, &first, SECOND), NET_FRAME_NEW);
	assert_int_equal(net_frames_add(seen, &again, SECOND), NET_FRAME_KNOWN);
	again.destination[3] = 1;
	assert_int_equal(net_frames_add(seen, &again, SECOND), NET_FRAME_NEW);
	free(seen);
}

/* A scan of ports fills its own class and leaves room for the others. */
static void bounded(void **state)
{
	struct net_frames_seen *seen = calloc(1, sizeof(*seen));
	struct frame_summary summary, name = {.frame_class = FRAME_NAME, .name = "example.com"};
	unsigned int new = 0, missed = 0;

	(void)state;
	assert_non_null(seen);
	for (uint16_t port = 1; port <= 1000; port++) {
		summary = tcp_to(port, 1);
		/* A second apart, so that the rate is no matter. */
		switch (net_frames_add(seen, &summary, port * SECOND)) {
		case NET_FRAME_NEW:
			new ++;
			break;
		case NET_FRAME_MISSED:
			missed++;
			break;
		case NET_FRAME_KNOWN:
			fail();
		}
	}
	assert_int_equal(new, LIMIT_FRAMES_OF_A_CLASS);
	assert_int_equal(missed, 1000 - LIMIT_FRAMES_OF_A_CLASS);
	assert_int_equal(net_frames_add(seen, &name, 1001 * SECOND), NET_FRAME_NEW);
	free(seen);
}

/* All classes at one moment: no more than a burst, and the rest when time has passed. */
static void not_too_many_at_once(void **state)
{
	struct net_frames_seen *seen = calloc(1, sizeof(*seen));
	unsigned int new = 0;

	(void)state;
	assert_non_null(seen);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < FRAME_CLASSES * LIMIT_FRAMES_OF_A_CLASS; i++) {
			struct frame_summary summary = tcp_to((uint16_t)(i + 1), 1);

			summary.frame_class = (uint8_t)(i % FRAME_CLASSES);
			new += net_frames_add(seen, &summary, (1 + 100 * round) * SECOND) ==
			       NET_FRAME_NEW;
		}
		assert_int_equal(new, 32 * (round + 1));
	}
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_and_udp),
		cmocka_unit_test(questions),
		cmocka_unit_test(questions_that_are_none),
		cmocka_unit_test(neighbours),
		cmocka_unit_test(what_is_behind_tags_and_fragments),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(only_the_first_of_a_kind),
		cmocka_unit_test(bounded),
		cmocka_unit_test(not_too_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
