/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the host. */
#ifndef GUEST_VSOCK_H
#define GUEST_VSOCK_H

/* Starts to connect to @port of the host. Returns a non-blocking socket, or -errno. */
int vsock_connect_begin(unsigned int port);

/* Waits until the connection stands. 0 or -errno; the socket stays the caller's. */
int vsock_connect_finish(int fd);

#endif
