/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and the rules about them. */
#include "vmm/relay/policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/log.h"

static void assert_name(const char *given, const char *expected)
{
	char name[NAME_BYTES];

	assert_int_equal(name_read(given, strlen(given), name), 0);
	assert_string_equal(name, expected);
}

static void assert_no_name(const char *given, size_t length)
{
	char name[NAME_BYTES] = "before";

	assert_int_not_equal(name_read(given, length, name), 0);
	assert_string_equal(name, "");
}

static void names(void **state)
{
	static const char *const none[] = {
		"",
		".",
		"..",
		"a..b",
		".a",
		"a b",
		"a/b",
		"a:b",
		"*.a",
		"b\xc3\xbc.de",
		"a%b",
		"1.2.3.4",
		"127.1",
		"a.1",
		"0x7f.1",
		"0x7f",
		"a.0x7f",
		"1",
		"a\n.com",
		"evil\\0.b",
		"[::1]",
		"::1",
		"a.example.123.",
	};
	char longest[300], label[70];

	(void)state;
	assert_name("Example.COM", "example.com");
	assert_name("example.com.", "example.com");
	assert_name("xn--bcher-kva.example", "xn--bcher-kva.example");
	assert_name("_dmarc.a-b.c1", "_dmarc.a-b.c1");
	assert_name("0x7g", "0x7g");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_no_name(none[i], strlen(none[i]));
	/* What ends where a C string would must not pass as what it is up to there. */
	assert_no_name("evil.org\0.example.com", 21);
	assert_no_name("example.com\0", 12);

	memset(longest, 'a', sizeof(longest));
	for (size_t i = 1; i < sizeof(longest); i += 2)
		longest[i] = '.';
	longest[253] = '\0'; /* 253 characters: 255 bytes in a question */
	assert_name(longest, longest);
	longest[253] = '.';
	longest[254] = '\0';
	assert_int_equal(name_read(longest, 254, (char[NAME_BYTES]){0}), 0);
	longest[254] = 'a';
	assert_no_name(longest, 255);
	memset(label, 'a', sizeof(label));
	label[63] = '\0';
	assert_name(label, label);
	assert_no_name(label, 64);
}

static const char *objection_to(const char *text)
{
	struct address address;

	assert_int_equal(address_read(text, strlen(text), &address), 0);
	return address_objection(&address);
}

static void addresses(void **state)
{
	static const char *const refused[] = {
		"127.0.0.1",
		"127.255.0.1",
		"0.0.0.0",
		"10.1.2.3",
		"172.16.0.1",
		"172.31.255.255",
		"192.168.1.1",
		"169.254.1.1",
		"169.254.169.254",
		"168.63.129.16",
		"100.64.0.1",
		"100.127.255.255",
		"100.100.100.200",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"192.0.2.1",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.1",
		"203.0.113.1",
		"::",
		"::1",
		"::7f00:1",
		"fe80::1",
		"febf::1",
		"fec0::1",
		"fc00::1",
		"fdff::1",
		"fd00:ec2::254",
		"ff02::1",
		"2001:db8::1",
		"2001::1",
		"100::1",
		/* IPv4 in other clothes */
		"::ffff:127.0.0.1",
		"::ffff:10.0.0.1",
		"::ffff:a9fe:a9fe",
		"64:ff9b::127.0.0.1",
		"64:ff9b::a9fe:a9fe",
		"64:ff9b:1::8.8.8.8",
		"2002:7f00:1::",
		"2002:c0a8:101::1",
		"::ffff:0:127.0.0.1",
	};
	static const char *const public[] = {
		"8.8.8.8",          "1.1.1.1",         "172.15.255.255", "172.32.0.0",
		"100.63.255.255",   "100.128.0.0",     "11.0.0.0",       "126.255.255.255",
		"128.0.0.1",        "223.255.255.255", "2606:4700::1",   "2a00::1",
		"64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:8.8.8.8",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (!objection_to(refused[i]))
			fail_msg("%s passes as public", refused[i]);
	}
	for (size_t i = 0; i < sizeof(public) / sizeof(public[0]); i++) {
		if (objection_to(public[i]))
			fail_msg("%s is refused: %s", public[i], objection_to(public[i]));
	}
	assert_string_equal(objection_to("::ffff:a9fe:a9fe"), "a cloud's metadata service");
}

static void address_texts(void **state)
{
	static const char *const none[] = {"",         "1.2.3",     "1.2.3.4.5", "1.2.3.256",
					   "01.2.3.4", "[::1",      "::1]",      "fe80::1%eth0",
					   "1.2.3.4 ", "0x7f.0.0.1"};
	char text[ADDRESS_TEXT_BYTES];
	struct address address;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_not_equal(address_read(none[i], strlen(none[i]), &address), 0);
	assert_int_equal(address_read("[2001:DB8::1]", 13, &address), 0);
	address_write(&address, text);
	assert_string_equal(text, "[2001:db8::1]");
	assert_int_equal(address_read("::ffff:10.0.0.1", 15, &address), 0);
	address_write(&address, text);
	assert_string_equal(text, "10.0.0.1");
}

