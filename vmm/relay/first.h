/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a connection by its first bytes. Here a connection is judged, before any byte of
 * it leaves; and here is the place for one that is not to be passed on as it is.
 */
#ifndef MVAGENT_RELAY_FIRST_H
#define MVAGENT_RELAY_FIRST_H

#include <stdbool.h>

#include "vmm/relay/policy.h"

enum first_verdict {
	FIRST_MORE,      /* too few bytes to tell */
	FIRST_PASS,      /* all bytes, these and those that follow, go to the server as they are */
	FIRST_TERMINATE, /* they go to mvagent-secret, which ends their TLS */
	FIRST_REFUSE,
};

#define FIRST_REASON_BYTES 512

/* Judges the first @length bytes to @host, a name in its one form or an address, and @port, which
 * are allowed. @over: no more will come. @reason gets why a connection is refused, as what follows
 * "example.com:443: ".
 * To an address anything may be said. To a name: TLS that asks for that very name; what is no TLS
 * to any port but 443, where nothing else is expected. */
enum first_verdict first_judge(const struct route_policy *policy, const char *host, bool is_address,
			       uint16_t port, const uint8_t *bytes, size_t length, bool over,
			       char reason[FIRST_REASON_BYTES]);

/* The same for a host that a secret is for: TLS that asks for that very name, and nothing else. */
enum first_verdict first_judge_secret(const char *host, const uint8_t *bytes, size_t length,
				      bool over, char reason[FIRST_REASON_BYTES]);

#endif
