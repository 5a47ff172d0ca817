/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest may have signed by the host's ssh-agent: only log-ins to the servers that are
 * named, by keys that are named, in the session that the server itself has signed. */
#include "tests/unit/sign_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include <openssl/core_names.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/sign/host_key.h"

static enum sign_action ask(struct sign_fixture *f, const struct message *message,
			    struct sign_request *request)
{
	return sign_request_read(&f->policy, &f->session, message_bytes(message), request);
}

static void bind_session(struct sign_fixture *f)
{
	struct sign_request request;
	struct message message;

	make_bind(&message, &f->server, fixture_id(f), 0);
	assert_int_equal(ask(f, &message, &request), SIGN_BIND);
	assert_true(f->session.bound);
}

static void expect_refused(struct sign_fixture *f, const struct message *message, const char *why)
{
	struct sign_request request;

	assert_int_equal(ask(f, message, &request), SIGN_REFUSE);
	assert_non_null(request.why);
	if (!strstr(request.why, why))
		fail_msg("'%s' is not in '%s'", why, request.why);
}

static void test_logs_in(void **state)
{
	struct sign_fixture *f = *state;
	struct message data, message;
	struct sign_request request;

	bind_session(f);
	for (int named = 0; named < 2; named++) {
		make_login(&data, fixture_id(f), &f->user, named ? &f->server : NULL);
		make_sign(&message, &f->user, &data);
		assert_int_equal(ask(f, &message, &request), SIGN_SIGN);
		assert_string_equal(request.user, "git");
		assert_true(bytes_equal(request.key, message_bytes(&f->user.blob)));
		assert_true(bytes_equal(request.data, message_bytes(&data)));
	}
}

static void test_servers_that_are_not_named(void **state)
{
	struct sign_fixture *f = *state;
	struct message message, signature;

	/* A server of the guest's own choice. */
	make_bind(&message, &f->other_server, fixture_id(f), 0);
	expect_refused(f, &message, "none of those of --ssh-agent");
	/* The right one's key, and another's signature. */
	test_key_sign(&f->other_server, fixture_id(f), &signature);
	message.length = 0;
	add_byte(&message, SIGN_EXTENSION);
	add_string(&message, TEXT("session-bind@openssh.com"));
	add_string(&message, message_bytes(&f->server.blob));
	add_string(&message, fixture_id(f));
	add_string(&message, message_bytes(&signature));
	add_byte(&message, 0);
	expect_refused(f, &message, "has not signed");
	/* A signature of the right one's over another session. */
	make_bind(&message, &f->server, fixture_id(f), 0);
	message.data[1 + 4 + 24 + 4 + f->server.blob.length + 4] ^= 1;
	expect_refused(f, &message, "has not signed");
	assert_false(f->session.bound);
	make_bind(&message, &f->server, fixture_id(f), 1);
	expect_refused(f, &message, "pass the agent on");
	/* Once. */
	bind_session(f);
	make_bind(&message, &f->server, fixture_id(f), 0);
	expect_refused(f, &message, "already");
}

static void test_what_is_no_login_there(void **state)
{
	struct sign_fixture *f = *state;
	struct message data, message;

	make_login(&data, fixture_id(f), &f->user, NULL);
	make_sign(&message, &f->user, &data);
	expect_refused(f, &message, "has not shown which server");
	bind_session(f);
	/* Another session; another key than the one that signs; a server's name that is not its
	 * own. */
	make_login(&data, TEXT("01234567890123456789012345678901"), &f->user, NULL);
	make_sign(&message, &f->user, &data);
	expect_refused(f, &message, "no log-in");
	make_login(&data, fixture_id(f), &f->other_user, NULL);
	make_sign(&message, &f->user, &data);
	expect_refused(f, &message, "no log-in");
	make_login(&data, fixture_id(f), &f->user, &f->other_server);
	make_sign(&message, &f->user, &data);
	expect_refused(f, &message, "no log-in");
	/* A commit, a file, bytes behind a log-in. */
	data.length = 0;
	for (const char *c = "SSHSIG and what git has signed"; *c; c++)
		add_byte(&data, (unsigned int)*c);
	make_sign(&message, &f->user, &data);
	expect_refused(f, &message, "no log-in");
	make_login(&data, fixture_id(f), &f->user, NULL);
	add_byte(&data, 0);
	make_sign(&message, &f->user, &data);
	expect_refused(f, &message, "no log-in");
}

