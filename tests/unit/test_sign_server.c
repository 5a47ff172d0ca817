/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-sign's service in a process of its own: this one is relay, supervisor, agent and guest.
 */
#include "tests/unit/sign_fixture.h"

#include <signal.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/sign/server.h"
#include "vmm/wire/relay.h"
#include "vmm/wire/sign.h"

#define PATIENCE_MS 10000

struct fixture {
	struct sign_fixture *sign;
	pid_t child;
	int relay, events, agent;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int relay[2], events[2], agent[2];

	if (!f || sign_fixture_setup((void **)&f->sign) ||
	    fd_create_socket_pair(SOCK_SEQPACKET, relay) ||
	    fd_create_socket_pair(SOCK_SEQPACKET, events) ||
	    fd_create_socket_pair(SOCK_STREAM, agent))
		return -1;
	f->child = fork();
	if (f->child == 0) {
		const struct sign_plan plan = {.policy = &f->sign->policy,
					       .relay_fd = relay[1],
					       .event_fd = events[1],
					       .agent_fd = agent[1]};

		fd_close(&relay[0]);
		fd_close(&events[0]);
		fd_close(&agent[0]);
		_exit(sign_serve(&plan) == 0 ? 0 : 1);
	}
	f->relay = relay[0];
	f->events = events[0];
	f->agent = agent[0];
	fd_close(&relay[1]);
	fd_close(&events[1]);
	fd_close(&agent[1]);
	*state = f;
	return f->child < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int status = -1;

	fd_close(&f->relay);
	waitpid(f->child, &status, 0);
	fd_close(&f->events);
	fd_close(&f->agent);
	sign_fixture_teardown((void **)&f->sign);
	free(f);
	return status;
}

static void wait_for(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	if (poll(&polled, 1, PATIENCE_MS) != 1)
		fail_msg("waited %d ms for nothing", PATIENCE_MS);
}

/* A connection of the guest's, which has said @first so far. */
static int connect_guest(const struct fixture *f, struct bytes first)
{
	static struct sign_hand_over message;
	int pair[2];

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	message.length = (uint32_t)first.length;
	memcpy(message.first, first.data, first.length);
	assert_int_equal(fd_send(f->relay, &message,
				 offsetof(struct sign_hand_over, first) + first.length, &pair[1],
				 1),
			 0);
	fd_close(&pair[1]);
	return pair[0];
}

static void say(int fd, const struct message *message)
{
	uint8_t length[4];

	put_uint32(length, (uint32_t)message->length);
	assert_int_equal(fd_write_full(fd, length, sizeof(length)), 0);
	assert_int_equal(fd_write_full(fd, message->data, message->length), 0);
}

/* The next message; its length 0: the end. */
static void hear(int fd, struct message *message)
{
	struct reader reader;
	uint8_t length[4];

	message->length = 0;
	wait_for(fd);
	if (fd_read_full(fd, length, sizeof(length)) < 0)
		return;
	reader = (struct reader){.rest = {length, sizeof(length)}};
	message->length = reader_uint32(&reader);
	assert_true(message->length <= sizeof(message->data));
	assert_int_equal(fd_read_full(fd, message->data, message->length), 0);
}

static void expect_type(int fd, enum sign_message type)
{
	struct message message;

	hear(fd, &message);
	assert_true(message.length > 0);
	assert_int_equal(message.data[0], type);
}

static void expect_event(const struct fixture *f, enum relay_event_type type, const char *part)
{
	struct relay_event event;

	wait_for(f->events);
	assert_int_equal(recv(f->events, &event, sizeof(event), 0), sizeof(event));
	assert_int_equal(event.type, type);
	if (!strstr(event.text, part))
		fail_msg("'%s' is not in '%s'", part, event.text);
}

static int bound_guest(const struct fixture *f)
{
	int guest = connect_guest(f, TEXT(""));
	struct message message;

	make_bind(&message, &f->sign->server, fixture_id(f->sign), 0);
	say(guest, &message);
	expect_type(guest, SIGN_SUCCESS);
	return guest;
}

static void ask_to_sign(const struct fixture *f, int guest, const struct test_key *user)
{
	struct message data, message;

	make_login(&data, fixture_id(f->sign), user, NULL);
	make_sign(&message, user, &data);
	say(guest, &message);
}

static void answer_list(const struct fixture *f)
{
	struct message list;

	expect_type(f->agent, SIGN_REQUEST_IDENTITIES);
	make_list(f->sign, &list);
	say(f->agent, &list);
}

static void answer_signature(const struct fixture *f)
{
	struct message signature = {0};

	add_byte(&signature, SIGN_SIGNATURE);
	add_string(&signature, TEXT("signature"));
	say(f->agent, &signature);
}

