/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_FS_PRIVILEGE_H
#define MVAGENT_FS_PRIVILEGE_H

/*
 * Started by root, the server may pass by file modes and owners, as root's own commands may. All
 * else that root can do it gives up: device nodes, trusted and security attributes, immutable
 * files; and without CAP_FSETID the kernel takes set-id bits off a file that the guest writes to,
 * as INIT promised (HANDLE_KILLPRIV_V2). Without privileges there is nothing to drop.
 * Returns 0 or -errno, with the sentence printed.
 */
int fs_drop_capabilities(void);

#endif
