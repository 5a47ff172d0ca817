/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the guest's to the host's ssh-agent, one request after the other. */
#ifndef MVAGENT_SIGN_SERVER_H
#define MVAGENT_SIGN_SERVER_H

#include "vmm/sign/policy.h"

struct sign_plan {
	const struct sign_policy *policy;
	int relay_fd; /* to mvagent-relay, which hands connections over */
	int event_fd; /* to the supervisor */
	int agent_fd; /* to the host's agent */
};

/* Serves until mvagent-relay is gone. 0 or -errno. */
int sign_serve(const struct sign_plan *plan);

#endif
