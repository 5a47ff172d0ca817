/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/arguments.h"

#include <stdlib.h>
#include <string.h>

char **arguments_copy(int argc, char *const *argv)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));

	for (int i = 0; copy && i < argc; i++) {
		copy[i] = strdup(argv[i]);
		if (!copy[i]) {
			arguments_free(copy);
			return NULL;
		}
	}
	return copy;
}

void arguments_free(char **arguments)
{
	for (char **argument = arguments; argument && *argument; argument++)
		free(*argument);
	free(arguments);
}
