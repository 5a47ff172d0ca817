/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the servers of the shares report for the record. A server speaks with the guest and may be
 * the guest's by now: its words are decoded with that in mind (vmm/wire/fs_report.h), written as
 * its words, and bounded as the record bounds everything.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/sha256.h"
#include "vmm/cli/supervisor_events.h"
#include "vmm/record/canonical.h"
#include "vmm/wire/fs_report.h"

/* Taken in at once: a server that floods must not keep the supervisor from all else. */
#define REPORTS_AT_ONCE 64

/* Of a path. */
#define TEXT_LIMIT FS_REPORT_TEXT_BYTES

static cJSON *make_line(const struct supervisor *supervisor, unsigned int index)
{
	cJSON *line = cJSON_CreateObject();

	cJSON_AddItemToObject(line, "share",
			      canonical_text(supervisor->share_paths[index], TEXT_LIMIT));
	return line;
}

static void add_mode(cJSON *line, const char *name, uint32_t mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%06o", mode & 0177777);
	cJSON_AddStringToObject(line, name, text);
}

static void add_hash(cJSON *line, const char *name, const uint8_t hash[SHA256_BYTES], bool known)
{
	char text[SHA256_HEX_SIZE];

	sha256_format(hash, text);
	if (known)
		cJSON_AddStringToObject(line, name, text);
	else
		cJSON_AddNullToObject(line, name);
}

static cJSON *change_line(cJSON *line, const struct fs_report *report)
{
	static const char *const names[FS_CHANGES] = {
		[FS_CHANGE_CREATED] = "created", [FS_CHANGE_CHANGED] = "changed",
		[FS_CHANGE_DELETED] = "deleted", [FS_CHANGE_RENAMED] = "renamed",
		[FS_CHANGE_MODE] = "mode",
	};

	cJSON_AddStringToObject(line, "change", names[report->kind]);
	cJSON_AddItemToObject(line, "path", canonical_text(report->path, TEXT_LIMIT));
	if (*report->other)
		cJSON_AddItemToObject(line, "from", canonical_text(report->other, TEXT_LIMIT));
	if (report->flags & FS_REPORT_BEFORE) {
		add_mode(line, "before_mode", report->mode_before);
		canonical_add_count(line, "before_size", (double)report->size_before);
		add_hash(line, "before_sha256", report->hash_before,
			 report->flags & FS_REPORT_HASH_BEFORE);
	}
	if (report->flags & FS_REPORT_AFTER) {
		add_mode(line, "after_mode", report->mode_after);
		canonical_add_count(line, "after_size", (double)report->size_after);
		add_hash(line, "after_sha256", report->hash_after,
			 report->flags & FS_REPORT_HASH_AFTER);
	}
	return line;
}

static cJSON *refusal_line(cJSON *line, const struct fs_report *report)
{
	cJSON_AddItemToObject(line, "path", canonical_text(report->path, TEXT_LIMIT));
	cJSON_AddItemToObject(line, "rule", canonical_text(report->other, TEXT_LIMIT));
	cJSON_AddBoolToObject(line, "hidden", report->flags & FS_REPORT_HIDDEN);
	canonical_add_count(line, "count", (double)report->counts[0]);
	return line;
}

static cJSON *finding_line(cJSON *line, const struct fs_report *report)
{
	static const char *const names[FS_FINDINGS] = {
		[FS_FINDING_REPOSITORY] = "repository",
		[FS_FINDING_EXECUTABLE] = "executable",
		[FS_FINDING_BUILD] = "build-file",
	};

	cJSON_AddStringToObject(line, "finding", names[report->kind]);
	cJSON_AddItemToObject(line, "path", canonical_text(report->path, TEXT_LIMIT));
	return line;
}

