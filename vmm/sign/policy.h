/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys of the host's ssh-agent may be used to log in where: --ssh-agent. */
#ifndef MVAGENT_SIGN_POLICY_H
#define MVAGENT_SIGN_POLICY_H

#include "vmm/base/limits.h"
#include "vmm/sign/reader.h"

#define SIGN_HOST_BYTES 256

struct sign_key {
	uint32_t length;
	uint8_t bytes[LIMIT_SIGN_KEY_BYTES]; /* a public key as SSH has it */
};

struct sign_rule {
	char pattern[LIMIT_SIGN_PATTERN_BYTES + 1]; /* of a comment, or a fingerprint */
	char host[SIGN_HOST_BYTES];                 /* in its one form */
	uint16_t port;
	uint32_t host_key_count;
	struct sign_key host_keys[LIMIT_SIGN_HOST_KEYS]; /* that the user knows it by */
};

/* Zero before use. */
struct sign_policy {
	uint32_t count;
	struct sign_rule rules[LIMIT_SIGN_RULES];
};

/* Whether the rule is about a key with this comment: the pattern is like a file's (fnmatch(3)), and
 * "SHA256:..." the key itself. */
bool sign_rule_covers(const struct sign_rule *rule, struct bytes key, struct bytes comment);

/* Whether the rule's host is known by @host_key. */
bool sign_rule_knows(const struct sign_rule *rule, struct bytes host_key);

/* Writes it to a sealed file in memory: its descriptor, or -errno. */
int sign_policy_write(const struct sign_policy *policy);

/* Reads such a file. 0 or -errno. */
int sign_policy_read(struct sign_policy *policy, int fd);

#endif