static void test_signs_a_login(void **state)
{
	const struct fixture *f = *state;
	struct message asked, data, wanted, answer;
	int guest = bound_guest(f);

	ask_to_sign(f, guest, &f->sign->user);
	answer_list(f);
	hear(f->agent, &asked);
	make_login(&data, fixture_id(f->sign), &f->sign->user, NULL);
	make_sign(&wanted, &f->sign->user, &data);
	assert_true(bytes_equal(message_bytes(&asked), message_bytes(&wanted)));
	answer_signature(f);
	expect_event(f, RELAY_EVENT_SIGNED, "signed a log-in of git at git.test:22 with SHA256:");
	hear(guest, &answer);
	assert_int_equal(answer.data[0], SIGN_SIGNATURE);
	fd_close(&guest);
}

/* A key that no rule is for is not asked for. */
static void test_key_that_is_not_named(void **state)
{
	const struct fixture *f = *state;
	int guest = bound_guest(f);

	ask_to_sign(f, guest, &f->sign->other_user);
	answer_list(f);
	expect_type(guest, SIGN_FAILURE);
	expect_event(f, RELAY_EVENT_DENIED, "no --ssh-agent is for that key");
	fd_close(&guest);
}

static void test_lists_what_is_named(void **state)
{
	const struct fixture *f = *state;
	struct message answer;
	struct bytes comment;
	/* All of it came before the connection was handed over. */
	int guest = connect_guest(f, (struct bytes){(const uint8_t[]){0, 0, 0, 1, 11}, 5});

	answer_list(f);
	hear(guest, &answer);
	assert_true(sign_find_key(message_bytes(&answer), message_bytes(&f->sign->user.blob),
				  &comment));
	assert_false(sign_find_key(message_bytes(&answer), message_bytes(&f->sign->other_user.blob),
				   &comment));
	fd_close(&guest);
}

/* One after the other, in order; one who leaves while the agent thinks does not disturb. */
static void test_several_at_once(void **state)
{
	const struct fixture *f = *state;
	int guests[3];

	for (size_t i = 0; i < ARRAY_SIZE(guests); i++)
		guests[i] = bound_guest(f);
	ask_to_sign(f, guests[0], &f->sign->user);
	expect_type(f->agent, SIGN_REQUEST_IDENTITIES);
	ask_to_sign(f, guests[1], &f->sign->user);
	ask_to_sign(f, guests[2], &f->sign->user);
	fd_close(&guests[0]);
	{
		struct message list;

		make_list(f->sign, &list);
		say(f->agent, &list);
	}
	for (size_t i = 1; i < ARRAY_SIZE(guests); i++) {
		answer_list(f);
		expect_type(f->agent, SIGN_SIGN_REQUEST);
		answer_signature(f);
		expect_type(guests[i], SIGN_SIGNATURE);
		expect_event(f, RELAY_EVENT_SIGNED, "git.test");
		fd_close(&guests[i]);
	}
}

static void test_agent_that_is_gone(void **state)
{
	struct fixture *f = *state;
	int guest = bound_guest(f);

	ask_to_sign(f, guest, &f->sign->user);
	expect_type(f->agent, SIGN_REQUEST_IDENTITIES);
	fd_close(&f->agent);
	expect_type(guest, SIGN_FAILURE);
	expect_event(f, RELAY_EVENT_DENIED, "your ssh-agent is gone");
	ask_to_sign(f, guest, &f->sign->user);
	expect_type(guest, SIGN_FAILURE);
	fd_close(&guest);
}

static void expect_ended(int guest)
{
	char byte;

	wait_for(guest);
	assert_true(recv(guest, &byte, 1, 0) <= 0);
}

/* Where there was no room for one its client is lost, and no other. */
static void test_connection_without_descriptor(void **state)
{
	static const struct sign_hand_over message;
	struct fixture *f = *state;
	int guest;

	assert_int_equal(
		fd_send(f->relay, &message, offsetof(struct sign_hand_over, first), NULL, 0), 0);
	guest = bound_guest(f);
	ask_to_sign(f, guest, &f->sign->user);
	expect_type(f->agent, SIGN_REQUEST_IDENTITIES);
	fd_close(&guest);
}

static void test_hostile_guests(void **state)
{
	static const uint8_t lengths[][4] = {
		{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0x80, 1}};
	const struct fixture *f = *state;
	int guest, many[LIMIT_SIGN_CONNECTIONS + 4];

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		guest = connect_guest(f, (struct bytes){lengths[i], 4});
		expect_ended(guest);
		fd_close(&guest);
	}
	/* More than there may be: those that have no room end, and the others are served. */
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = connect_guest(f, TEXT(""));
	expect_ended(many[ARRAY_SIZE(many) - 1]);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		fd_close(&many[i]);
	/* Half a message, and then nothing. */
	guest = connect_guest(f, (struct bytes){(const uint8_t[]){0, 0, 0, 9, 11}, 5});
	fd_close(&guest);
	test_signs_a_login(state);
}