static cJSON *share_line(cJSON *line, const struct fs_report *report)
{
	static const char *const names[FS_COUNTS] = {
		[FS_COUNT_HIDDEN] = "hidden",
		[FS_COUNT_PROTECTED] = "protected",
		[FS_COUNT_MADE] = "made",
		[FS_COUNT_REMOVED] = "removed",
		[FS_COUNT_MOVED] = "moved",
		[FS_COUNT_OPENED] = "opened_to_change",
		[FS_COUNT_MODES] = "modes_changed",
		[FS_COUNT_UNTOLD] = "untold",
		[FS_COUNT_EXECUTABLES] = "executables",
		[FS_COUNT_REFUSALS] = "refusals",
		[FS_COUNT_ERRORS] = "errors",
		[FS_COUNT_INVALID] = "invalid",
		[FS_COUNT_FULL] = "bounds_hit",
	};

	for (unsigned int i = 0; i < FS_COUNTS; i++)
		canonical_add_count(line, names[i], (double)report->counts[i]);
	return line;
}

static void note(struct supervisor *supervisor, unsigned int index, const char *text)
{
	cJSON *line = make_line(supervisor, index);

	cJSON_AddStringToObject(line, "notice", text);
	record_event(supervisor->record, RECORD_NOTICE, line);
}

/* Its last word: from here on the record knows all that the share's server has to tell. */
static void end_share(struct supervisor *supervisor, unsigned int index,
		      const struct fs_report *report)
{
	struct record *record = supervisor->record;

	supervisor->report_ended[index] = true;
	record_event(record, RECORD_SHARE, share_line(make_line(supervisor, index), report));
	record_count(record, RECORD_CHANGE, report->counts[FS_COUNT_UNTOLD]);
	if (report->counts[FS_COUNT_FULL]) {
		cJSON *line = make_line(supervisor, index);

		cJSON_AddStringToObject(line, "limit", "files");
		canonical_add_count(line, "count", (double)report->counts[FS_COUNT_FULL]);
		record_event(record, RECORD_LIMIT, line);
	}
}

static void serve(struct supervisor *supervisor, unsigned int index, const struct fs_report *report)
{
	struct record *record = supervisor->record;

	switch (report->type) {
	case FS_REPORT_WALLS:
		supervisor->processes[2 + index].walls = (uint8_t)report->counts[0];
		supervisor->processes[2 + index].walls_told = true;
		break;
	case FS_REPORT_CHANGE:
		record_event(record, RECORD_CHANGE,
			     change_line(make_line(supervisor, index), report));
		break;
	case FS_REPORT_REFUSAL:
		record_event(record, RECORD_REFUSAL,
			     refusal_line(make_line(supervisor, index), report));
		break;
	case FS_REPORT_FINDING:
		record_event(record, RECORD_FINDING,
			     finding_line(make_line(supervisor, index), report));
		break;
	default:
		end_share(supervisor, index, report);
		break;
	}
}

void supervisor_read_reports(struct supervisor *supervisor, unsigned int index)
{
	int *fd = &supervisor->report_fds[index];
	uint8_t bytes[FS_REPORT_BYTES + 1];
	struct fs_report report;

	for (int i = 0; i < REPORTS_AT_ONCE && *fd >= 0; i++) {
		ssize_t length = recv(*fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return;
		if (length <= 0 || supervisor->report_ended[index]) {
			fd_close(fd);
		} else if (fs_report_decode(&report, bytes, (size_t)length)) {
			note(supervisor, index,
			     "the share's server sent what is no report; nothing more is taken");
			fd_close(fd);
		} else {
			serve(supervisor, index, &report);
		}
	}
}

void supervisor_end_reports(struct supervisor *supervisor)
{
	for (unsigned int i = 0; i < LIMIT_SHARES; i++) {
		bool expected = supervisor->share_paths[i] && supervisor->record;

		while (supervisor->report_fds[i] >= 0) {
			struct pollfd more = {.fd = supervisor->report_fds[i], .events = POLLIN};

			if (poll(&more, 1, 0) <= 0)
				fd_close(&supervisor->report_fds[i]);
			else
				supervisor_read_reports(supervisor, i);
		}
		if (expected && !supervisor->report_ended[i])
			note(supervisor, i,
			     "the share's server ended before it had told what was changed");
	}
}
