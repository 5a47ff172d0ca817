/* SPDX-License-Identifier: Apache-2.0 */
/* A small record in memory, made by the code that makes real ones. */
#ifndef TESTS_UNIT_RECORD_FIXTURE_H
#define TESTS_UNIT_RECORD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "vmm/base/fd.h"
#include "vmm/record/record.h"
#include "vmm/record/verify.h"

struct record_place {
	char path[32];
	int fd;
	struct record_key key;
};

static inline void record_place_make(struct record_place *place)
{
	strcpy(place->path, "/tmp/record-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->fd >= 0);
	assert_int_equal(record_key_open(&place->key, place->fd, "key", "key"), 0);
}

static inline void record_place_remove(struct record_place *place)
{
	char command[64];

	fd_close(&place->fd);
	snprintf(command, sizeof(command), "rm -r %s", place->path);
	assert_int_equal(system(command), 0);
}

/* The contents of a file there; allocated. */
static inline char *record_place_read(const struct record_place *place, const char *name,
				      size_t *length)
{
	int FD_CLEANUP fd = openat(place->fd, name, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *text;

	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	*length = (size_t)status.st_size;
	text = malloc(*length + 1);
	assert_non_null(text);
	assert_int_equal(fd_read_full(fd, text, *length), 0);
	text[*length] = '\0';
	return text;
}

static inline cJSON *record_detail(const char *name, const char *value)
{
	cJSON *detail = cJSON_CreateObject();

	cJSON_AddStringToObject(detail, name, value);
	return detail;
}

#endif
