/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what is open, for tests of what must not leak. */
#ifndef MVAGENT_TESTS_DESCRIPTORS_H
#define MVAGENT_TESTS_DESCRIPTORS_H

#include <dirent.h>

/* Only good for comparing: it counts itself and "." and "..", too. 0 without /proc. */
static inline unsigned int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count;
}

#endif