/* What is told of a log-in is what it is: its name cannot say that it is another one. */
static void test_names_that_lie(void **state)
{
	static const char sixty_five[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	const struct bytes names[] = {
		TEXT(""),
		TEXT("git at git.test:22 with SHA256:x (ada@laptop)"),
		TEXT("git\n"),
		TEXT("git\0root"),
		TEXT("\x1b[2Jgit"),
		TEXT("git\x7f"),
		{(const uint8_t *)sixty_five, 65},
	};
	struct sign_fixture *f = *state;
	struct sign_request request;
	struct message data, message;

	bind_session(f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		make_login_of(&data, names[i], fixture_id(f), &f->user, NULL);
		make_sign(&message, &f->user, &data);
		expect_refused(f, &message, "no log-in");
	}
	make_login_of(&data, (struct bytes){(const uint8_t *)sixty_five, 64}, fixture_id(f),
		      &f->user, NULL);
	make_sign(&message, &f->user, &data);
	assert_int_equal(ask(f, &message, &request), SIGN_SIGN);
	assert_int_equal(strlen(request.user), 64);
}

/* A host's key signs other things than sessions: that it owns its keys (OpenSSH's PROTOCOL, 2.5),
 * which is longer than the hash of a key exchange. What agents are asked for besides with flags is
 * another signature. */
static void test_other_words_of_the_server(void **state)
{
	struct sign_fixture *f = *state;
	struct message proof = {0}, data, message;

	add_string(&proof, TEXT("hostkeys-prove-00@openssh.com"));
	add_string(&proof, fixture_id(f));
	add_string(&proof, message_bytes(&f->server.blob));
	make_bind(&message, &f->server, message_bytes(&proof), 0);
	expect_refused(f, &message, "makes no sense");
	make_bind(&message, &f->server, TEXT(""), 0);
	expect_refused(f, &message, "makes no sense");
	bind_session(f);
	make_login(&data, fixture_id(f), &f->user, NULL);
	make_sign(&message, &f->user, &data);
	for (uint32_t flags = 1; flags; flags <<= 1) {
		struct sign_request request;

		put_uint32(message.data + message.length - 4, flags);
		assert_int_equal(ask(f, &message, &request),
				 flags == 2 || flags == 4 ? SIGN_SIGN : SIGN_REFUSE);
	}
}

/* Each prefix of each message, and each byte of it changed: nothing more is ever signed. */
static void test_broken_messages(void **state)
{
	struct sign_fixture *f = *state;
	struct message data, message, broken;
	struct sign_request request;

	bind_session(f);
	make_login(&data, fixture_id(f), &f->user, NULL);
	make_sign(&message, &f->user, &data);
	for (size_t length = 0; length < message.length; length++) {
		broken = message;
		broken.length = length;
		assert_int_not_equal(ask(f, &broken, &request), SIGN_SIGN);
		broken = message;
		broken.data[length] ^= 0x80;
		if (ask(f, &broken, &request) != SIGN_SIGN)
			continue;
		/* The user's name, the algorithm and the flags are the client's. */
		assert_true(bytes_equal(request.key, message_bytes(&f->user.blob)));
	}
	memset(&f->session, 0, sizeof(f->session));
	make_bind(&message, &f->server, fixture_id(f), 0);
	for (size_t length = 0; length < message.length; length++) {
		broken = message;
		broken.length = length;
		assert_int_not_equal(ask(f, &broken, &request), SIGN_BIND);
		broken = message;
		broken.data[length] ^= 0x80;
		assert_int_not_equal(ask(f, &broken, &request), SIGN_BIND);
	}
}

/* Keys are added, removed and locked elsewhere. */
static void test_other_requests(void **state)
{
	static const uint8_t types[] = {1,  9,  17, 18, 19, 20,  21,
					22, 23, 25, 26, 0,  255, SIGN_SIGNATURE};
	struct sign_fixture *f = *state;
	struct sign_request request;
	struct message message = {0};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		message.length = 0;
		add_byte(&message, types[i]);
		expect_refused(f, &message, "something else");
	}
	message.length = 0;
	add_byte(&message, SIGN_EXTENSION);
	add_string(&message, TEXT("query"));
	assert_int_equal(ask(f, &message, &request), SIGN_REFUSE);
	assert_null(request.why);
	message.length = 0;
	add_byte(&message, SIGN_REQUEST_IDENTITIES);
	assert_int_equal(ask(f, &message, &request), SIGN_LIST);
}