/* An agent that says what nobody has asked, or more than that, is none any more. */
static void test_hostile_agent(void **state)
{
	struct fixture *f = *state;
	int guest = bound_guest(f);

	ask_to_sign(f, guest, &f->sign->user);
	expect_type(f->agent, SIGN_REQUEST_IDENTITIES);
	assert_int_equal(send(f->agent, "\xff\xff\xff\xff\x0c", 5, 0), 5);
	expect_type(guest, SIGN_FAILURE);
	expect_event(f, RELAY_EVENT_DENIED, "your ssh-agent is gone");
	fd_close(&guest);
}

static void expect_quiet(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&polled, 1, 100), 0);
}

static void refuse_signature(const struct fixture *f)
{
	struct message failure = {0};

	answer_list(f);
	expect_type(f->agent, SIGN_SIGN_REQUEST);
	add_byte(&failure, SIGN_FAILURE);
	say(f->agent, &failure);
}

/* Whoever is asked before each signature says no three times, and is left alone; a guest that asks
 * and leaves at once is counted as well. */
static void test_agent_that_says_no(void **state)
{
	const struct fixture *f = *state;
	int guest = bound_guest(f), other;

	for (unsigned int i = 0; i < LIMIT_SIGN_REFUSALS - 1; i++) {
		ask_to_sign(f, guest, &f->sign->user);
		refuse_signature(f);
		expect_type(guest, SIGN_FAILURE);
	}
	expect_event(f, RELAY_EVENT_DENIED, "did not want to");
	other = bound_guest(f);
	ask_to_sign(f, other, &f->sign->user);
	answer_list(f);
	expect_type(f->agent, SIGN_SIGN_REQUEST);
	fd_close(&other);
	say(f->agent, &(struct message){.length = 1, .data = {SIGN_FAILURE}});
	other = bound_guest(f);
	for (unsigned int i = 0; i < 20; i++) {
		ask_to_sign(f, other, &f->sign->user);
		expect_type(other, SIGN_FAILURE);
	}
	expect_event(f, RELAY_EVENT_DENIED, "is not asked again");
	expect_quiet(f->agent);
	expect_quiet(f->events);
	/* Lists ask nobody. */
	say(guest, &(struct message){.length = 1, .data = {SIGN_REQUEST_IDENTITIES}});
	answer_list(f);
	expect_type(guest, SIGN_IDENTITIES);
	fd_close(&other);
	fd_close(&guest);
}

/* A guest that asks for what it does not get, all the time: it is told once, nothing of it comes to
 * the agent, and what is asked rightly is served. */
static void test_flood(void **state)
{
	static const uint8_t types[] = {17, 18, 19, 22, 25, 26};
	struct fixture *f = *state;
	int guest = connect_guest(f, TEXT(""));

	for (unsigned int i = 0; i < 3000; i++) {
		struct message message = {.length = 1, .data = {types[i % ARRAY_SIZE(types)]}};

		say(guest, &message);
		expect_type(guest, SIGN_FAILURE);
	}
	for (unsigned int i = 0; i < 3000; i++) {
		ask_to_sign(f, guest, &f->sign->user);
		expect_type(guest, SIGN_FAILURE);
	}
	expect_event(f, RELAY_EVENT_DENIED, "something else than a signature");
	expect_event(f, RELAY_EVENT_DENIED, "has not shown which server");
	expect_quiet(f->events);
	expect_quiet(f->agent);
	fd_close(&guest);
	test_signs_a_login(state);
}

/* It asks and does not read: others are served meanwhile. */
static void test_guest_that_does_not_read(void **state)
{
	const struct fixture *f = *state;
	int guest = connect_guest(f, TEXT(""));
	static const uint8_t question[] = {0, 0, 0, 1, 17};
	unsigned int asked = 0;

	while (send(guest, question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) ==
		       (ssize_t)sizeof(question) &&
	       asked < 10000000)
		asked++;
	assert_int_not_equal(asked, 10000000);
	expect_event(f, RELAY_EVENT_DENIED, "something else than a signature");
	test_signs_a_login(state);
	fd_close(&guest);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_signs_a_login),
		TEST(test_key_that_is_not_named),
		TEST(test_lists_what_is_named),
		TEST(test_several_at_once),
		TEST(test_agent_that_is_gone),
		TEST(test_connection_without_descriptor),
		TEST(test_hostile_guests),
		TEST(test_hostile_agent),
		TEST(test_agent_that_says_no),
		TEST(test_flood),
		TEST(test_guest_that_does_not_read),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("sign server", tests, NULL, NULL);
}
