/* SPDX-License-Identifier: Apache-2.0 */
/* A record that somebody sent: any bytes. Nothing but a signature by the key makes it whole, and a
 * line that is named is in the file, or would come next. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/record/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Nobody's: no point of the curve that anybody has the secret of. */
	static const uint8_t key[KEY_BYTES] = {1};
	struct record_check check;

	if (record_verify(&check, (const char *)data, size, key))
		return 0;
	if (check.verdict == RECORD_WHOLE || !check.sentence[0])
		abort();
	if (check.verdict == RECORD_ALTERED && (!check.line || check.line > check.lines + 1))
		abort();
	return 0;
}
