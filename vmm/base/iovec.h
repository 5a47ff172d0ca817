/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of buffers that are transferred piece by piece. */
#ifndef MVAGENT_BASE_IOVEC_H
#define MVAGENT_BASE_IOVEC_H

#include <stddef.h>
#include <sys/uio.h>

/* Takes the first @done bytes off the @count buffers at *@vector, which is changed in place and
 * moved past those that are used up; more than there are takes off all. Returns how many buffers
 * are left: the first of them is not empty. */
unsigned int iovec_advance(struct iovec **vector, unsigned int count, size_t done);

#endif
