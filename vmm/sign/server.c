/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/sign/server.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/sign/host_key.h"
#include "vmm/sign/request.h"
#include "vmm/wire/relay.h"
#include "vmm/wire/sign.h"
#include "vmm/wire/told.h"

#define LENGTH_BYTES 4U

/* What a client waits for. */
enum waits {
	WAITS_NOT,
	WAITS_TURN, /* its request is read, and the agent is busy */
	WAITS_LIST,
	WAITS_LIST_TO_SIGN, /* whether the agent has the key, and what it calls it */
	WAITS_SIGNATURE,
};

struct client {
	int fd; /* -1: free */
	enum waits waits;
	enum sign_action action;
	struct sign_session session;
	struct sign_request request; /* points into .in, which stays until it is answered */
	const struct sign_rule *rule;
	char comment[LIMIT_SIGN_PATTERN_BYTES + 1];
	size_t have;
	uint8_t in[LENGTH_BYTES + LIMIT_SIGN_REQUEST_BYTES];
	uint8_t *out; /* allocated */
	size_t out_length, out_done;
};

struct server {
	const struct sign_plan *plan;
	int agent_fd;          /* -1: it is gone */
	struct client *now;    /* whose request the agent has; NULL: nobody's */
	bool agent_is_busy;    /* also with one of a client that is gone */
	bool signs;            /* what it is busy with: a signature */
	unsigned int refusals; /* of signatures, by the agent */
	struct told told;      /* of denials */
	size_t have;
	uint8_t answer[LENGTH_BYTES + LIMIT_SIGN_ANSWER_BYTES];
	struct sign_hand_over message;
	struct client clients[LIMIT_SIGN_CONNECTIONS];
};

static_assert(LIMIT_RELAY_FIRST_BYTES <= LIMIT_SIGN_REQUEST_BYTES, "what is handed over has room");

static uint32_t length_of(const uint8_t *bytes)
{
	struct reader reader = {.rest = {bytes, LENGTH_BYTES}};

	return reader_uint32(&reader);
}

static void tell(struct server *server, enum relay_event_type type, const struct client *client,
		 const char *text)
{
	struct relay_event event = {.type = type};
	const struct sign_rule *rule = client->rule;

	snprintf(event.host, sizeof(event.host), "%s", rule ? rule->host : "(ssh-agent)");
	event.port = rule ? rule->port : 0;
	snprintf(event.text, sizeof(event.text), "%s", text);
	if (type == RELAY_EVENT_DENIED && !told_is_new(&server->told, &event))
		return;
	if (type == RELAY_EVENT_DENIED)
		told_add(&server->told, &event);
	/* A supervisor that is behind is waited for: the use of a key must be told. */
	while (send(server->plan->event_fd, &event, sizeof(event), MSG_NOSIGNAL) < 0 &&
	       errno == EINTR)
		continue;
}

static void end_client(struct server *server, struct client *client)
{
	if (server->now == client)
		server->now = NULL;
	fd_close(&client->fd);
	free(client->out);
	*client = (struct client){.fd = -1};
}

/* What there is of the answer, as far as the client takes it. The next request may come then. */
static void flush(struct server *server, struct client *client)
{
	while (client->out_done < client->out_length) {
		ssize_t count =
			send(client->fd, client->out + client->out_done,
			     client->out_length - client->out_done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count < 0 && errno == EAGAIN)
			return;
		if (count < 0 && errno != EINTR) {
			end_client(server, client);
			return;
		}
		client->out_done += count > 0 ? (size_t)count : 0;
	}
	free(client->out);
	client->out = NULL;
	client->out_length = client->out_done = 0;
}

/* Answers the request at the start of what the client has said, which is over by that. @message is
 * allocated with room for its length before it, and the client's then. */
static void answer(struct server *server, struct client *client, uint8_t *message, size_t length)
{
	const size_t taken = LENGTH_BYTES + length_of(client->in);

	put_uint32(message, (uint32_t)length);
	client->out = message;
	client->out_length = LENGTH_BYTES + length;
	client->out_done = 0;
	client->waits = WAITS_NOT;
	client->rule = NULL;
	client->have -= taken;
	memmove(client->in, client->in + taken, client->have);
	flush(server, client);
}

static void answer_byte(struct server *server, struct client *client, enum sign_message type)
{
	uint8_t *message = malloc(LENGTH_BYTES + 1);

	if (!message) {
		end_client(server, client);
		return;
	}
	message[LENGTH_BYTES] = (uint8_t)type;
	answer(server, client, message, 1);
}

static void refuse(struct server *server, struct client *client, const char *why)
{
	char text[RELAY_EVENT_TEXT_BYTES];

	if (why) {
		snprintf(text, sizeof(text), "the ssh-agent did not sign for a client: %s", why);
		tell(server, RELAY_EVENT_DENIED, client, text);
	}
	answer_byte(server, client, SIGN_FAILURE);
}

