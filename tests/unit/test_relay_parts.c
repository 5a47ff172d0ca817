/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the relay: what TLS asks for, what is judged by it, proxies, settings, and the
 * addresses of a host in turns. tests/relay has the rest, with real peers. */
#include "vmm/relay/first.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/cli/allow_from.h"
#include "vmm/relay/dial.h"
#include "vmm/relay/hello.h"
#include "vmm/relay/settings.h"
#include "vmm/wire/names.h"
#include "vmm/wire/relay.h"

/* A client's first message under construction. */
struct built {
	size_t length;
	uint8_t bytes[4096];
};

static void put(struct built *built, const void *bytes, size_t length)
{
	memcpy(built->bytes + built->length, bytes, length);
	built->length += length;
}

static void put16(struct built *built, size_t number)
{
	const uint8_t bytes[] = {(uint8_t)(number >> 8), (uint8_t)number};

	put(built, bytes, 2);
}

static void put_name(struct built *extensions, const char *name, size_t length)
{
	put16(extensions, 0);
	put16(extensions, length + 5);
	put16(extensions, length + 3);
	put(extensions, "\0", 1);
	put16(extensions, length);
	put(extensions, name, length);
}

/* The message with those extensions, in one record. */
static struct built message(const struct built *extensions)
{
	struct built body = {0}, made = {0};

	put(&body, "\3\3", 2);
	body.length += 32; /* random */
	put(&body, "\0\0\2\x13\1\1\0", 7);
	put16(&body, extensions->length);
	put(&body, extensions->bytes, extensions->length);
	put(&made, "\x16\3\1", 3);
	put16(&made, body.length + 4);
	put(&made, "\1\0", 2);
	put16(&made, body.length);
	put(&made, body.bytes, body.length);
	return made;
}

static struct built hello_to(const char *name)
{
	struct built extensions = {0};

	put16(&extensions, 43); /* some other extension */
	put16(&extensions, 3);
	put(&extensions, "\2\3\4", 3);
	if (name)
		put_name(&extensions, name, strlen(name));
	return message(&extensions);
}

static void assert_hello(const struct built *built, enum hello expected, const char *name)
{
	char seen[NAME_BYTES] = "before";

	assert_int_equal(hello_read(built->bytes, built->length, seen), expected);
	assert_string_equal(seen, name);
}

static void servers_that_are_named(void **state)
{
	struct built built = hello_to("API.Example.com");
	char name[NAME_BYTES];

	(void)state;
	assert_hello(&built, HELLO_NAMED, "api.example.com");
	for (size_t cut = 0; cut < built.length; cut++)
		assert_int_equal(hello_read(built.bytes, cut, name), HELLO_MORE);
	/* What follows is not looked at. */
	put(&built, "\x14\3\3\0\1\1", 6);
	assert_hello(&built, HELLO_NAMED, "api.example.com");
	built = hello_to(NULL);
	assert_hello(&built, HELLO_UNNAMED, "");
	built = hello_to("10.0.0.1");
	assert_hello(&built, HELLO_NAMED, "");
}

static void servers_that_are_hidden_or_twice(void **state)
{
	struct built extensions = {0}, built;

	(void)state;
	put_name(&extensions, "a.example", 9);
	put16(&extensions, 0xfe0d);
	put16(&extensions, 4);
	put(&extensions, "\0\0\0\0", 4);
	built = message(&extensions);
	assert_hello(&built, HELLO_ENCRYPTED, "a.example");
	extensions.length = 0;
	put_name(&extensions, "a.example", 9);
	put_name(&extensions, "b.example", 9);
	built = message(&extensions);
	assert_int_equal(hello_read(built.bytes, built.length, (char[NAME_BYTES]){0}),
			 HELLO_BROKEN);
	extensions.length = 0;
	put_name(&extensions, "b.example\0.a.example", 20);
	built = message(&extensions);
	assert_hello(&built, HELLO_NAMED, "");
	extensions.length = 0;
	put_name(&extensions, "", 0);
	built = message(&extensions);
	assert_int_equal(hello_read(built.bytes, built.length, (char[NAME_BYTES]){0}),
			 HELLO_BROKEN);
}

/* A message may be cut into records as small as one byte; padding it with more is an end. */
static void records(void **state)
{
	struct built built = hello_to("a.example"), cut = {0};

	(void)state;
	for (size_t i = 5; i < built.length; i++) {
		put(&cut, "\x16\3\3\0\1", 5);
		put(&cut, built.bytes + i, 1);
	}
	assert_hello(&cut, HELLO_NAMED, "a.example");
	put(&built, "\x16\3\3\0\0", 5);
	assert_hello(&built, HELLO_NAMED, "a.example");
	cut.length = 0;
	put(&cut, "\x16\3\3\0\0", 5);
	assert_hello(&cut, HELLO_BROKEN, "");
	cut.length = 0;
	put(&cut, "\x16\3\3\x50\0\1", 6);
	assert_hello(&cut, HELLO_BROKEN, "");
	cut.length = 0;
	put(&cut, "\x16\3\3\0\4\1\xff\0\0", 9);
	assert_hello(&cut, HELLO_BROKEN, "");
	cut.length = 0;
	put(&cut, "\x16\3\3\0\4\2\0\0\0", 9);
	assert_hello(&cut, HELLO_BROKEN, "");
	cut.length = 0;
	put(&cut, "SSH-2.0-x\r\n", 11);
	assert_hello(&cut, HELLO_NOT_TLS, "");
	cut.length = 0;
	put(&cut, "\x16x", 2);
	assert_hello(&cut, HELLO_NOT_TLS, "");
}

