/* SPDX-License-Identifier: Apache-2.0 */
/* What a user who may not open /dev/kvm is told to do. */
#include "vmm/cli/kvm_access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"

static void test_advice_fits_the_device_and_the_user(void **state)
{
	static const struct {
		struct kvm_access access;
		const char *wanted;
	} cases[] = {
		{{.mode = 0660, .group = 104, .group_name = "kvm"}, "usermod -aG kvm $USER"},
		{{.mode = 0660, .group = 36, .group_name = "virt"}, "usermod -aG virt $USER"},
		{{.mode = 0660, .group = 104, .group_name = "kvm", .enrolled = true},
		 "log in again"},
		{{.mode = 0600, .group = 0, .group_name = "root"}, "its mode is 0600"},
		{{.mode = 0600, .group = 104, .group_name = "kvm", .in_group = true},
		 "its mode is 0600"},
		{{.mode = 0660, .group = 0, .group_name = "root"}, "--group-add 0"},
		{{.mode = 0660, .group = 104}, "--group-add 104"},
		{{.mode = 0660, .group = 104, .in_group = true}, "--device /dev/kvm"},
		{{.mode = 0600, .group = 0, .privileged = true}, "--device /dev/kvm"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[512];

		kvm_access_explain(&cases[i].access, text, sizeof(text));
		if (!strstr(text, cases[i].wanted))
			fail_msg("'%s' is not in '%s'", cases[i].wanted, text);
		/* Nobody is told to join root's group, nor one that they are in. */
		if (cases[i].access.group == 0 || cases[i].access.enrolled)
			assert_null(strstr(text, "usermod"));
	}
}

static void test_device_as_it_is(void **state)
{
	char text[512] = "";

	(void)state;
	kvm_access_explain_device(text, sizeof(text));
	assert_non_null(strstr(text, "you may not open /dev/kvm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_advice_fits_the_device_and_the_user),
		cmocka_unit_test(test_device_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