/* It is done with the request before: all of this fits, or the agent is none. */
static void ask_agent(struct server *server, struct client *client, enum waits waits)
{
	uint8_t message[LENGTH_BYTES + LIMIT_SIGN_REQUEST_BYTES + 16],
		*end = message + LENGTH_BYTES;

	if (waits == WAITS_SIGNATURE) {
		*end++ = SIGN_SIGN_REQUEST;
		end = put_string(end, client->request.key);
		end = put_string(end, client->request.data);
		end = put_uint32(end, client->request.flags);
	} else {
		*end++ = SIGN_REQUEST_IDENTITIES;
	}
	put_uint32(message, (uint32_t)(end - message) - LENGTH_BYTES);
	if (fd_write_full(server->agent_fd, message, (size_t)(end - message)) < 0) {
		fd_close(&server->agent_fd);
		refuse(server, client, "your ssh-agent is gone");
		return;
	}
	client->waits = waits;
	server->now = client;
	server->agent_is_busy = true;
	server->signs = waits == WAITS_SIGNATURE;
}

/* A request is there, and the agent is free. */
static void begin(struct server *server, struct client *client)
{
	if (server->agent_fd < 0)
		refuse(server, client, "your ssh-agent is gone");
	else if (client->action == SIGN_SIGN && server->refusals == LIMIT_SIGN_REFUSALS)
		refuse(server, client,
		       "your ssh-agent refused several times, and is not asked again in this run");
	else
		ask_agent(server, client,
			  client->action == SIGN_LIST ? WAITS_LIST : WAITS_LIST_TO_SIGN);
}

/* The request that the client has said whole, if it has. */
static void read_request(struct server *server, struct client *client)
{
	uint32_t length;

	if (client->fd < 0 || client->waits != WAITS_NOT || client->out ||
	    client->have < LENGTH_BYTES)
		return;
	length = length_of(client->in);
	if (!length || length > LIMIT_SIGN_REQUEST_BYTES) {
		end_client(server, client);
		return;
	}
	if (client->have < LENGTH_BYTES + length)
		return;
	client->action = sign_request_read(server->plan->policy, &client->session,
					   (struct bytes){client->in + LENGTH_BYTES, length},
					   &client->request);
	if (client->action == SIGN_REFUSE)
		refuse(server, client, client->request.why);
	else if (client->action == SIGN_BIND)
		answer_byte(server, client, SIGN_SUCCESS);
	else
		client->waits = WAITS_TURN;
}

static void pass_list(struct server *server, struct client *client, struct bytes list)
{
	uint8_t *message = malloc(LENGTH_BYTES + 5 + list.length);
	size_t length = message ? sign_filter_list(server->plan->policy, &client->session, list,
						   message + LENGTH_BYTES)
				: 0;

	if (length) {
		answer(server, client, message, length);
		return;
	}
	free(message);
	answer_byte(server, client, SIGN_FAILURE);
}

/* The agent's list: has it the key, and does a rule cover it? */
static void check_key(struct server *server, struct client *client, struct bytes list)
{
	struct bytes comment;

	if (!sign_find_key(list, client->request.key, &comment)) {
		refuse(server, client, "your ssh-agent does not have the key");
		return;
	}
	client->rule = sign_find_rule(server->plan->policy, &client->session, client->request.key,
				      comment);
	bytes_copy_text(comment, client->comment, sizeof(client->comment));
	if (!client->rule)
		refuse(server, client, "no --ssh-agent is for that key and server");
	else
		ask_agent(server, client, WAITS_SIGNATURE);
}

static bool is_signature(struct bytes answered)
{
	return answered.length && answered.data[0] == SIGN_SIGNATURE;
}

static void pass_signature(struct server *server, struct client *client, struct bytes answered)
{
	char text[RELAY_EVENT_TEXT_BYTES], fingerprint[FINGERPRINT_BYTES];
	uint8_t *message;

	if (!is_signature(answered)) {
		refuse(server, client, "your ssh-agent did not want to");
		return;
	}
	message = malloc(LENGTH_BYTES + answered.length);
	if (!message) {
		end_client(server, client);
		return;
	}
	host_key_fingerprint(client->request.key, fingerprint);
	snprintf(text, sizeof(text), "your ssh-agent signed a log-in of %s at %s:%u with %s (%s)",
		 client->request.user, client->rule->host, client->rule->port, fingerprint,
		 client->comment);
	tell(server, RELAY_EVENT_SIGNED, client, text);
	memcpy(message + LENGTH_BYTES, answered.data, answered.length);
	answer(server, client, message, answered.length);
}

static void take_answer(struct server *server, struct bytes answered)
{
	struct client *client = server->now;

	server->now = NULL;
	server->agent_is_busy = false;
	/* Also one whose client is gone: somebody was asked for it. */
	if (server->signs && !is_signature(answered))
		server->refusals++;
	if (!client)
		return;
	if (client->waits == WAITS_LIST)
		pass_list(server, client, answered);
	else if (client->waits == WAITS_LIST_TO_SIGN)
		check_key(server, client, answered);
	else
		pass_signature(server, client, answered);
}