static size_t keys_in(const uint8_t *list)
{
	return (size_t)list[1] << 24 | (size_t)list[2] << 16 | (size_t)list[3] << 8 | list[4];
}

static void test_lists(void **state)
{
	struct sign_fixture *f = *state;
	struct message list;
	uint8_t filtered[sizeof(list.data)];
	struct bytes comment;
	size_t length;

	make_list(f, &list);
	length = sign_filter_list(&f->policy, &f->session, message_bytes(&list), filtered);
	assert_int_equal(keys_in(filtered), 1);
	assert_true(sign_find_key((struct bytes){filtered, length}, message_bytes(&f->user.blob),
				  &comment));
	assert_true(bytes_equal(comment, TEXT("ada@laptop")));
	assert_false(sign_find_key((struct bytes){filtered, length},
				   message_bytes(&f->other_user.blob), &comment));
	/* Once a server is known, the keys for it alone. */
	fixture_add_rule(f, "work", "other.test", &f->other_server);
	sign_filter_list(&f->policy, &f->session, message_bytes(&list), filtered);
	assert_int_equal(keys_in(filtered), 2);
	bind_session(f);
	sign_filter_list(&f->policy, &f->session, message_bytes(&list), filtered);
	assert_int_equal(keys_in(filtered), 1);
	assert_null(sign_find_rule(&f->policy, &f->session, message_bytes(&f->other_user.blob),
				   TEXT("work")));
	/* Broken ones. */
	for (length = 0; length < list.length; length++)
		assert_int_equal(sign_filter_list(&f->policy, &f->session,
						  (struct bytes){list.data, length}, filtered),
				 0);
}

static void test_patterns(void **state)
{
	struct sign_fixture *f = *state;
	const struct bytes key = message_bytes(&f->user.blob);
	struct sign_rule *rule = &f->policy.rules[0];
	char fingerprint[FINGERPRINT_BYTES];

	host_key_fingerprint(key, fingerprint);
	assert_int_equal(strlen(fingerprint), 7 + 43);
	strcpy(rule->pattern, fingerprint);
	assert_true(sign_rule_covers(rule, key, TEXT("whatever")));
	assert_false(sign_rule_covers(rule, message_bytes(&f->other_user.blob), TEXT("whatever")));
	/* A comment that looks like the fingerprint of another. */
	assert_false(sign_rule_covers(rule, message_bytes(&f->other_user.blob),
				      (struct bytes){(uint8_t *)fingerprint, strlen(fingerprint)}));
	strcpy(rule->pattern, "*");
	assert_true(sign_rule_covers(rule, key, TEXT("")));
	strcpy(rule->pattern, "ada");
	assert_false(sign_rule_covers(rule, key, TEXT("ada@laptop")));
	assert_false(sign_rule_covers(rule, key, TEXT("ada\0")));
}

static void test_rules_are_passed_on(void **state)
{
	struct sign_fixture *f = *state;
	struct sign_policy *taken = calloc(1, sizeof(*taken));
	int fd = sign_policy_write(&f->policy);

	assert_true(fd >= 0);
	assert_int_not_equal(write(fd, "x", 1), 1);
	assert_int_equal(sign_policy_read(taken, fd), 0);
	assert_memory_equal(taken, &f->policy, sizeof(*taken));
	fd_close(&fd);
	f->policy.rules[0].host_key_count = LIMIT_SIGN_HOST_KEYS + 1;
	fd = sign_policy_write(&f->policy);
	assert_true(sign_policy_read(taken, fd) < 0);
	fd_close(&fd);
	free(taken);
}

/* A number as SSH writes it. */
static void add_number(struct message *message, EVP_PKEY *key, const char *name)
{
	BIGNUM *number = NULL;
	uint8_t bytes[600] = {0};
	int length;

	assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
	length = BN_bn2bin(number, bytes + 1);
	BN_free(number);
	add_string(message, bytes[1] & 0x80 ? (struct bytes){bytes, (size_t)length + 1}
					    : (struct bytes){bytes + 1, (size_t)length});
}