struct fixture {
	struct route_policy policy;
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	route_policy_free(&f->policy);
	free(f);
	return 0;
}

static void allow(struct fixture *f, const char *text)
{
	char origin[300];

	snprintf(origin, sizeof(origin), "--allow %s", text);
	assert_int_equal(route_policy_add(&f->policy, false, text, origin), 0);
}

static void deny(struct fixture *f, const char *text)
{
	char origin[300];

	snprintf(origin, sizeof(origin), "--deny %s", text);
	assert_int_equal(route_policy_add(&f->policy, true, text, origin), 0);
}

static void assert_verdict(struct fixture *f, const char *host, uint16_t port,
			   enum route_verdict expected, const char *sentence)
{
	struct route_decision decision = route_policy_decide(&f->policy, host, strlen(host), port);
	char text[ROUTE_SENTENCE_BYTES];

	route_explain(&decision, host, port, text);
	assert_string_equal(text, sentence);
	assert_int_equal(decision.verdict, expected);
}

static void nothing_is_allowed_by_default(void **state)
{
	struct fixture *f = *state;

	assert_verdict(f, "example.com", 443, ROUTE_NO_RULE,
		       "example.com:443 is not allowed; --allow example.com would allow it");
	assert_verdict(f, "example.com", 22, ROUTE_NO_RULE,
		       "example.com:22 is not allowed; --allow example.com:22 would allow it");
	assert_verdict(f, "1.2.3.4", 0, ROUTE_NO_RULE,
		       "1.2.3.4 is not allowed; --allow 1.2.3.4 would allow it");
	assert_verdict(f, "a b", 443, ROUTE_NO_NAME,
		       "a b:443 is not allowed: it is no host's name");
}

static void hosts_and_ports(void **state)
{
	struct fixture *f = *state;

	allow(f, "Example.com.");
	allow(f, "git.example.com:22");
	assert_verdict(f, "EXAMPLE.com", 443, ROUTE_ALLOWED,
		       "EXAMPLE.com:443 is allowed by --allow Example.com.");
	assert_verdict(f, "example.com.", 80, ROUTE_ALLOWED,
		       "example.com.:80 is allowed by --allow Example.com.");
	assert_verdict(f, "example.com", 8443, ROUTE_OTHER_PORT,
		       "example.com:8443 is not allowed, for --allow Example.com. is about other "
		       "ports; --allow example.com:8443 would allow it");
	assert_verdict(f, "git.example.com", 22, ROUTE_ALLOWED,
		       "git.example.com:22 is allowed by --allow git.example.com:22");
	assert_verdict(f, "git.example.com", 0, ROUTE_ALLOWED,
		       "git.example.com is allowed by --allow git.example.com:22");
	assert_int_equal(route_policy_decide(&f->policy, "git.example.com", 15, 443).verdict,
			 ROUTE_OTHER_PORT);
	assert_int_equal(route_policy_decide(&f->policy, "www.example.com", 15, 443).verdict,
			 ROUTE_NO_RULE);
	assert_int_equal(route_policy_decide(&f->policy, "example.com.org", 15, 443).verdict,
			 ROUTE_NO_RULE);
	assert_int_equal(route_policy_decide(&f->policy, "example.com\0.org", 16, 443).verdict,
			 ROUTE_NO_NAME);
}

static void all_below(void **state)
{
	struct fixture *f = *state;

	allow(f, "*.example.com");
	deny(f, "secret.example.com");
	deny(f, "*.inner.example.com:80");
	assert_verdict(f, "a.example.com", 443, ROUTE_ALLOWED,
		       "a.example.com:443 is allowed by --allow *.example.com");
	assert_int_equal(route_policy_decide(&f->policy, "a.b.example.com", 15, 443).verdict,
			 ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->policy, "example.com", 11, 443).verdict,
			 ROUTE_NO_RULE);
	assert_int_equal(route_policy_decide(&f->policy, "badexample.com", 14, 443).verdict,
			 ROUTE_NO_RULE);
	assert_verdict(f, "secret.example.com", 443, ROUTE_DENIED,
		       "secret.example.com:443 is denied by --deny secret.example.com");
	assert_verdict(f, "secret.example.com", 0, ROUTE_DENIED,
		       "secret.example.com is denied by --deny secret.example.com");
	assert_int_equal(route_policy_decide(&f->policy, "x.inner.example.com", 19, 443).verdict,
			 ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->policy, "x.inner.example.com", 19, 80).verdict,
			 ROUTE_DENIED);
}

static void ports_of_a_host(void **state)
{
	struct fixture *f = *state;
	uint16_t ports[LIMIT_ROUTE_PORTS];
	char text[64];

	allow(f, "example.com:8443");
	allow(f, "*.example.com");
	allow(f, "a.example.com:22");
	allow(f, "a.example.com:443");
	deny(f, "a.example.com:80");
	assert_int_equal(route_policy_ports(&f->policy, "a.example.com", 13, ports), 2);
	assert_int_equal(ports[0], 443);
	assert_int_equal(ports[1], 22);
	assert_int_equal(route_policy_ports(&f->policy, "example.com", 11, ports), 1);
	assert_int_equal(route_policy_ports(&f->policy, "other.org", 9, ports), 0);
	for (unsigned int port = 1; port <= 2 * LIMIT_ROUTE_PORTS; port++) {
		snprintf(text, sizeof(text), "many.org:%u", port);
		allow(f, text);
	}
	assert_int_equal(route_policy_ports(&f->policy, "many.org", 8, ports), LIMIT_ROUTE_PORTS);
}

