/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says to the host's ssh-agent, and what an agent lists. The first byte: whether the
 * session is bound, to a server of which only the key's beginning is known. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/sign/host_key.h"
#include "vmm/sign/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char host_key[] = "\0\0\0\x0bssh-ed25519\0\0\0\x20"
			       "0123456789abcdef0123456789abcdef";

static void check_request(const struct sign_policy *policy, struct sign_session *session,
			  struct bytes message)
{
	const bool was_bound = session->bound;
	struct sign_request request;
	const enum sign_action action = sign_request_read(policy, session, message, &request);

	/* Nobody has that server's private key. */
	if (action == SIGN_BIND || session->bound != was_bound)
		abort();
	if (action == SIGN_SIGN &&
	    (!was_bound || !request.key.length || request.key.data < message.data ||
	     request.data.data + request.data.length > message.data + message.length))
		abort();
}

static void check_list(const struct sign_policy *policy, const struct sign_session *session,
		       struct bytes list)
{
	uint8_t *filtered = malloc(list.length + 5), *again = malloc(list.length + 5);
	size_t length = filtered && again ? sign_filter_list(policy, session, list, filtered) : 0;
	struct bytes comment;

	if (length > list.length)
		abort();
	/* What was let through is a list, and all of it is let through again. */
	if (length &&
	    (sign_filter_list(policy, session, (struct bytes){filtered, length}, again) != length ||
	     memcmp(filtered, again, length) != 0))
		abort();
	sign_find_key(list, (struct bytes){(const uint8_t *)host_key, 4}, &comment);
	free(filtered);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sign_policy policy;
	struct sign_rule *rule = &policy.rules[0];
	struct sign_session session = {0};
	struct bytes message = {data + 1, size - 1};

	if (!size)
		return 0;
	policy.count = 1;
	strcpy(rule->pattern, "ada*");
	strcpy(rule->host, "git.test");
	rule->port = 22;
	rule->host_key_count = 1;
	rule->host_keys[0].length = sizeof(host_key) - 1;
	memcpy(rule->host_keys[0].bytes, host_key, sizeof(host_key) - 1);
	if (data[0] & 1) {
		session.bound = true;
		session.id_length = 32;
		memset(session.id, 0x5a, 32);
		session.host_key = rule->host_keys[0];
	}
	check_request(&policy, &session, message);
	check_list(&policy, &session, message);
	/* As key, signature and data of each other. */
	host_key_verify(message, message, message);
	return 0;
}
