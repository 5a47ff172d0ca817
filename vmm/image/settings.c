/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/settings.h"

#include <errno.h>
#include <stdlib.h>

int image_settings_init(struct image_settings *settings)
{
	*settings = (struct image_settings){
		.variables = calloc(1, sizeof(char *)),
		.entrypoint = calloc(1, sizeof(char *)),
		.arguments = calloc(1, sizeof(char *)),
	};
	return settings->variables && settings->entrypoint && settings->arguments ? 0 : -ENOMEM;
}

void image_settings_free(struct image_settings *settings)
{
	free(settings->directory);
	image_strings_free(settings->variables);
	image_strings_free(settings->entrypoint);
	image_strings_free(settings->arguments);
	*settings = (struct image_settings){0};
}

unsigned int image_strings_count(char *const *list)
{
	unsigned int count = 0;

	while (list && list[count])
		count++;
	return count;
}

void image_strings_free(char **list)
{
	for (unsigned int i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}
