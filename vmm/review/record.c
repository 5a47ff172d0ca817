/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/record.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/number.h"
#include "vmm/base/version.h"
#include "vmm/review/layout.h"
#include "vmm/review/tree.h"

#define TEMPORARY_FILE REVIEW_RUN_FILE ".new"

void review_time_format(time_t time, char text[REVIEW_TIME_BYTES])
{
	struct tm parts;

	gmtime_r(&time, &parts);
	if (strftime(text, REVIEW_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
		text[0] = '\0';
}

static cJSON *make_text(const char *text)
{
	size_t size = 3 * strlen(text) + 1;
	char *escaped = malloc(size);
	cJSON *item = NULL;

	if (escaped && review_escape(text, escaped, size) >= 0)
		item = cJSON_CreateString(escaped);
	free(escaped);
	return item;
}

static bool add_texts(cJSON *object, const char *name, const struct review_texts *texts)
{
	cJSON *array = cJSON_AddArrayToObject(object, name);

	for (unsigned int i = 0; array && i < texts->count; i++) {
		if (!cJSON_AddItemToArray(array, make_text(texts->texts[i])))
			return false;
	}
	return array;
}

static bool add_time(cJSON *object, const char *name, time_t time)
{
	char text[REVIEW_TIME_BYTES];

	if (!time)
		return cJSON_AddNullToObject(object, name);
	review_time_format(time, text);
	return cJSON_AddStringToObject(object, name, text);
}

static bool add_share(cJSON *shares, const struct review_record_share *share)
{
	cJSON *object = cJSON_CreateObject();
	char number[24];

	if (!object || !cJSON_AddItemToArray(shares, object) ||
	    !cJSON_AddItemToObject(object, "host", make_text(share->host_path)))
		return false;
	/* Texts, because a number of JSON has 53 bits for many readers. */
	snprintf(number, sizeof(number), "%" PRIu64, (uint64_t)share->device);
	if (!cJSON_AddStringToObject(object, "device", number))
		return false;
	snprintf(number, sizeof(number), "%" PRIu64, share->inode);
	return cJSON_AddStringToObject(object, "inode", number) &&
	       cJSON_AddStringToObject(object, "upper", share->upper) &&
	       cJSON_AddStringToObject(object, "base", share->base) &&
	       cJSON_AddStringToObject(object, "mode", "review");
}

static bool add_record(cJSON *root, const struct review_record *record)
{
	cJSON *shares;

	if (!cJSON_AddStringToObject(root, "version", MVAGENT_VERSION) ||
	    !add_texts(root, "command", &record->command) ||
	    !add_time(root, "started", record->started) || !add_time(root, "ended", record->ended))
		return false;
	if (record->ended ? !cJSON_AddNumberToObject(root, "exit", record->exit_status)
			  : !cJSON_AddNullToObject(root, "exit"))
		return false;
	if (!add_texts(root, "hide", &record->hide) || !add_texts(root, "show", &record->show) ||
	    !add_texts(root, "protect", &record->protect))
		return false;
	shares = cJSON_AddArrayToObject(root, "shares");
	for (unsigned int i = 0; shares && i < record->share_count; i++) {
		if (!add_share(shares, &record->shares[i]))
			return false;
	}
	return shares;
}

static int write_file(int run_fd, const char *text)
{
	int error,
		FD_CLEANUP fd = openat(run_fd, TEMPORARY_FILE,
				       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	error = fd_write_full(fd, text, strlen(text));
	if (!error && fsync(fd))
		error = -errno;
	if (!error && renameat(run_fd, TEMPORARY_FILE, run_fd, REVIEW_RUN_FILE))
		error = -errno;
	if (!error && fsync(run_fd))
		error = -errno;
	return error;
}

int review_record_write(const struct review_record *record, int run_fd)
{
	cJSON *root = cJSON_CreateObject();
	char *text = root && add_record(root, record) ? cJSON_Print(root) : NULL;
	int error = text ? write_file(run_fd, text) : -ENOMEM;

	free(text);
	cJSON_Delete(root);
	return error;
}

/* A text that was escaped, as it was before; NULL when it is none. */
static char *take_text(const cJSON *item)
{
	char *text;

	if (!cJSON_IsString(item))
		return NULL;
	text = strdup(item->valuestring);
	if (text && review_unescape(text) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool take_texts(const cJSON *root, const char *name, struct review_texts *texts)
{
	const cJSON *item, *array = cJSON_GetObjectItemCaseSensitive(root, name);

	if (!cJSON_IsArray(array))
		return false;
	texts->texts = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof(*texts->texts));
	if (!texts->texts)
		return false;
	cJSON_ArrayForEach(item, array)
	{
		texts->texts[texts->count] = take_text(item);
		if (!texts->texts[texts->count])
			return false;
		texts->count++;
	}
	return true;
}

static bool take_time(const cJSON *item, time_t *time)
{
	struct tm parts = {0};
	const char *end;

	if (cJSON_IsNull(item))
		return true;
	end = cJSON_IsString(item) ? strptime(item->valuestring, "%Y-%m-%dT%H:%M:%SZ", &parts)
				   : NULL;
	*time = timegm(&parts);
	return end && !*end;
}

static bool take_number(const cJSON *item, uint64_t *number)
{
	return cJSON_IsString(item) && number_parse(item->valuestring, 0, UINT64_MAX, number) == 0;
}

static bool take_share(const cJSON *item, struct review_record_share *share)
{
	uint64_t device = 0;
	bool good;

	share->host_path = take_text(cJSON_GetObjectItemCaseSensitive(item, "host"));
	share->upper = take_text(cJSON_GetObjectItemCaseSensitive(item, "upper"));
	share->base = take_text(cJSON_GetObjectItemCaseSensitive(item, "base"));
	good = take_number(cJSON_GetObjectItemCaseSensitive(item, "device"), &device) &&
	       take_number(cJSON_GetObjectItemCaseSensitive(item, "inode"), &share->inode);
	share->device = device;
	return good && share->host_path && share->host_path[0] == '/' && share->upper &&
	       share->base;
}

static bool take_record(const cJSON *root, struct review_record *record)
{
	const cJSON *item, *shares = cJSON_GetObjectItemCaseSensitive(root, "shares");
	const cJSON *status = cJSON_GetObjectItemCaseSensitive(root, "exit");

	if (!take_texts(root, "command", &record->command) ||
	    !take_texts(root, "hide", &record->hide) || !take_texts(root, "show", &record->show) ||
	    !take_texts(root, "protect", &record->protect) ||
	    !take_time(cJSON_GetObjectItemCaseSensitive(root, "started"), &record->started) ||
	    !take_time(cJSON_GetObjectItemCaseSensitive(root, "ended"), &record->ended) ||
	    !cJSON_IsArray(shares))
		return false;
	if (cJSON_IsNumber(status))
		record->exit_status = status->valueint;
	cJSON_ArrayForEach(item, shares)
	{
		if (record->share_count == LIMIT_SHARES)
			return false;
		if (!take_share(item, &record->shares[record->share_count++]))
			return false;
	}
	return true;
}

int review_record_read(struct review_record *record, int run_fd)
{
	int FD_CLEANUP fd = tree_open_file(run_fd, REVIEW_RUN_FILE);
	cJSON *root = NULL;
	struct stat status;
	int error = 0;
	char *text;

	*record = (struct review_record){0};
	if (fd < 0)
		return fd;
	if (fstat(fd, &status))
		return -errno;
	if (status.st_size > (off_t)LIMIT_REVIEW_FILE_BYTES)
		return -E2BIG;
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return -ENOMEM;
	error = fd_read_full(fd, text, (size_t)status.st_size);
	if (!error) {
		root = cJSON_ParseWithLength(text, (size_t)status.st_size);
		if (!root || !take_record(root, record))
			error = -EPROTO;
	}
	cJSON_Delete(root);
	free(text);
	return error;
}

static void free_texts(struct review_texts *texts)
{
	for (unsigned int i = 0; i < texts->count; i++)
		free(texts->texts[i]);
	free(texts->texts);
}

void review_record_destroy(struct review_record *record)
{
	free_texts(&record->command);
	free_texts(&record->hide);
	free_texts(&record->show);
	free_texts(&record->protect);
	for (unsigned int i = 0; i < record->share_count; i++) {
		free(record->shares[i].host_path);
		free(record->shares[i].upper);
		free(record->shares[i].base);
	}
	*record = (struct review_record){0};
}
