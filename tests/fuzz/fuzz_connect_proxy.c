/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to the guest's proxy. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/connect_proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connect_proxy_target target = {0}, again = {0};
	int result = connect_proxy_read((const char *)data, size, &target);

	if (result > (int)size ||
	    (result < 0 && result != -400 && result != -431 && result != -501))
		abort();
	if (result <= 0)
		return 0;
	if (!target.port || !target.name[0] || strlen(target.name) > RELAY_NAME_BYTES)
		abort();
	/* What follows the head does not matter to it. */
	if (connect_proxy_read((const char *)data, (size_t)result, &again) != result ||
	    strcmp(target.name, again.name) != 0 || target.port != again.port)
		abort();
	return 0;
}
