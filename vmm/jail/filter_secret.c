/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <seccomp.h>

/* It opens nothing and connects to nothing: both ends of each connection are handed to it. */
const struct filter_rule filter_secret[] = {
	FILTER_CALL(shutdown),     /* one direction of a connection */
	FILTER_CALL(gettimeofday), /* where the clock cannot be read without the kernel */
	FILTER_END,
};