static void assert_verdict(uint16_t port, const struct built *built, enum first_verdict expected,
			   const char *part)
{
	struct route_policy policy = {0};
	char reason[FIRST_REASON_BYTES] = "";

	assert_int_equal(first_judge(&policy, "a.example", false, port, built->bytes, built->length,
				     false, reason),
			 expected);
	assert_non_null(strstr(reason, part));
	/* To an address, or when that is wanted, anything may be said. */
	assert_int_equal(first_judge(&policy, "10.0.0.1", true, port, built->bytes, built->length,
				     false, reason),
			 FIRST_PASS);
	policy.any_server_name = true;
	assert_int_equal(first_judge(&policy, "a.example", false, port, built->bytes, built->length,
				     false, reason),
			 FIRST_PASS);
}

static void first_bytes(void **state)
{
	struct built good = hello_to("A.example"), other = hello_to("b.example"),
		     none = hello_to(NULL), empty = {0}, http = {.length = 5, .bytes = "GET /"};
	struct route_policy policy = {0};
	char reason[FIRST_REASON_BYTES];

	(void)state;
	assert_verdict(443, &good, FIRST_PASS, "");
	assert_verdict(8443, &good, FIRST_PASS, "");
	assert_verdict(8443, &other, FIRST_REFUSE, "another server, b.example");
	assert_verdict(80, &other, FIRST_REFUSE, "--allow-any-sni");
	assert_verdict(443, &none, FIRST_REFUSE, "no SNI");
	assert_verdict(443, &http, FIRST_REFUSE, "it is not TLS");
	assert_verdict(80, &http, FIRST_PASS, "");
	assert_verdict(443, &empty, FIRST_MORE, "");
	assert_int_equal(
		first_judge(&policy, "a.example", false, 443, good.bytes, 20, true, reason),
		FIRST_REFUSE);
	assert_int_equal(first_judge(&policy, "a.example", false, 443, good.bytes, 0, true, reason),
			 FIRST_PASS);
}

static void proxies(void **state)
{
	static const char *const bad[] = {
		"https://proxy", "socks5://proxy:1", "http://",           "",
		"http://a b",    "http://proxy:0",   "http://proxy:99999"};
	char request[PROXY_REQUEST_BYTES];
	struct proxy proxy = {0};

	(void)state;
	assert_int_equal(proxy_read(&proxy, "HTTP://us%65r:p%40ss@Proxy.Example:3128/", "x"), 0);
	assert_string_equal(proxy.host, "proxy.example");
	assert_int_equal(proxy.port, 3128);
	assert_string_equal(proxy.credentials, "dXNlcjpwQHNz"); /* user:p@ss */
	request[proxy_request(&proxy, "a.example", 443, request)] = '\0';
	assert_string_equal(request, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"
				     "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n");
	proxy = (struct proxy){0};
	assert_int_equal(proxy_read(&proxy, "[::1]:8080", "x"), 0);
	assert_string_equal(proxy.host, "[::1]");
	assert_int_equal(proxy.port, 8080);
	assert_int_equal(proxy_read(&proxy, "10.0.0.1", "x"), 0);
	assert_int_equal(proxy.port, 80);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(proxy_read(&proxy, bad[i], "x"), 0);

	strcpy(proxy.exceptions, "localhost,.corp.example, *.in.example 10.0.0.5 host.example.");
	assert_true(proxy_is_exempt(&proxy, "localhost"));
	assert_true(proxy_is_exempt(&proxy, "a.corp.example"));
	assert_true(proxy_is_exempt(&proxy, "corp.example"));
	assert_true(proxy_is_exempt(&proxy, "b.in.example"));
	assert_true(proxy_is_exempt(&proxy, "10.0.0.5"));
	assert_true(proxy_is_exempt(&proxy, "x.host.example"));
	assert_false(proxy_is_exempt(&proxy, "acorp.example"));
	assert_false(proxy_is_exempt(&proxy, "10.0.0.6"));
	strcpy(proxy.exceptions, "*");
	assert_true(proxy_is_exempt(&proxy, "any.example"));
}

static void proxy_answers(void **state)
{
	static const char good[] = "HTTP/1.1 200 OK\r\nVia: x\r\n\r\nmore";

	(void)state;
	for (size_t cut = 0; cut < sizeof(good) - 5; cut++)
		assert_int_equal(proxy_response(good, cut), 0);
	assert_int_equal(proxy_response(good, sizeof(good) - 1), sizeof(good) - 5);
	assert_int_equal(proxy_response("HTTP/1.1 407 No\r\n\r\n", 19), -407);
	assert_int_equal(proxy_response("HTTP/1.1 2000 OK\r\n\r\n", 20), -1);
	assert_int_equal(proxy_response("HTTP/1.1 20\r\n\r\n", 15), -1);
	assert_int_equal(proxy_response("HTTP/2 200", 10), -1);
	assert_int_equal(proxy_response("x", 1), -1);
}

