/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a run whose process was killed holds as far as it goes, and stays as it is: who
 * adds an end to it would vouch for what he has not seen. What is of use in it here are the
 * directories that the run was given.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/repair.h"
#include "vmm/record/store.h"
#include "vmm/record/verify.h"

/* A text of the record as it was before it was escaped; allocated. NULL: there is none, or it was
 * too long. */
static char *take_text(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
	char *text = cJSON_IsString(value) ? strdup(value->valuestring) : NULL;

	if (text && (review_unescape(text) || text[0] != '/')) {
		free(text);
		text = NULL;
	}
	return text;
}

/* Where a run of `mvagent review` may have planted something. */
static void look_above(struct repair *repair, const cJSON *object, const char *name)
{
	char *path = take_text(object, name);

	if (path)
		repair_planted(repair, path, true);
	free(path);
}

static void look_into_share(struct repair *repair, const cJSON *share)
{
	const cJSON *mode = cJSON_GetObjectItemCaseSensitive(share, "mode");
	char *path = take_text(share, "host");
	int FD_CLEANUP fd = -1;

	/* To others nothing was written there. */
	if (path && cJSON_IsString(mode) && strcmp(mode->valuestring, "rw") == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		repair_share(repair, fd, path);
	free(path);
	look_above(repair, share, "host");
}

static void look_around(struct repair *repair, const char *text, size_t length)
{
	const char *newline = memchr(text, '\n', length);
	cJSON *start = newline ? cJSON_ParseWithLength(text, (size_t)(newline - text)) : NULL;
	const cJSON *share, *shares = cJSON_GetObjectItemCaseSensitive(
				    cJSON_GetObjectItemCaseSensitive(start, "policy"), "shares");

	look_above(repair, start, "directory");
	cJSON_ArrayForEach(share, shares)
	{
		look_into_share(repair, share);
	}
	cJSON_Delete(start);
}

/* Its process was killed before it had started any other. */
static int remove_empty(struct repair *repair, const char *run)
{
	int error = record_store_remove(repair->record_fd, run);

	if (error)
		return error == -EBUSY || error == -ENOENT ? 0 : error;
	repair->removed++;
	repair_tell(repair, run, "had not begun; its empty record was removed");
	return 0;
}

static int judge(struct repair *repair, const char *run, const char *text, size_t length)
{
	static const uint8_t nobody[KEY_BYTES];
	struct record_check check;
	int error = record_verify(&check, text, length, nobody);

	if (error)
		return error;
	if (check.lines == 0)
		return remove_empty(repair, run);
	if (check.verdict == RECORD_ALTERED)
		repair_tell(repair, run, "its record does not hold: %s", check.sentence);
	if (check.verdict != RECORD_CUT)
		return 0;
	repair->cut++;
	repair_tell(repair, run, "its record holds as far as it goes; %s", check.sentence);
	look_around(repair, text, length);
	return 0;
}

void repair_record(struct repair *repair, const char *run)
{
	size_t length;
	bool running;
	char *text;
	int error = record_store_read(repair->record_fd, run, &text, &length, &running);

	if (!error && running)
		repair->running++;
	else if (!error)
		error = judge(repair, run, text, length);
	free(text);
	/* Removed by somebody else meanwhile. */
	if (error && error != -ENOENT) {
		log_errno(error, "cannot look at the record of run %s", run);
		repair->failed = true;
	}
}
