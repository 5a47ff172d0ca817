/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client in the guest asks the agent (draft-ietf-sshm-ssh-agent), and what is let through:
 *
 *   - the list of keys, less those that no rule covers;
 *   - session-bind@openssh.com (OpenSSH's PROTOCOL.agent, 1): the server's signature over the key
 *     exchange proves which server the client speaks to. Once for each connection;
 *   - a signature to log in there (RFC 4252, 7), in that very session, with a key that a rule
 * covers for that server.
 *
 * Nothing else, whatever it is. Pure.
 */
#ifndef MVAGENT_SIGN_REQUEST_H
#define MVAGENT_SIGN_REQUEST_H

#include "vmm/sign/policy.h"

/* Messages begin with one of these. */
enum sign_message {
	SIGN_FAILURE = 5,
	SIGN_SUCCESS = 6,
	SIGN_REQUEST_IDENTITIES = 11,
	SIGN_IDENTITIES = 12,
	SIGN_SIGN_REQUEST = 13,
	SIGN_SIGNATURE = 14,
	SIGN_EXTENSION = 27,
};

/* What is known of a connection. Zero before use. */
struct sign_session {
	bool bound;
	uint32_t id_length;
	uint8_t id[LIMIT_SIGN_SESSION_BYTES];
	struct sign_key host_key;
};

enum sign_action {
	SIGN_REFUSE, /* .why says so, if it is to be told */
	SIGN_LIST,
	SIGN_BIND, /* done already */
	SIGN_SIGN, /* .key is to sign .data with .flags, if a rule covers it */
};

/* Points into the message. */
struct sign_request {
	const char *why; /* NULL: nothing to tell */
	struct bytes key, data;
	uint32_t flags;
	char user[LIMIT_SIGN_USER_BYTES + 1]; /* who logs in */
};

/* Reads a message (without its length), and binds the session. */
enum sign_action sign_request_read(const struct sign_policy *policy, struct sign_session *session,
				   struct bytes message, struct sign_request *request);

/* The rule by which a key with this comment may be used in the session; before it is bound, by any.
 * NULL: none. */
const struct sign_rule *sign_find_rule(const struct sign_policy *policy,
				       const struct sign_session *session, struct bytes key,
				       struct bytes comment);

/* Looks for a key in an agent's list; @comment gets what it says of it. Whether it is there. */
bool sign_find_key(struct bytes list, struct bytes key, struct bytes *comment);

/* Writes the list without the keys that may not be used; @filtered has room for all of it. Returns
 * its length, or 0 when it is no list. */
size_t sign_filter_list(const struct sign_policy *policy, const struct sign_session *session,
			struct bytes list, uint8_t *filtered);

#endif
