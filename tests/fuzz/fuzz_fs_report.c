/* SPDX-License-Identifier: Apache-2.0 */
/* A message of the share's server, which may be the guest's by now. What is accepted has texts that
 * end, names of kinds that exist, and one encoding only. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/wire/fs_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[FS_REPORT_BYTES];
	static struct fs_report report;

	if (fs_report_decode(&report, data, size))
		return 0;
	if (strnlen(report.path, sizeof(report.path)) > FS_REPORT_TEXT_BYTES ||
	    strnlen(report.other, sizeof(report.other)) > FS_REPORT_TEXT_BYTES ||
	    report.type >= FS_REPORT_TYPES ||
	    (report.type == FS_REPORT_CHANGE && report.kind >= FS_CHANGES) ||
	    (report.type == FS_REPORT_FINDING && report.kind >= FS_FINDINGS))
		abort();
	if (fs_report_encode(&report, bytes) != size || memcmp(bytes, data, size) != 0)
		abort();
	return 0;
}
