/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a server and of a user, and what SSH's clients say to an agent. */
#ifndef TESTS_UNIT_SIGN_FIXTURE_H
#define TESTS_UNIT_SIGN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "vmm/sign/request.h"

#define TEXT(text) ((struct bytes){(const uint8_t *)(text), sizeof(text) - 1})

/* Bytes that are being written. */
struct message {
	size_t length;
	uint8_t data[8192];
};

static inline struct bytes message_bytes(const struct message *message)
{
	return (struct bytes){message->data, message->length};
}

static inline void add_byte(struct message *message, unsigned int value)
{
	message->data[message->length++] = (uint8_t)value;
}

static inline void add_uint32(struct message *message, uint32_t value)
{
	put_uint32(message->data + message->length, value);
	message->length += 4;
}

static inline void add_string(struct message *message, struct bytes string)
{
	assert_true(message->length + 4 + string.length <= sizeof(message->data));
	put_string(message->data + message->length, string);
	message->length += 4 + string.length;
}

/* An Ed25519 key, and its public half as SSH has it. */
struct test_key {
	EVP_PKEY *key;
	struct message blob;
};

static inline void test_key_make(struct test_key *made)
{
	uint8_t raw[32];
	size_t length = sizeof(raw);

	made->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_non_null(made->key);
	assert_int_equal(EVP_PKEY_get_raw_public_key(made->key, raw, &length), 1);
	made->blob.length = 0;
	add_string(&made->blob, TEXT("ssh-ed25519"));
	add_string(&made->blob, (struct bytes){raw, length});
}

static inline void test_key_sign(const struct test_key *key, struct bytes data,
				 struct message *signature)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint8_t raw[64];
	size_t length = sizeof(raw);

	assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, key->key), 1);
	assert_int_equal(EVP_DigestSign(context, raw, &length, data.data, data.length), 1);
	EVP_MD_CTX_free(context);
	signature->length = 0;
	add_string(signature, TEXT("ssh-ed25519"));
	add_string(signature, (struct bytes){raw, length});
}

/* A session of the server's, and one of its rules. */
struct sign_fixture {
	struct sign_policy policy;
	struct sign_session session;
	struct test_key server, other_server, user, other_user;
	uint8_t id[32];
};

static inline struct bytes fixture_id(const struct sign_fixture *f)
{
	return (struct bytes){f->id, sizeof(f->id)};
}

static inline void fixture_add_rule(struct sign_fixture *f, const char *pattern, const char *host,
				    const struct test_key *server)
{
	struct sign_rule *rule = &f->policy.rules[f->policy.count++];

	strcpy(rule->pattern, pattern);
	strcpy(rule->host, host);
	rule->port = 22;
	rule->host_key_count = 1;
	rule->host_keys[0].length = (uint32_t)server->blob.length;
	memcpy(rule->host_keys[0].bytes, server->blob.data, server->blob.length);
}

static inline int sign_fixture_setup(void **state)
{
	struct sign_fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	test_key_make(&f->server);
	test_key_make(&f->other_server);
	test_key_make(&f->user);
	test_key_make(&f->other_user);
	memset(f->id, 0x5a, sizeof(f->id));
	fixture_add_rule(f, "ada@*", "git.test", &f->server);
	*state = f;
	return 0;
}

static inline int sign_fixture_teardown(void **state)
{
	struct sign_fixture *f = *state;

	EVP_PKEY_free(f->server.key);
	EVP_PKEY_free(f->other_server.key);
	EVP_PKEY_free(f->user.key);
	EVP_PKEY_free(f->other_user.key);
	free(f);
	return 0;
}

/* session-bind@openssh.com */
static inline void make_bind(struct message *message, const struct test_key *server,
			     struct bytes id, unsigned int forwarding)
{
	struct message signature;

	test_key_sign(server, id, &signature);
	message->length = 0;
	add_byte(message, SIGN_EXTENSION);
	add_string(message, TEXT("session-bind@openssh.com"));
	add_string(message, message_bytes(&server->blob));
	add_string(message, id);
	add_string(message, message_bytes(&signature));
	add_byte(message, forwarding);
}

/* What a log-in of @name signs: RFC 4252, 7. @host_key: NULL, or the server's that it names as
 * well.
 */
static inline void make_login_of(struct message *message, struct bytes name, struct bytes id,
				 const struct test_key *user, const struct test_key *host_key)
{
	message->length = 0;
	add_string(message, id);
	add_byte(message, 50);
	add_string(message, name);
	add_string(message, TEXT("ssh-connection"));
	add_string(message,
		   host_key ? TEXT("publickey-hostbound-v00@openssh.com") : TEXT("publickey"));
	add_byte(message, 1);
	add_string(message, TEXT("ssh-ed25519"));
	add_string(message, message_bytes(&user->blob));
	if (host_key)
		add_string(message, message_bytes(&host_key->blob));
}

static inline void make_login(struct message *message, struct bytes id, const struct test_key *user,
			      const struct test_key *host_key)
{
	make_login_of(message, TEXT("git"), id, user, host_key);
}

static inline void make_sign(struct message *message, const struct test_key *user,
			     const struct message *data)
{
	message->length = 0;
	add_byte(message, SIGN_SIGN_REQUEST);
	add_string(message, message_bytes(&user->blob));
	add_string(message, message_bytes(data));
	add_uint32(message, 0);
}

/* The agent's list, of both keys of the user. */
static inline void make_list(const struct sign_fixture *f, struct message *message)
{
	message->length = 0;
	add_byte(message, SIGN_IDENTITIES);
	add_uint32(message, 2);
	add_string(message, message_bytes(&f->user.blob));
	add_string(message, TEXT("ada@laptop"));
	add_string(message, message_bytes(&f->other_user.blob));
	add_string(message, TEXT("work"));
}

#endif
