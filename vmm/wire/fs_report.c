/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/fs_report.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* On the wire the texts follow each other, without their ends. */
#define HEAD_BYTES offsetof(struct fs_report, path)

struct lengths {
	uint16_t path;
	uint16_t other;
};

size_t fs_report_encode(const struct fs_report *report, uint8_t *bytes)
{
	struct lengths lengths = {
		.path = (uint16_t)strnlen(report->path, FS_REPORT_TEXT_BYTES),
		.other = (uint16_t)strnlen(report->other, FS_REPORT_TEXT_BYTES),
	};
	uint8_t *at = mempcpy(bytes, report, HEAD_BYTES);

	at = mempcpy(at, &lengths, sizeof(lengths));
	at = mempcpy(at, report->path, lengths.path);
	at = mempcpy(at, report->other, lengths.other);
	return (size_t)(at - bytes);
}

static bool has_path(uint32_t type)
{
	return type == FS_REPORT_CHANGE || type == FS_REPORT_REFUSAL || type == FS_REPORT_FINDING;
}

static bool is_good(const struct fs_report *report)
{
	uint32_t kinds = report->type == FS_REPORT_CHANGE    ? FS_CHANGES
			 : report->type == FS_REPORT_FINDING ? FS_FINDINGS
							     : 1;

	return report->type >= FS_REPORT_WALLS && report->type < FS_REPORT_TYPES &&
	       report->kind < kinds && !report->zero && !(report->flags & ~FS_REPORT_FLAGS) &&
	       (*report->path != '\0') == has_path(report->type);
}

int fs_report_decode(struct fs_report *report, const uint8_t *bytes, size_t length)
{
	const size_t head = HEAD_BYTES + sizeof(struct lengths);
	struct lengths lengths;

	if (length < head)
		return -EPROTO;
	memset(report, 0, sizeof(*report));
	memcpy(report, bytes, HEAD_BYTES);
	memcpy(&lengths, bytes + HEAD_BYTES, sizeof(lengths));
	if (lengths.path > FS_REPORT_TEXT_BYTES || lengths.other > FS_REPORT_TEXT_BYTES ||
	    length != head + lengths.path + lengths.other ||
	    memchr(bytes + head, '\0', length - head))
		return -EPROTO;
	memcpy(report->path, bytes + head, lengths.path);
	memcpy(report->other, bytes + head + lengths.path, lengths.other);
	return is_good(report) ? 0 : -EPROTO;
}
