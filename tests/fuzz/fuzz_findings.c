/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says of a review's probes: any bytes at all. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/checklist/findings.h"

#define ITEMS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct findings findings;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (findings_read(&findings, ITEMS, "0123", text, size) == 0) {
		for (unsigned int i = 0; i < ITEMS; i++) {
			const struct finding *finding = findings_of(&findings, FINDINGS_ROOT, i);

			/* What is told has its bytes, and a zero behind them. */
			if (finding->told && finding->data[finding->length])
				abort();
		}
		findings_contain(&findings, "mark", 4);
	}
	findings_destroy(&findings);
	return 0;
}
