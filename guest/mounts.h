/* SPDX-License-Identifier: Apache-2.0 */
/* The file systems of the guest, from initramfs to the command's root. */
#ifndef GUEST_MOUNTS_H
#define GUEST_MOUNTS_H

#include "guest/message.h"

/* Mounts the kernel's device nodes at /dev of the initramfs. 0 or -errno. */
int mounts_open_devices(void);

/* Mounts the root image, read-only, where mounts_enter_root expects it. 0 or -errno with @failure
 * filled in. */
int mounts_open_image(struct failure *failure);

/* Lays a writable layer in memory over the image, mounts what programs expect of a Linux system,
 * and makes the result the root of this process. @memory is the most that all files in memory may
 * take, as tmpfs understands it: bytes, or percent of RAM. 0 or -errno with @failure filled in. */
int mounts_enter_root(const char *memory, struct failure *failure);

#endif
