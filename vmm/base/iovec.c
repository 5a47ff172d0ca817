/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/iovec.h"

unsigned int iovec_advance(struct iovec **vector, unsigned int count, size_t done)
{
	while (count && done >= (*vector)->iov_len) {
		done -= (*vector)->iov_len;
		(*vector)++;
		count--;
	}
	if (count) {
		(*vector)->iov_base = (char *)(*vector)->iov_base + done;
		(*vector)->iov_len -= done;
	}
	return count;
}
