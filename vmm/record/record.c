/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/sha256.h"
#include "vmm/record/canonical.h"
#include "vmm/record/line.h"
#include "vmm/record/signed.h"

struct record {
	int fd;
	uint64_t lines;
	uint64_t bytes;
	uint8_t last[SHA256_BYTES]; /* hash of the last line */
	int error;                  /* the first one: nothing is written after it */
	uint64_t seen[RECORD_KIND_COUNT];
	uint64_t written[RECORD_KIND_COUNT];
};

/* How many are written in detail. What the guest causes is bounded by far more than honest work
 * does; the rest happens a few times in a run. */
static const struct {
	const char *name;
	uint64_t limit;
} kinds[RECORD_KIND_COUNT] = {
	[RECORD_START] = {"start", 1},
	[RECORD_WALLS] = {"walls", 8},
	[RECORD_HASHES] = {"hashes", 4},
	[RECORD_PHASE] = {"phase", 16},
	[RECORD_SHARE] = {"share", LIMIT_SHARES},
	[RECORD_REFUSAL] = {"refusal", LIMIT_RECORD_REFUSALS},
	[RECORD_FINDING] = {"finding", LIMIT_RECORD_FINDINGS},
	[RECORD_CHANGE] = {"change", LIMIT_RECORD_CHANGES},
	[RECORD_NETWORK] = {"network", LIMIT_RECORD_NETWORK},
	/* A guest can fill what is there for the network, and not by that hide what it logs in to.
	 */
	[RECORD_SIGNED] = {"network", LIMIT_RECORD_SIGNED},
	[RECORD_SECRET] = {"secret", LIMIT_RECORD_SECRETS},
	[RECORD_LIMIT] = {"limit", 64},
	[RECORD_NOTICE] = {"notice", 64},
	[RECORD_END] = {"end", 1},
	[RECORD_SIGNATURE] = {"signature", 1},
};

/* Between its making and its lock a file may be taken for one of a process that was killed
 * (`mvagent runs --repair`), and be removed. Waits for who only reads it. 0 or -errno; -EEXIST: the
 * name is no longer that file's. */
static int lock_new(int fd)
{
	struct stat status;
	int result;

	do {
		result = flock(fd, LOCK_EX);
	} while (result < 0 && errno == EINTR);
	if (result < 0 || fstat(fd, &status) < 0)
		return -errno;
	return status.st_nlink ? 0 : -EEXIST;
}

int record_create(struct record **record, int directory_fd, const char *name)
{
	struct record *created = calloc(1, sizeof(*created));
	int error;

	if (!created)
		return -ENOMEM;
	created->fd = openat(directory_fd, name,
			     O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	error = created->fd < 0 ? -errno : lock_new(created->fd);
	if (error) {
		record_abandon(created);
		return error;
	}
	*record = created;
	return 0;
}

static bool add_time(cJSON *line)
{
	struct timespec now;
	struct tm parts;
	char text[40];
	size_t length;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + length, sizeof(text) - length, ".%06ldZ", now.tv_nsec / 1000);
	return cJSON_AddStringToObject(line, LINE_TIME, text);
}

/* The members that each line has. */
static bool add_head(const struct record *record, enum record_kind kind, cJSON *line)
{
	char previous[SHA256_HEX_SIZE] = LINE_NO_HASH;

	if (record->lines)
		sha256_format(record->last, previous);
	return cJSON_AddNumberToObject(line, LINE_NUMBER, (double)(record->lines + 1)) &&
	       cJSON_AddStringToObject(line, LINE_PREVIOUS, previous) && add_time(line) &&
	       cJSON_AddStringToObject(line, LINE_EVENT, kinds[kind].name);
}

/* One write, so that of a process that is killed there are whole lines, and at most one piece. */
static int write_line(struct record *record, const cJSON *line)
{
	char *text = canonical_print(line);
	size_t length = text ? strlen(text) : 0;
	int error = text ? 0 : -ENOMEM;

	if (length > LIMIT_RECORD_LINE_BYTES)
		error = -EMSGSIZE;
	if (!error) {
		text[length] = '\n';
		error = fd_write_full(record->fd, text, length + 1);
	}
	if (!error) {
		sha256_of(text, length, record->last);
		record->lines++;
		record->bytes += length + 1;
	}
	free(text);
	return error;
}

static bool is_written(const struct record *record, enum record_kind kind)
{
	if (record->error || record->written[kind] >= kinds[kind].limit)
		return false;
	/* What ends the record always has room. */
	return kind == RECORD_END || kind == RECORD_SIGNATURE || kind == RECORD_SIGNED ||
	       record->bytes < LIMIT_RECORD_BYTES;
}

void record_event(struct record *record, enum record_kind kind, cJSON *detail)
{
	if (!record) {
		cJSON_Delete(detail);
		return;
	}
	record->seen[kind]++;
	if (detail && is_written(record, kind)) {
		record->error =
			add_head(record, kind, detail) ? write_line(record, detail) : -ENOMEM;
		record->written[kind] += !record->error;
	}
	cJSON_Delete(detail);
}

void record_count(struct record *record, enum record_kind kind, uint64_t count)
{
	if (record)
		record->seen[kind] += bytes_minimum(count, UINT64_MAX - record->seen[kind]);
}

cJSON *record_counts(const struct record *record)
{
	cJSON *counts = cJSON_CreateObject();

	for (unsigned int kind = 0; record && kind < RECORD_END; kind++) {
		uint64_t seen = record->seen[kind], written = record->written[kind];
		cJSON *object;

		if (kind == RECORD_SIGNED)
			continue;
		if (kind == RECORD_NETWORK) {
			seen += record->seen[RECORD_SIGNED];
			written += record->written[RECORD_SIGNED];
		}
		if (!seen)
			continue;
		object = cJSON_AddObjectToObject(counts, kinds[kind].name);
		canonical_add_count(object, "seen", (double)seen);
		canonical_add_count(object, "written", (double)written);
	}
	return counts;
}

static int write_signature(struct record *record, const struct record_key *key)
{
	cJSON *line = cJSON_CreateObject();
	int error = -ENOMEM;

	if (line && add_head(record, RECORD_SIGNATURE, line))
		error = signed_add(line, LINE_SIGNED_WORDS, key);
	if (!error)
		error = write_line(record, line);
	cJSON_Delete(line);
	return error;
}

int record_finish(struct record *record, const struct record_key *key)
{
	int error = record->error ? record->error : write_signature(record, key);

	if (!error && fdatasync(record->fd))
		error = -errno;
	record_abandon(record);
	return error;
}

void record_abandon(struct record *record)
{
	if (!record)
		return;
	fd_close(&record->fd);
	free(record);
}