static void addresses_by_rule(void **state)
{
	struct fixture *f = *state;
	struct address address;

	allow(f, "10.0.0.5:5432");
	allow(f, "[fd00::1]:8080");
	allow(f, "fd00::2");
	deny(f, "8.8.8.8");
	assert_int_equal(route_policy_decide(&f->policy, "10.0.0.5", 8, 5432).verdict,
			 ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->policy, "::ffff:10.0.0.5", 15, 5432).verdict,
			 ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->policy, "10.0.0.5", 8, 80).verdict,
			 ROUTE_OTHER_PORT);
	assert_int_equal(route_policy_decide(&f->policy, "[fd00::1]", 9, 8080).verdict,
			 ROUTE_ALLOWED);
	assert_int_equal(route_policy_decide(&f->policy, "fd00:0::2", 9, 443).verdict,
			 ROUTE_ALLOWED);
	/* What an allowed name may resolve to. */
	assert_int_equal(address_read("10.0.0.5", 8, &address), 0);
	assert_null(route_policy_objection(&f->policy, "example.com", &address, 5432));
	assert_string_equal(route_policy_objection(&f->policy, "example.com", &address, 5433),
			    "private");
	assert_int_equal(address_read("8.8.8.8", 7, &address), 0);
	assert_non_null(route_policy_objection(&f->policy, "example.com", &address, 443));
	assert_int_equal(address_read("8.8.4.4", 7, &address), 0);
	assert_null(route_policy_objection(&f->policy, "example.com", &address, 443));
}

/* For its own name and port alone, and no worse than private. */
static void private_addresses(void **state)
{
	static const char *const bad[] = {"127.0.0.1", "::1",     "169.254.169.254",
					  "fe80::1",   "8.8.8.8", "100.100.100.200",
					  "0.0.0.0"};
	static const char *const used[] = {"100.64.0.1", "198.18.0.7", "203.0.113.80", "fd00::1"};
	struct fixture *f = *state;
	struct address address;

	allow(f, "mirror.example.com");
	assert_int_equal(address_read("10.1.2.3", 8, &address), 0);
	assert_int_equal(route_policy_add_private(&f->policy, "mirror.example.com", 443, &address),
			 0);
	assert_null(route_policy_objection(&f->policy, "mirror.example.com", &address, 443));
	assert_string_equal(route_policy_objection(&f->policy, "mirror.example.com", &address, 80),
			    "private");
	assert_string_equal(route_policy_objection(&f->policy, "example.com", &address, 443),
			    "private");
	/* It is not allowed as such, and what is denied stays so. */
	assert_int_equal(route_policy_decide(&f->policy, "10.1.2.3", 8, 443).verdict,
			 ROUTE_NO_RULE);
	address.bytes[3] = 4;
	assert_string_equal(route_policy_objection(&f->policy, "mirror.example.com", &address, 443),
			    "private");
	address.bytes[3] = 3;
	deny(f, "10.1.2.3");
	assert_string_equal(route_policy_objection(&f->policy, "mirror.example.com", &address, 443),
			    "denied by a rule");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(address_read(bad[i], strlen(bad[i]), &address), 0);
		assert_int_equal(
			route_policy_add_private(&f->policy, "mirror.example.com", 443, &address),
			-EINVAL);
	}
	assert_int_equal(f->policy.private_count, 1);
	/* What networks use as if it were private. */
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		assert_int_equal(address_read(used[i], strlen(used[i]), &address), 0);
		assert_int_equal(
			route_policy_add_private(&f->policy, "mirror.example.com", 443, &address),
			0);
	}
}

static void bad_rules(void **state)
{
	static const char *const bad[] = {"",          "*",      "*.",           "*.com",
					  "a.*.com",   "a.com:", "a.com:0",      "a.com:65536",
					  "a.com:x",   ":443",   "http://a.com", "a.com/x",
					  "1.2.3.4.5", "[::1",   "10.0.0.0/8"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (route_policy_add(&f->policy, false, bad[i], "--allow x") == 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(strncmp(log_last_error(), "--allow x: ", 11), 0);
	}
	assert_int_equal(f->policy.count, 0);
	for (unsigned int i = 0; i < LIMIT_ROUTE_RULES; i++)
		allow(f, "example.com");
	assert_int_not_equal(route_policy_add(&f->policy, false, "example.com", "x"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(addresses),
		cmocka_unit_test(address_texts),
		cmocka_unit_test_setup_teardown(nothing_is_allowed_by_default, setup, teardown),
		cmocka_unit_test_setup_teardown(hosts_and_ports, setup, teardown),
		cmocka_unit_test_setup_teardown(all_below, setup, teardown),
		cmocka_unit_test_setup_teardown(ports_of_a_host, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_by_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(private_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_rules, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