static void sign_raw(EVP_PKEY *key, const EVP_MD *digest, struct bytes data, uint8_t *raw,
		     size_t *length)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();

	assert_int_equal(EVP_DigestSignInit(context, NULL, digest, NULL, key), 1);
	assert_int_equal(EVP_DigestSign(context, raw, length, data.data, data.length), 1);
	EVP_MD_CTX_free(context);
}

static void test_rsa(void **state)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	struct message blob = {0}, signature = {0};
	uint8_t raw[512];
	size_t length = sizeof(raw);

	(void)state;
	add_string(&blob, TEXT("ssh-rsa"));
	add_number(&blob, key, OSSL_PKEY_PARAM_RSA_E);
	add_number(&blob, key, OSSL_PKEY_PARAM_RSA_N);
	sign_raw(key, EVP_sha512(), TEXT("data"), raw, &length);
	add_string(&signature, TEXT("rsa-sha2-512"));
	add_string(&signature, (struct bytes){raw, length});
	assert_true(host_key_verify(message_bytes(&blob), message_bytes(&signature), TEXT("data")));
	assert_false(
		host_key_verify(message_bytes(&blob), message_bytes(&signature), TEXT("dato")));
	/* SHA-1 is not good enough any more. */
	signature.length = 0;
	length = sizeof(raw);
	sign_raw(key, EVP_sha1(), TEXT("data"), raw, &length);
	add_string(&signature, TEXT("ssh-rsa"));
	add_string(&signature, (struct bytes){raw, length});
	assert_false(
		host_key_verify(message_bytes(&blob), message_bytes(&signature), TEXT("data")));
	EVP_PKEY_free(key);
}

/* r and s of a signature in DER, which are short here. */
static void add_der_numbers(struct message *message, const uint8_t *der)
{
	const uint8_t *r = der + (der[1] & 0x80 ? 3 : 2), *s = r + 2 + r[1];

	add_string(message, (struct bytes){r + 2, r[1]});
	add_string(message, (struct bytes){s + 2, s[1]});
}

static void test_ecdsa(void **state)
{
	static const struct {
		const char *group, *type, *name;
		const EVP_MD *(*digest)(void);
	} curves[] = {{"P-256", "ecdsa-sha2-nistp256", "nistp256", EVP_sha256},
		      {"P-384", "ecdsa-sha2-nistp384", "nistp384", EVP_sha384},
		      {"P-521", "ecdsa-sha2-nistp521", "nistp521", EVP_sha512}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
		EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", curves[i].group);
		const struct bytes type = {(const uint8_t *)curves[i].type, strlen(curves[i].type)};
		struct message blob = {0}, signature = {0}, numbers = {0};
		uint8_t point[256], der[256];
		size_t length = sizeof(der), point_length = 0;

		assert_int_equal(EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY,
								 point, sizeof(point),
								 &point_length),
				 1);
		add_string(&blob, type);
		add_string(&blob, (struct bytes){(const uint8_t *)curves[i].name, 8});
		add_string(&blob, (struct bytes){point, point_length});
		sign_raw(key, curves[i].digest(), TEXT("data"), der, &length);
		add_der_numbers(&numbers, der);
		add_string(&signature, type);
		add_string(&signature, message_bytes(&numbers));
		assert_true(host_key_verify(message_bytes(&blob), message_bytes(&signature),
					    TEXT("data")));
		assert_false(host_key_verify(message_bytes(&blob), message_bytes(&signature),
					     TEXT("date")));
		signature.data[signature.length - 1] ^= 1;
		assert_false(host_key_verify(message_bytes(&blob), message_bytes(&signature),
					     TEXT("data")));
		EVP_PKEY_free(key);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sign_fixture_setup, sign_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_logs_in),
		TEST(test_servers_that_are_not_named),
		TEST(test_what_is_no_login_there),
		TEST(test_names_that_lie),
		TEST(test_other_words_of_the_server),
		TEST(test_broken_messages),
		TEST(test_other_requests),
		TEST(test_lists),
		TEST(test_patterns),
		TEST(test_rules_are_passed_on),
		cmocka_unit_test(test_rsa),
		cmocka_unit_test(test_ecdsa),
	};

	return cmocka_run_group_tests_name("sign", tests, NULL, NULL);
}
