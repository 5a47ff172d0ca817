/* SPDX-License-Identifier: Apache-2.0 */
/* A git configuration, as a guest writes it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/fs/git_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is harmless has no NUL, and is so without its last line, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char key[GIT_CONFIG_KEY_BYTES];
	const char *text = (const char *)data;
	const char *newline;

	if (!git_config_is_harmless(text, size, 3, key)) {
		if (strnlen(key, sizeof(key)) == sizeof(key))
			abort();
		return 0;
	}
	if (memchr(data, 0, size))
		abort();
	newline = memrchr(text, '\n', size);
	if (newline && !git_config_is_harmless(text, (size_t)(newline - text), 3, key))
		abort();
	return 0;
}
