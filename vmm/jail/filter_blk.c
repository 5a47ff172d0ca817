/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <seccomp.h>

const struct filter_rule filter_blk[] = {
	FILTER_CALL(preadv2), /* the image, when it is in the page cache or there is no ring */
	FILTER_CALL(preadv),
	FILTER_CALL(pread64),
	FILTER_END,
};
