/* SPDX-License-Identifier: Apache-2.0 */
/* The other ends of the guest's vsock ports (vmm/wire/selftest.h). */
#ifndef MVAGENT_CLI_SELFTEST_PEERS_H
#define MVAGENT_CLI_SELFTEST_PEERS_H

#include <poll.h>
#include <stdint.h>

#include "vmm/wire/selftest.h"

#define SELFTEST_PORTS (SELFTEST_ECHO_PORT + SELFTEST_ECHO_PORTS - SELFTEST_SINK_PORT)

struct selftest_peers {
	int ours[SELFTEST_PORTS]; /* of the port SELFTEST_SINK_PORT and on; -1: closed */
	int theirs[SELFTEST_PORTS];
};

void selftest_peers_init(struct selftest_peers *peers);

/* Makes the sockets. 0 or -errno. Destroy in every case. */
int selftest_peers_create(struct selftest_peers *peers);
void selftest_peers_destroy(struct selftest_peers *peers);

/* Closes the machine's ends, once it has them. */
void selftest_peers_hand_over(struct selftest_peers *peers);

/* What to wait for, SELFTEST_PORTS entries, and what to do when it comes. */
void selftest_peers_fill_poll(const struct selftest_peers *peers, struct pollfd *polled);
void selftest_peers_serve(struct selftest_peers *peers, const struct pollfd *polled);

/* Ends the stream that nobody reads, which would keep a machine from its end for a while. */
void selftest_peers_end_stuck(struct selftest_peers *peers);

#endif
