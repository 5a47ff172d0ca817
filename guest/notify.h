/* SPDX-License-Identifier: Apache-2.0 */
/* What the host changed in the shares, made known to the guest's kernel. */
#ifndef GUEST_NOTIFY_H
#define GUEST_NOTIFY_H

#include "guest/shares.h"

/*
 * Starts a process for each share that connects to the host and feeds its records to the kernel
 * (vmm/wire/notify.h), until the session's end kills it. Processes, because the kernel may keep a
 * feeder waiting for a lock, and the session must not wait with it. Does nothing for a share whose
 * records the kernel cannot take: mvagent-fs then lets the guest cache for a second only.
 */
void notify_start(const struct shares *shares);

/*
 * A feeder's work: sends READY on the blocking socket @stream, then feeds the records that come to
 * the open directory @share. Returns when the stream ends (0) or breaks (-errno), after having told
 * the kernel that anything may be out of date now.
 */
int notify_feed(int stream, int share);

#endif
