/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files of its corpus, without a fuzzer: what `make check` does. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(path, "re");
	uint8_t *exact;
	size_t size;

	if (!file) {
		perror(path);
		return -1;
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	/* An allocation of the exact size lets a sanitizer see a read past the end. */
	exact = malloc(size ? size : 1);
	if (!exact)
		return -1;
	memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	unsigned int count = 0;
	char path[4096];
	DIR *directory;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	directory = opendir(argv[1]);
	if (!directory) {
		perror(argv[1]);
		return 1;
	}
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (replay_file(path) < 0)
			return 1;
		count++;
	}
	closedir(directory);
	printf("%u inputs replayed\n", count);
	/* A corpus that vanished would make this test pass by doing nothing. */
	return count ? 0 : 1;
}
