/* SPDX-License-Identifier: Apache-2.0 */
/* What describes an image: its own text, its users, and the names that are given to it. */
#include "vmm/image/descriptor.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/cli/image_store.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "broken line\n"
			     "node:x:1001:1002::/home/node:/bin/sh\n"
			     "odd name!:x:7:7::relative:\n"
			     "last:x:9:10:::";
static const char group[] = "root:x:0:\nwheel:x:10:node\nlast:x:11";

static void users_are_found_by_name_and_number(void **state)
{
	static const struct {
		const char *text;
		int error;
		uint32_t uid, gid;
		const char *name, *home;
	} cases[] = {
		{"node", 0, 1001, 1002, "node", "/home/node"},
		{"1001", 0, 1001, 1002, "node", "/home/node"},
		{"node:wheel", 0, 1001, 10, "node", "/home/node"},
		{"node:0", 0, 1001, 0, "node", "/home/node"},
		{"0", 0, 0, 0, "root", "/root"},
		{"7", 0, 7, 7, "agent", "/home/agent"},
		{"last", 0, 9, 10, "last", "/home/agent"},
		{"500:last", 0, 500, 11, "agent", "/home/agent"},
		{"4294967294", 0, 4294967294U, 0, "agent", "/home/agent"},
		{"4294967295", -ENOENT, 0, 0, "", ""},
		{"-1", -ENOENT, 0, 0, "", ""},
		{"nobody", -ENOENT, 0, 0, "", ""},
		{"node:nobody", -ENOENT, 0, 0, "", ""},
		{"nod", -ENOENT, 0, 0, "", ""},
		{"", -EINVAL, 0, 0, "", ""},
		{":wheel", -EINVAL, 0, 0, "", ""},
		{"node:", -EINVAL, 0, 0, "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image_user found;

		assert_int_equal(image_user_find(cases[i].text, passwd, group, &found),
				 cases[i].error);
		if (cases[i].error)
			continue;
		assert_int_equal(found.uid, cases[i].uid);
		assert_int_equal(found.gid, cases[i].gid);
		assert_string_equal(found.name, cases[i].name);
		assert_string_equal(found.home, cases[i].home);
	}
}

static void a_text_is_read_as_it_was_written(void **state)
{
	char *variables[] = {"A=b", "PATH=/bin", NULL}, *entrypoint[] = {"/bin/sh", NULL};
	char *arguments[] = {"-c", "echo \"\xc3\xa9\n\"", NULL}, directory[] = "/work";
	struct image_descriptor written = {
		.bytes = 40960,
		.verity_root = {1, 2, 3, 255},
		.settings = {.has_user = true,
			     .user = {.uid = 4294967294U, .gid = 7, .name = "node", .home = "/h"},
			     .directory = directory,
			     .variables = variables,
			     .entrypoint = entrypoint,
			     .arguments = arguments},
	};
	struct image_descriptor read;
	char *text, *again;

	(void)state;
	assert_int_equal(image_descriptor_format(&written, &text), 0);
	assert_int_equal(image_descriptor_parse(text, strlen(text), &read), 0);
	assert_int_equal(read.bytes, 40960);
	assert_memory_equal(read.verity_root, written.verity_root, SHA256_BYTES);
	assert_true(read.settings.has_user);
	assert_memory_equal(&read.settings.user, &written.settings.user, sizeof(struct image_user));
	assert_string_equal(read.settings.directory, "/work");
	assert_int_equal(image_strings_count(read.settings.variables), 2);
	assert_string_equal(read.settings.arguments[1], arguments[1]);
	assert_int_equal(image_descriptor_format(&read, &again), 0);
	assert_string_equal(text, again);
	image_descriptor_free(&read);
	free(text);
	free(again);
}

#define KIND "\"kind\": \"mvagent image 1\", \"architecture\": \"amd64\""
#define ROOT \
	"\"verity\": \"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""

static void other_texts_are_refused(void **state)
{
	static const char *const good = "{" KIND ", \"bytes\": 4096, " ROOT "}";
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{" KIND ", \"bytes\": 4097, " ROOT "}",
		"{" KIND ", \"bytes\": 0, " ROOT "}",
		"{" KIND ", \"bytes\": -4096, " ROOT "}",
		"{" KIND ", \"bytes\": 1e300, " ROOT "}",
		"{" KIND ", \"bytes\": \"4096\", " ROOT "}",
		"{" KIND ", \"bytes\": 4096}",
		"{" KIND ", \"bytes\": 4096, \"verity\": \"sha256:00\"}",
		"{\"kind\": \"mvagent image 2\", \"architecture\": \"amd64\", \"bytes\": "
		"4096, " ROOT "}",
		"{\"kind\": \"mvagent image 1\", \"architecture\": \"vax\", \"bytes\": 4096, " ROOT
		"}",
		"{" KIND ", \"bytes\": 4096, " ROOT "} x",
		"{" KIND ", \"bytes\": 4096, " ROOT ", \"variables\": [\"a\"]}",
		"{" KIND ", \"bytes\": 4096, " ROOT ", \"variables\": [\"=a\"]}",
		"{" KIND ", \"bytes\": 4096, " ROOT ", \"arguments\": [1]}",
		"{" KIND ", \"bytes\": 4096, " ROOT ", \"directory\": \"a\"}",
		"{" KIND ", \"bytes\": 4096, " ROOT ", \"user\": 7}",
		"{" KIND ", \"bytes\": 4096, " ROOT ", \"user\": {\"uid\": 1}}",
	};
	struct image_descriptor descriptor;

	(void)state;
	assert_int_equal(image_descriptor_parse(good, strlen(good), &descriptor), 0);
	image_descriptor_free(&descriptor);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(image_descriptor_parse(bad[i], strlen(bad[i]), &descriptor),
				 -EINVAL);
		image_descriptor_free(&descriptor);
	}
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void names_and_pins(void **state)
{
	static const char *const bad[] = {
		"",    ".a",   "a/b",     "a@",       "a@sha256:0",    "@" DIGEST, "-a",
		"a b", "a\nb", "sha256:", DIGEST "0", "a@" DIGEST "0", "..",       "a\xff"};
	struct image_reference reference;

	(void)state;
	assert_true(image_reference_parse("python:3.12", &reference));
	assert_string_equal(reference.name, "python:3.12");
	assert_false(reference.is_pinned);
	assert_true(image_reference_parse("a@" DIGEST, &reference));
	assert_string_equal(reference.name, "a");
	assert_true(reference.is_pinned);
	assert_int_equal(reference.digest[31], 0xef);
	assert_true(image_reference_parse(DIGEST, &reference));
	assert_string_equal(reference.name, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(image_reference_parse(bad[i], &reference));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_are_found_by_name_and_number),
		cmocka_unit_test(a_text_is_read_as_it_was_written),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(names_and_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
