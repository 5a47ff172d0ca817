/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which errors say that a host has no such wall, or none for this user: it is done without then, if
 * another holds. Any other (no memory, too many processes or files) is a failure: what could be had
 * a moment later must not be missing now.
 */
#ifndef MVAGENT_JAIL_UNAVAILABLE_H
#define MVAGENT_JAIL_UNAVAILABLE_H

#include <errno.h>
#include <stdbool.h>

/* @error: a negative errno of clone(2), unshare(2), mount(2), fsopen(2) and their kin. */
static inline bool jail_is_unavailable(int error)
{
	switch (-error) {
	case ENOSYS:     /* the kernel does not know the call, or a container hides it */
	case EINVAL:     /* or its flags: built without these namespaces */
	case ENODEV:     /* or the file system */
	case EOPNOTSUPP: /* it was not even tried */
	case EPERM:      /* a sysctl, a container's filter, a security module */
	case EACCES:     /* as above */
	case ENOSPC:     /* user.max_*_namespaces; EUSERS before Linux 4.9 */
	case EUSERS:
		return true;
	default:
		return false;
	}
}

#endif