static void settings_are_passed_on(void **state)
{
	struct relay_settings given = {0}, taken = {0};
	struct address private;
	int fd;

	(void)state;
	assert_int_equal(route_policy_add(&given.policy, false, "*.Example.com:8443", "--allow x"),
			 0);
	assert_int_equal(route_policy_add(&given.policy, true, "[fd00::1]:80", "file, line 3"), 0);
	assert_int_equal(route_policy_add(&given.policy, false, "10.0.0.1", "--allow y"), 0);
	given.policy.any_server_name = true;
	assert_int_equal(proxy_read(&given.proxy, "http://u:p@[::1]:3128", "x"), 0);
	strcpy(given.proxy.exceptions, "a, b");
	strcpy(given.servers, "127.0.0.1:5353");
	assert_int_equal(address_read("10.9.8.7", 8, &private), 0);
	assert_int_equal(
		route_policy_add_private(&given.policy, "mirror.example.com", 8443, &private), 0);
	given.published_count = 1;
	given.published[0] = (struct published_port){.port = 8080, .guest_port = 3000};
	assert_int_equal(address_read("127.0.0.1", 9, &given.published[0].address), 0);

	fd = relay_settings_write(&given);
	assert_true(fd >= 0);
	assert_int_not_equal(write(fd, "x", 1), 1); /* nobody changes it any more */
	assert_int_equal(relay_settings_read(&taken, fd), 0);
	close(fd);
	assert_int_equal(taken.policy.count, 3);
	assert_string_equal(taken.policy.rules[0].name, "example.com");
	assert_int_equal(taken.policy.rules[0].target, ROUTE_BELOW);
	assert_int_equal(taken.policy.rules[0].port, 8443);
	assert_true(taken.policy.rules[1].deny);
	assert_true(address_equals(&taken.policy.rules[1].address, &given.policy.rules[1].address));
	assert_string_equal(taken.policy.rules[1].origin, "file, line 3");
	assert_int_equal(taken.policy.rules[2].port, 0);
	assert_int_equal(taken.policy.private_count, 1);
	assert_null(route_policy_objection(&taken.policy, "mirror.example.com", &private, 8443));
	assert_true(taken.policy.any_server_name);
	assert_string_equal(taken.proxy.host, "[::1]");
	assert_string_equal(taken.proxy.credentials, given.proxy.credentials);
	assert_string_equal(taken.proxy.exceptions, "a, b");
	assert_string_equal(taken.servers, "127.0.0.1:5353");
	assert_int_equal(taken.published_count, 1);
	assert_int_equal(taken.published[0].guest_port, 3000);
	relay_settings_free(&given);
	relay_settings_free(&taken);
	assert_string_equal(taken.proxy.credentials, "");
}

static void families_in_turns(void **state)
{
	struct address addresses[6];
	static const int families[] = {AF_INET, AF_INET, AF_INET, AF_INET6, AF_INET, AF_INET6};
	static const int order[] = {3, 0, 5, 1, 2, 4};

	(void)state;
	for (unsigned int i = 0; i < 6; i++)
		addresses[i] = (struct address){.family = families[i], .bytes = {(uint8_t)i}};
	dial_sort(addresses, 6);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(addresses[i].bytes[0], order[i]);
}

static void assert_place(const char *url, const char *expected)
{
	char place[NAME_BYTES + 8] = "";
	int error = allow_from_read_url(url, strlen(url), place);

	assert_int_equal(error == 0, expected != NULL);
	if (expected)
		assert_string_equal(place, expected);
}

static void urls(void **state)
{
	(void)state;
	assert_place("https://Registry.Example.com/npm/", "registry.example.com:443");
	assert_place("http://user:pa%3Ass@mirror.example:8080/x", "mirror.example:8080");
	assert_place("ssh://git@git.example:2222/a.git", "git.example:2222");
	assert_place("git@git.example:group/a.git", "git.example:22");
	assert_place("sparse+https://index.example/", "index.example:443");
	assert_place("https://a.example?x=@evil.example", "a.example:443");
	assert_place("/srv/git/a.git", NULL);
	assert_place("file:///srv/a.git", NULL);
	assert_place("https://", NULL);
	assert_place("https://a.example:0/", NULL);
	assert_place("https://a.example:99999/", NULL);
	assert_place("origin", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_that_are_named),
		cmocka_unit_test(servers_that_are_hidden_or_twice),
		cmocka_unit_test(records),
		cmocka_unit_test(first_bytes),
		cmocka_unit_test(proxies),
		cmocka_unit_test(proxy_answers),
		cmocka_unit_test(settings_are_passed_on),
		cmocka_unit_test(families_in_turns),
		cmocka_unit_test(urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
