/* SPDX-License-Identifier: Apache-2.0 */
/* Which names make a change worth a look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/journal_internal.h"

static void test_build_files(void **state)
{
	static const char *const those[] = {
		"Makefile",
		"d/makefile",
		"a/b/x.mk",
		"x.cmake",
		"Jenkinsfile",
		"Jenkinsfile.release",
		"azure-pipelines.yml",
		"woodpecker/.woodpecker.yaml",
		".yarnrc.yml",
		"docker-compose.test.yaml",
		"compose.yml",
		"Directory.Build.props",
		".github/workflows/x",
		"sub/.github/workflows/deep/x",
		".cargo/config.toml",
		"evil.pth",
		"BUILD",
		"go.mod",
	};
	static const char *const others[] = {
		"",
		"makefiles",
		"Makefile.c",
		"mk",
		"x.mkx",
		"github/workflows/x",
		".github/x",
		".github/workflows",
		"go.mode",
		"BUILDING",
		"azure-pipelines.y",
		"node_modules/a/package.json",
		"x/.git/config",
		"lib/site-packages/setup.py",
		".venv/x.pth",
		"d/",
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(those); i++)
		if (!journal_is_build_file(those[i]))
			fail_msg("%s is not told", those[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(others); i++)
		if (journal_is_build_file(others[i]))
			fail_msg("%s is told", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_build_files)};

	return cmocka_run_group_tests_name("journal names", tests, NULL, NULL);
}
