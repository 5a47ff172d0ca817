/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/sign/request.h"

#include <string.h>

#include "vmm/sign/host_key.h"

#define USERAUTH_REQUEST 50 /* RFC 4252, 6 */

/* SSH_AGENT_RSA_SHA2_256 and _512. */
#define SIGN_FLAGS (2U | 4U)

static const struct sign_rule *find_host(const struct sign_policy *policy, struct bytes host_key)
{
	for (uint32_t i = 0; i < policy->count; i++) {
		if (sign_rule_knows(&policy->rules[i], host_key))
			return &policy->rules[i];
	}
	return NULL;
}

static struct bytes host_key_of(const struct sign_session *session)
{
	return (struct bytes){session->host_key.bytes, session->host_key.length};
}

/* Of a log-in: text without blanks, whole in what is told of it. A name that has words in it could
 * say that another was signed for. */
static bool is_user(struct bytes user)
{
	bool plain = user.length && user.length <= LIMIT_SIGN_USER_BYTES;

	for (size_t i = 0; plain && i < user.length; i++)
		plain = user.data[i] > ' ' && user.data[i] != 0x7f;
	return plain;
}

static enum sign_action refuse(struct sign_request *request, const char *why)
{
	request->why = why;
	return SIGN_REFUSE;
}

/* string host key, string session identifier, string signature, bool is forwarding */
static enum sign_action read_bind(const struct sign_policy *policy, struct sign_session *session,
				  struct reader *reader, struct sign_request *request)
{
	struct bytes key = reader_string(reader), id = reader_string(reader);
	struct bytes signature = reader_string(reader);
	const uint8_t forwarding = reader_byte(reader);

	if (!reader_is_done(reader) || !id.length || id.length > sizeof(session->id) ||
	    !key.length || key.length > sizeof(session->host_key.bytes))
		return refuse(request, "what it says of its connection makes no sense");
	if (forwarding)
		return refuse(request, "it would pass the agent on to the server");
	if (session->bound)
		return refuse(request, "it has said already which server it speaks to");
	if (!find_host(policy, key))
		return refuse(request, "its server is none of those of --ssh-agent: it has a key "
				       "that your known_hosts does not have for them");
	if (!host_key_verify(key, signature, id))
		return refuse(request, "its server has not signed the connection");
	memcpy(session->id, id.data, id.length);
	session->id_length = (uint32_t)id.length;
	memcpy(session->host_key.bytes, key.data, key.length);
	session->host_key.length = (uint32_t)key.length;
	session->bound = true;
	return SIGN_BIND;
}

/* What is to be signed must be a log-in to that server in that session, with that key (RFC 4252,
 * 7), or one that names the server's key as well (OpenSSH's PROTOCOL, 1.11). */
static bool is_login(const struct sign_session *session, struct sign_request *request)
{
	struct reader reader = {.rest = request->data};
	struct bytes id = reader_string(&reader);
	const uint8_t type = reader_byte(&reader);
	struct bytes user = reader_string(&reader), service = reader_string(&reader);
	struct bytes method = reader_string(&reader);
	const uint8_t has_signature = reader_byte(&reader);
	struct bytes algorithm = reader_string(&reader), key = reader_string(&reader);
	const bool names_host = bytes_equal_text(method, "publickey-hostbound-v00@openssh.com");
	struct bytes host_key = names_host ? reader_string(&reader) : host_key_of(session);

	bytes_copy_text(user, request->user, sizeof(request->user));
	return reader_is_done(&reader) && algorithm.length && is_user(user) &&
	       bytes_equal(id, (struct bytes){session->id, session->id_length}) &&
	       type == USERAUTH_REQUEST && bytes_equal_text(service, "ssh-connection") &&
	       (names_host || bytes_equal_text(method, "publickey")) && has_signature == 1 &&
	       bytes_equal(key, request->key) && bytes_equal(host_key, host_key_of(session));
}

/* string key, string data, uint32 flags */
static enum sign_action read_sign(const struct sign_session *session, struct reader *reader,
				  struct sign_request *request)
{
	request->key = reader_string(reader);
	request->data = reader_string(reader);
	request->flags = reader_uint32(reader);
	if (!reader_is_done(reader) || !request->key.length || request->flags & ~SIGN_FLAGS)
		return refuse(request, "what it wants signed makes no sense");
	if (!session->bound)
		return refuse(request, "it has not shown which server it speaks to (OpenSSH 8.9 "
				       "and later do)");
	if (!is_login(session, request))
		return refuse(request, "it is no log-in to the server that it speaks to");
	return SIGN_SIGN;
}

enum sign_action sign_request_read(const struct sign_policy *policy, struct sign_session *session,
				   struct bytes message, struct sign_request *request)
{
	struct reader reader = {.rest = message};
	const uint8_t type = reader_byte(&reader);

	*request = (struct sign_request){0};
	switch (type) {
	case SIGN_REQUEST_IDENTITIES:
		return reader_is_done(&reader) ? SIGN_LIST : SIGN_REFUSE;
	case SIGN_SIGN_REQUEST:
		return read_sign(session, &reader, request);
	case SIGN_EXTENSION:
		/* Clients ask for others to see what there is: no news. */
		if (!bytes_equal_text(reader_string(&reader), "session-bind@openssh.com"))
			return SIGN_REFUSE;
		return read_bind(policy, session, &reader, request);
	default:
		return refuse(request, "it asked for something else than a signature");
	}
}

const struct sign_rule *sign_find_rule(const struct sign_policy *policy,
				       const struct sign_session *session, struct bytes key,
				       struct bytes comment)
{
	for (uint32_t i = 0; i < policy->count; i++) {
		const struct sign_rule *rule = &policy->rules[i];

		if (sign_rule_covers(rule, key, comment) &&
		    (!session->bound || sign_rule_knows(rule, host_key_of(session))))
			return rule;
	}
	return NULL;
}

/* Begins to read a list: how many keys it says it has. */
static uint32_t begin_list(struct reader *reader)
{
	if (reader_byte(reader) != SIGN_IDENTITIES)
		reader->failed = true;
	return reader_uint32(reader);
}

bool sign_find_key(struct bytes list, struct bytes key, struct bytes *comment)
{
	struct reader reader = {.rest = list};
	uint32_t count = begin_list(&reader);

	for (; count && !reader.failed; count--) {
		struct bytes one = reader_string(&reader);

		*comment = reader_string(&reader);
		if (!reader.failed && bytes_equal(one, key))
			return true;
	}
	return false;
}

size_t sign_filter_list(const struct sign_policy *policy, const struct sign_session *session,
			struct bytes list, uint8_t *filtered)
{
	struct reader reader = {.rest = list};
	uint32_t count = begin_list(&reader), left = 0;
	uint8_t *to = filtered + 5;

	for (; count && !reader.failed; count--) {
		struct bytes key = reader_string(&reader), comment = reader_string(&reader);

		if (reader.failed || !sign_find_rule(policy, session, key, comment))
			continue;
		to = put_string(to, key);
		to = put_string(to, comment);
		left++;
	}
	if (!reader_is_done(&reader))
		return 0;
	filtered[0] = SIGN_IDENTITIES;
	put_uint32(filtered + 1, left);
	return (size_t)(to - filtered);
}
