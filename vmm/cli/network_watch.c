/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/network_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/record/canonical.h"
#include "vmm/wire/relay.h"

/* Questions or events in one turn: the rest of the run wants the supervisor, too. */
#define AT_ONCE 256

/* Streams that wait in the guest for somebody on the host. */
#define OFFERS 8U

/* Says the sentences that were not said, now that they may be. */
static void say(struct network_watch *watch)
{
	const struct network_report *report = watch->report;

	for (; !watch->hold && watch->said < report->denied.count; watch->said++)
		log_warning("%s", report->denied.list[watch->said].text);
	for (; !watch->hold && watch->failed_said < report->failed.count; watch->failed_said++)
		log_warning("%s", report->failed.list[watch->failed_said].text);
	for (; !watch->hold && watch->signed_said < report->signed_count; watch->signed_said++)
		log_warning("%s", report->signatures[watch->signed_said].sentence);
	if (!watch->hold && report->spent[0] && !watch->spent_said) {
		watch->spent_said = true;
		log_warning("%s", report->spent);
	}
}

static cJSON *make_line(const char *decision, const char *host, uint16_t port, const char *text)
{
	cJSON *line = cJSON_CreateObject();

	cJSON_AddStringToObject(line, "decision", decision);
	cJSON_AddItemToObject(line, "what", canonical_text(text, RELAY_EVENT_TEXT_BYTES));
	cJSON_AddItemToObject(line, "host", canonical_text(host, RELAY_NAME_BYTES));
	canonical_add_count(line, "port", port);
	return line;
}

/* @decision: allowed, denied or failed; of what is allowed when it is over. */
static void note(struct network_watch *watch, const char *decision, const char *host, uint16_t port,
		 const char *text, const struct relay_event *ended)
{
	cJSON *line = make_line(decision, host, port, text);

	if (ended) {
		canonical_add_count(line, "sent_bytes", (double)ended->sent);
		canonical_add_count(line, "received_bytes", (double)ended->received);
		canonical_add_count(line, "microseconds", (double)ended->microseconds);
	}
	record_event(watch->record, RECORD_NETWORK, line);
}

/* A secret was used, or hidden where a server said it again; or tokens that were given out for it
 * were replaced. */
static void note_secret(struct network_watch *watch, const struct relay_event *event)
{
	cJSON *line = cJSON_CreateObject();
	const bool used = event->type == RELAY_EVENT_SECRET;

	cJSON_AddItemToObject(line, "secret", canonical_text(event->text, LIMIT_SECRET_NAME_BYTES));
	cJSON_AddItemToObject(line, "host", canonical_text(event->host, RELAY_NAME_BYTES));
	canonical_add_count(line, "port", event->port);
	cJSON_AddStringToObject(line, "what",
				used                               ? "used"
				: event->type == RELAY_EVENT_TOKEN ? "tokens replaced"
								   : "masked");
	canonical_add_count(line, "count", (double)(used ? event->sent : event->received));
	record_event(watch->record, RECORD_SECRET, line);
}

static void deny(struct network_watch *watch, const char *host, uint16_t port, const char *sentence)
{
	note(watch, "denied", host, port, sentence, NULL);
	network_report_add_sentence(&watch->report->denied, host, port, sentence);
	say(watch);
}

/* A host that is allowed could not be reached. A program may try for ever: each sentence is told,
 * and on record, once. */
static void fail(struct network_watch *watch, const struct relay_event *event)
{
	const uint16_t port = (uint16_t)event->port;

	if (!network_report_add_sentence(&watch->report->failed, event->host, port, event->text))
		return;
	note(watch, "failed", event->host, port, event->text, NULL);
	say(watch);
}

