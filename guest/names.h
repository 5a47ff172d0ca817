/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest and its user are called. */
#ifndef GUEST_NAMES_H
#define GUEST_NAMES_H

#include "guest/message.h"

/* Sets the host name and writes /etc/hostname, /etc/hosts and an /etc/resolv.conf that leads to the
 * guest's own resolver. 0 or -errno with @failure filled in. */
int names_set_host(const char *host_name, struct failure *failure);

/* Enters the user into /etc/passwd and the group into /etc/group. 0 or -errno with @failure filled
 * in. */
int names_add_user(const struct session_start *start, struct failure *failure);

#endif
