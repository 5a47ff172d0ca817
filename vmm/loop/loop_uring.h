/* SPDX-License-Identifier: Apache-2.0 */
/* The io_uring back end's own state; private to it and to its tests. */
#ifndef MVAGENT_LOOP_LOOP_URING_H
#define MVAGENT_LOOP_LOOP_URING_H

#include <liburing.h>

#include "vmm/loop/loop_internal.h"

struct loop_uring {
	struct loop loop;
	struct io_uring ring;
};

#endif
