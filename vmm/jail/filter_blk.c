/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <seccomp.h>

const struct filter_rule filter_blk[] = {
	FILTER_CALL(preadv2), /* the image, when it is in the page cache or there is no ring */
	FILTER_CALL(preadv),
	FILTER_CALL(pread64),
	FILTER_END,
};

const struct filter_rule filter_blk_host[] = {
	FILTER_CALL(preadv2), /* files of the host, as above */
	FILTER_CALL(preadv),  FILTER_CALL(pread64),
	FILTER_CALL(openat2), FILTER_CALL(statx), /* whether they changed */
	FILTER_END,
};
