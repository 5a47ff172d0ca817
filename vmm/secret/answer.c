/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/answer.h"

#include <string.h>

#define STATUS_LINE_BYTES 12 /* "HTTP/1.1 200" */

static int read_status(const char *line)
{
	const char *digits = line + 9;

	if (memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
		return -1;
	for (int i = 0; i < 3; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return -1;
	}
	return 100 * (digits[0] - '0') + 10 * (digits[1] - '0') + digits[2] - '0';
}

int answer_read(struct answer *answer, const void *bytes, size_t length)
{
	const char *at = bytes;

	for (size_t i = 0; i < length && answer->status == 0; i++) {
		if (!answer->in_fields) {
			answer->line[answer->length++] = at[i];
			if (answer->length < STATUS_LINE_BYTES)
				continue;
			answer->status = read_status(answer->line);
			/* Others come before the final one (RFC 9110, 15.2): on to its end. */
			if (answer->status >= 100 && answer->status < 200 &&
			    answer->status != 101) {
				answer->status = 0;
				answer->in_fields = true;
			}
			continue;
		}
		if (at[i] == '\n')
			answer->line_ends++;
		else if (at[i] != '\r')
			answer->line_ends = 0;
		if (answer->line_ends == 2)
			*answer = (struct answer){0};
	}
	return answer->status;
}