static void lose_agent(struct server *server)
{
	struct client *client = server->now;

	fd_close(&server->agent_fd);
	server->now = NULL;
	server->agent_is_busy = false;
	if (client)
		refuse(server, client, "your ssh-agent is gone");
}

static void read_agent(struct server *server)
{
	ssize_t count = recv(server->agent_fd, server->answer + server->have,
			     sizeof(server->answer) - server->have, MSG_DONTWAIT);
	size_t length;

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	server->have += count > 0 ? (size_t)count : 0;
	length = server->have < LENGTH_BYTES ? 0 : length_of(server->answer);
	/* It speaks when it is spoken to. */
	if (count <= 0 || !server->agent_is_busy || length > LIMIT_SIGN_ANSWER_BYTES ||
	    (server->have >= LENGTH_BYTES && server->have > LENGTH_BYTES + length)) {
		lose_agent(server);
		return;
	}
	if (server->have < LENGTH_BYTES || server->have < LENGTH_BYTES + length)
		return;
	server->have = 0;
	take_answer(server, (struct bytes){server->answer + LENGTH_BYTES, length});
}

static void read_client(struct server *server, struct client *client)
{
	ssize_t count = recv(client->fd, client->in + client->have,
			     sizeof(client->in) - client->have, MSG_DONTWAIT);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count <= 0)
		end_client(server, client);
	else
		client->have += (size_t)count;
}

/* Takes over a client. False when no other will come. */
static bool accept_client(struct server *server)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct sign_hand_over *message = &server->message;
	struct iovec vector = {message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &vector,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(server->plan->relay_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct client *client = server->clients;
	int fd = -1;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (length > 0 && control.header.cmsg_len == CMSG_LEN(sizeof(int)) &&
	    control.header.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	if (length < (ssize_t)offsetof(struct sign_hand_over, first) ||
	    message->length != (size_t)length - offsetof(struct sign_hand_over, first)) {
		fd_close(&fd);
		return false;
	}
	while (client < server->clients + LIMIT_SIGN_CONNECTIONS && client->fd >= 0)
		client++;
	/* Without one there was no room for it (MSG_CTRUNC of recvmsg(2)). */
	if (fd < 0 || client == server->clients + LIMIT_SIGN_CONNECTIONS) {
		fd_close(&fd);
		return true;
	}
	client->fd = fd;
	client->have = message->length;
	memcpy(client->in, message->first, message->length);
	return true;
}

/* Requests that are there, and those that the agent has time for. Answers make room for others, so
 * that it goes on until nothing changes. */
static void advance(struct server *server)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < LIMIT_SIGN_CONNECTIONS; i++) {
			struct client *client = &server->clients[i];
			const size_t before = client->have;

			read_request(server, client);
			if (client->waits == WAITS_TURN && !server->agent_is_busy)
				begin(server, client);
			changed |= client->have != before;
		}
	}
}

static void fill_polled(const struct server *server, struct pollfd *polled)
{
	polled[0] = (struct pollfd){.fd = server->plan->relay_fd, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = server->agent_fd, .events = POLLIN};
	for (size_t i = 0; i < LIMIT_SIGN_CONNECTIONS; i++) {
		const struct client *client = &server->clients[i];
		const bool room = client->have < sizeof(client->in);

		polled[2 + i] = (struct pollfd){
			.fd = client->fd,
			.events = (short)((room ? POLLIN : 0) | (client->out ? POLLOUT : 0))};
	}
}

static int serve_turn(struct server *server, bool *over)
{
	struct pollfd polled[2 + LIMIT_SIGN_CONNECTIONS];

	fill_polled(server, polled);
	if (poll(polled, ARRAY_SIZE(polled), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < LIMIT_SIGN_CONNECTIONS; i++) {
		struct client *client = &server->clients[i];
		const short events = polled[2 + i].revents;

		if (events & POLLOUT)
			flush(server, client);
		if (client->fd >= 0 && events & (POLLIN | POLLHUP | POLLERR))
			read_client(server, client);
	}
	if (server->agent_fd >= 0 && polled[1].revents)
		read_agent(server);
	if (polled[0].revents)
		*over = !accept_client(server);
	advance(server);
	return 0;
}

int sign_serve(const struct sign_plan *plan)
{
	struct server *server = calloc(1, sizeof(*server));
	bool over = false;
	int error = 0;

	if (!server)
		return log_errno(-ENOMEM, "cannot begin");
	server->plan = plan;
	server->agent_fd = plan->agent_fd;
	for (size_t i = 0; i < LIMIT_SIGN_CONNECTIONS; i++)
		server->clients[i].fd = -1;
	while (!error && !over)
		error = serve_turn(server, &over);
	for (size_t i = 0; i < LIMIT_SIGN_CONNECTIONS; i++)
		end_client(server, &server->clients[i]);
	told_end(&server->told, plan->event_fd, 0);
	fd_close(&server->agent_fd);
	free(server);
	return error ? log_errno(error, "cannot wait for clients") : 0;
}
