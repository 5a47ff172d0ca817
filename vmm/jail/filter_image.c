/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <seccomp.h>

/* It opens nothing: archive and results are descriptors that it was given. */
const struct filter_rule filter_image[] = {
	FILTER_CALL(pread64), /* the archive, and what was unpacked of it */
	FILTER_CALL(pwrite64),  FILTER_CALL(copy_file_range), /* contents into the image */
	FILTER_CALL(ftruncate), FILTER_END,
};

const struct filter_rule filter_image_directory[] = {
	FILTER_CALL(pread64), /* as above */
	FILTER_CALL(pwrite64),   FILTER_CALL(copy_file_range), FILTER_CALL(ftruncate),
	FILTER_CALL(openat2), /* the directory, name by name */
	FILTER_CALL(getdents64), FILTER_CALL(statx),           FILTER_CALL(readlinkat),
	FILTER_CALL(flistxattr), FILTER_CALL(fgetxattr),       FILTER_END,
};