/* Addresses that are allowed as such, port by port. */
void network_watch_begin(struct network_watch *watch)
{
	const struct route_policy *policy = &watch->settings->policy;
	struct names_greeting greeting = {.offers = watch->settings->published_count ? OFFERS : 0,
					  .proxy = watch->proxy,
					  .ssh_agent = watch->ssh_agent};
	uint8_t bytes[NAMES_GREETING_BYTES];
	size_t length;

	for (unsigned int i = 0; i < policy->count; i++) {
		const struct route_rule *rule = &policy->rules[i];
		char text[ADDRESS_TEXT_BYTES];
		uint16_t ports[LIMIT_ROUTE_PORTS];
		unsigned int count;

		if (rule->target != ROUTE_ADDRESS || rule->deny)
			continue;
		address_write(&rule->address, text);
		count = route_policy_ports(policy, text, strlen(text), ports);
		for (unsigned int j = 0; j < count; j++) {
			struct names_address *address = &greeting.addresses[greeting.address_count];

			if ((rule->port && ports[j] != rule->port) ||
			    greeting.address_count == LIMIT_ROUTE_ADDRESSES)
				continue;
			address->version = rule->address.family == AF_INET ? 4 : 6;
			memcpy(address->bytes, rule->address.bytes, sizeof(address->bytes));
			address->port = ports[j];
			greeting.address_count++;
		}
	}
	length = names_encode_greeting(&greeting, bytes);
	send(watch->names_fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Answers the question at the start of the bytes, if it is complete. 1, 0, or -errno when the guest
 * does not read. */
static int answer(struct network_watch *watch)
{
	const char *name = (const char *)watch->question + 1;
	size_t length = watch->question[0];
	struct names_answer answer = {0};
	uint8_t bytes[NAMES_ANSWER_BYTES];
	char sentence[ROUTE_SENTENCE_BYTES], host[NAME_BYTES];
	struct route_decision decision;
	const char *secret;
	size_t encoded;

	if (!watch->have || watch->have < 1 + length)
		return 0;
	secret = relay_settings_find_placeholder(watch->settings, name, length);
	if (!secret)
		answer.port_count = (uint8_t)route_policy_ports(&watch->settings->policy, name,
								length, answer.ports);
	if (secret) {
		snprintf(sentence, sizeof(sentence),
			 "a name with the placeholder of %s in it was asked for, and not looked up",
			 secret);
		deny(watch, "(placeholder)", 0, sentence);
	} else if (!answer.port_count && name_read(name, length, host) == 0) {
		decision = route_policy_decide(&watch->settings->policy, name, length, 0);
		route_explain(&decision, host, 0, sentence);
		deny(watch, host, 0, sentence);
	}
	encoded = names_encode_answer(&answer, bytes);
	watch->have -= 1 + length;
	memmove(watch->question, watch->question + 1 + length, watch->have);
	return send(watch->names_fd, bytes, encoded, MSG_DONTWAIT | MSG_NOSIGNAL) ==
			       (ssize_t)encoded
		       ? 1
		       : -ECONNRESET;
}

void network_watch_read_names(struct network_watch *watch)
{
	int result = 1;

	for (int i = 0; result > 0 && i < AT_ONCE; i++) {
		ssize_t count = recv(watch->names_fd, watch->question + watch->have,
				     sizeof(watch->question) - watch->have, MSG_DONTWAIT);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN)
			return;
		if (count <= 0) {
			result = -ECONNRESET;
			break;
		}
		watch->have += (size_t)count;
		do {
			result = answer(watch);
		} while (result > 0);
		result = result == 0 ? 1 : result;
	}
	if (result < 0)
		fd_close(&watch->names_fd);
}

/* The run has moved as many bytes as it may. */
static void note_spent(struct network_watch *watch, const struct relay_event *event)
{
	note(watch, "denied", event->host, 0, event->text, NULL);
	snprintf(watch->report->spent, sizeof(watch->report->spent), "%s", event->text);
	say(watch);
}

/* The user's ssh-agent has signed. */
static void note_signature(struct network_watch *watch, const struct relay_event *event)
{
	record_event(watch->record, RECORD_SIGNED,
		     make_line("allowed", event->host, (uint16_t)event->port, event->text));
	network_report_add_signature(watch->report, event);
	say(watch);
}

/* What had no room is on record as a number. */
static void note_untold(struct network_watch *watch, const char *decision, uint64_t count)
{
	cJSON *line;

	if (!count)
		return;
	line = cJSON_CreateObject();
	cJSON_AddStringToObject(line, "decision", decision);
	cJSON_AddStringToObject(line, "what", "more, of which there was no room to tell each");
	canonical_add_count(line, "count", (double)count);
	record_event(watch->record, RECORD_NETWORK, line);
}

void network_watch_end(struct network_watch *watch)
{
	watch->hold = false;
	say(watch);
	if (watch->report->denied.untold)
		log_warning("%llu more connections and names were denied",
			    (unsigned long long)watch->report->denied.untold);
	note_untold(watch, "failed", watch->report->failed.untold);
	if (watch->report->failed.untold)
		log_warning("%llu more connections to hosts that are allowed failed",
			    (unsigned long long)watch->report->failed.untold);
}

/* What a process says of itself. */
static void note_walls(struct network_watch *watch, const struct relay_event *event)
{
	for (unsigned int i = 0; i < watch->process_count; i++) {
		struct process *process = &watch->processes[i];

		if (!process->name || strcmp(process->name, event->text) != 0)
			continue;
		process->walls = (uint8_t)event->sent;
		process->walls_told = true;
	}
}

void network_watch_read_events(struct network_watch *watch)
{
	struct relay_event event;

	for (int i = 0; i < AT_ONCE && watch->event_fd >= 0; i++) {
		ssize_t length = recv(watch->event_fd, &event, sizeof(event), MSG_DONTWAIT);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return;
		if (length != sizeof(event)) {
			fd_close(&watch->event_fd);
			return;
		}
		/* Names come from the guest; that the relay is itself is not relied upon. */
		event.host[sizeof(event.host) - 1] = event.text[sizeof(event.text) - 1] = '\0';
		text_make_printable(event.host, strlen(event.host));
		text_make_printable(event.text, strlen(event.text));
		if (event.type == RELAY_EVENT_WALLS)
			note_walls(watch, &event);
		else if (event.type == RELAY_EVENT_SIGNED)
			note_signature(watch, &event);
		else if (event.type == RELAY_EVENT_SPENT)
			note_spent(watch, &event);
		else if (event.type == RELAY_EVENT_DENIED)
			deny(watch, event.host, (uint16_t)event.port, event.text);
		else if (event.type == RELAY_EVENT_FAILED)
			fail(watch, &event);
		else if (event.type == RELAY_EVENT_ENDED)
			note(watch, "allowed", event.host, (uint16_t)event.port,
			     "a connection is over", &event);
		if (event.type == RELAY_EVENT_SECRET || event.type == RELAY_EVENT_MASKED ||
		    event.type == RELAY_EVENT_TOKEN)
			note_secret(watch, &event);
		if (event.type == RELAY_EVENT_UNTOLD) {
			note_untold(watch, "denied", event.sent);
			note_untold(watch, "allowed", event.received);
		}
		network_report_add_event(watch->report, &event);
	}
}
