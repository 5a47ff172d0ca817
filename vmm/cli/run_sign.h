/* SPDX-License-Identifier: Apache-2.0 */
/* --ssh-agent: log-ins of the guest's that the user's ssh-agent signs. */
#ifndef MVAGENT_CLI_RUN_SIGN_H
#define MVAGENT_CLI_RUN_SIGN_H

#include "vmm/relay/policy.h"
#include "vmm/sign/policy.h"

/* Of a host for which none is given. */
#define SSH_PORT 22U

/* Zero before use. */
struct run_sign {
	struct sign_policy *policy; /* NULL: none */
	const char *known_hosts;    /* a file; NULL: the user's own and the system's */
	char *guest_lines;          /* of a known_hosts file for the guest; allocated */
};

/* Whether the options make sense together. 0 or -EINVAL with the sentence printed. */
int run_sign_check(const struct run_sign *sign);

/* KEY@HOST[:PORT]. Also allows the host. 0 or -errno with the sentence printed. */
int run_sign_add(struct run_sign *sign, struct route_policy *policy, const char *value);

/* Finds the hosts' keys in the user's known_hosts, and writes .guest_lines. 0 or -errno with the
 * sentence printed. */
int run_sign_prepare(struct run_sign *sign);

/* Takes the keys of a host out of lines of known_hosts, as `ssh-keygen -F` prints them: without
 * those that are revoked, certificates' authorities, and what is no key. Returns their count. */
uint32_t run_sign_read_keys(char *lines, struct sign_rule *rule);

/* Connects to the user's ssh-agent. A descriptor, or -errno with the sentence printed. */
int run_sign_open_agent(void);

void run_sign_free(struct run_sign *sign);

#endif
