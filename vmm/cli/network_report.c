/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/network_report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/text.h"

void network_report_add_frame(struct network_report *report, const void *bytes, size_t length)
{
	struct frame_summary *frame = &report->frames[report->frame_count];

	if (length != sizeof(*frame) || report->frame_count == NETWORK_REPORT_FRAMES)
		return;
	memcpy(frame, bytes, sizeof(*frame));
	if (frame->frame_class >= FRAME_CLASSES)
		return;
	frame->name[sizeof(frame->name) - 1] = '\0';
	text_make_printable(frame->name, strlen(frame->name));
	report->frame_count++;
}

bool network_report_add_sentence(struct network_sentences *sentences, const char *host,
				 uint16_t port, const char *text)
{
	struct network_sentence *added = sentences->list;
	const struct network_sentence *end = added + sentences->count;

	while (added < end && (added->port != port || strcmp(added->host, host) != 0 ||
			       strcmp(added->text, text) != 0))
		added++;
	if (added < end)
		return false;
	if (sentences->count == NETWORK_REPORT_SENTENCES) {
		sentences->untold++;
		return false;
	}
	snprintf(added->host, sizeof(added->host), "%s", host);
	snprintf(added->text, sizeof(added->text), "%s", text);
	added->port = port;
	sentences->count++;
	return true;
}

static void add_secret(struct network_report *report, const struct relay_event *event)
{
	struct network_secret *secret = report->secrets;
	const struct network_secret *end = report->secrets + report->secret_count;

	while (secret < end &&
	       (secret->port != event->port || strcmp(secret->host, event->host) != 0 ||
		strcmp(secret->name, event->text) != 0))
		secret++;
	if (secret == end && report->secret_count == NETWORK_REPORT_SECRETS)
		return;
	if (secret == end) {
		snprintf(secret->name, sizeof(secret->name), "%.*s", (int)sizeof(secret->name) - 1,
			 event->text);
		snprintf(secret->host, sizeof(secret->host), "%s", event->host);
		secret->port = (uint16_t)event->port;
		report->secret_count++;
	}
	secret->used += event->sent;
}

void network_report_add_signature(struct network_report *report, const struct relay_event *event)
{
	struct network_signature *added = report->signatures;
	const struct network_signature *end = added + report->signed_count;

	while (added < end && strcmp(added->sentence, event->text) != 0)
		added++;
	if (added == report->signatures + NETWORK_REPORT_SIGNATURES)
		return;
	if (added == end) {
		snprintf(added->sentence, sizeof(added->sentence), "%s", event->text);
		report->signed_count++;
	}
	added->count++;
}

void network_report_add_event(struct network_report *report, const struct relay_event *event)
{
	struct network_way *way = report->ways;

	if (event->type == RELAY_EVENT_SECRET)
		add_secret(report, event);
	if (event->type == RELAY_EVENT_UNTOLD)
		report->denied.untold += event->sent;
	if (event->type == RELAY_EVENT_MASKED)
		report->secrets_masked += event->received;
	if (event->type == RELAY_EVENT_TOKEN)
		report->tokens_replaced += event->received;
	if (event->type != RELAY_EVENT_ENDED && event->type != RELAY_EVENT_FAILED)
		return;
	while (way < report->ways + report->way_count &&
	       (way->port != event->port || strcmp(way->host, event->host) != 0))
		way++;
	if (way == report->ways + NETWORK_REPORT_WAYS)
		return;
	if (way == report->ways + report->way_count) {
		memcpy(way->host, event->host, sizeof(way->host));
		way->port = (uint16_t)event->port;
		report->way_count++;
	}
	if (event->type == RELAY_EVENT_FAILED)
		way->failures++;
	else
		way->connections++;
	way->sent += event->sent;
	way->received += event->received;
}

/* Empty when there is none. */
static void format_address(const struct frame_summary *frame, const uint8_t address[16],
			   char text[INET6_ADDRSTRLEN])
{
	text[0] = '\0';
	if (frame->version)
		inet_ntop(frame->version == 4 ? AF_INET : AF_INET6, address, text,
			  INET6_ADDRSTRLEN);
}

static const char *class_name(const struct frame_summary *frame)
{
	static const char *const names[FRAME_CLASSES] = {
		[FRAME_OTHER] = "other", [FRAME_ARP] = "arp",  [FRAME_TCP] = "tcp",
		[FRAME_UDP] = "udp",     [FRAME_NAME] = "dns", [FRAME_ICMP] = "icmp",
		[FRAME_IP] = "ip",
	};

	if (frame->frame_class == FRAME_NAME && frame->destination_port == 5353)
		return "mdns";
	if (frame->frame_class == FRAME_NAME && frame->destination_port == 5355)
		return "llmnr";
	if (frame->frame_class == FRAME_ICMP && frame->version == 6)
		return "icmpv6";
	return names[frame->frame_class];
}

void network_report_describe(const struct frame_summary *frame, char text[NETWORK_SENTENCE_BYTES])
{
	char to[INET6_ADDRSTRLEN];

	format_address(frame, frame->destination, to);
	switch (frame->frame_class) {
	case FRAME_ARP:
		snprintf(text, NETWORK_SENTENCE_BYTES, "arp for %s", to[0] ? to : "something");
		break;
	case FRAME_TCP:
	case FRAME_UDP:
		snprintf(text, NETWORK_SENTENCE_BYTES, "%s to %s port %u", class_name(frame), to,
			 frame->destination_port);
		break;
	case FRAME_NAME:
		snprintf(text, NETWORK_SENTENCE_BYTES, "%s question to %s for %s",
			 class_name(frame), to, frame->name);
		break;
	case FRAME_ICMP:
		snprintf(text, NETWORK_SENTENCE_BYTES, "%s type %u to %s", class_name(frame),
			 frame->destination_port, to);
		break;
	case FRAME_IP:
		snprintf(text, NETWORK_SENTENCE_BYTES, "ip protocol %u to %s", frame->protocol, to);
		break;
	default:
		snprintf(text, NETWORK_SENTENCE_BYTES, "ethertype 0x%04x", frame->ethertype);
		break;
	}
}

static cJSON *frame_json(const struct frame_summary *frame)
{
	cJSON *object = cJSON_CreateObject();
	char address[INET6_ADDRSTRLEN], ethertype[8];

	cJSON_AddStringToObject(object, "kind", class_name(frame));
	snprintf(ethertype, sizeof(ethertype), "0x%04x", frame->ethertype);
	cJSON_AddStringToObject(object, "ethertype", ethertype);
	if (frame->version) {
		cJSON_AddNumberToObject(object, "protocol", frame->protocol);
		format_address(frame, frame->source, address);
		cJSON_AddStringToObject(object, "source", address);
		format_address(frame, frame->destination, address);
		cJSON_AddStringToObject(object, "destination", address);
	}
	if (frame->source_port || frame->destination_port) {
		cJSON_AddNumberToObject(object, "source_port", frame->source_port);
		cJSON_AddNumberToObject(object, "destination_port", frame->destination_port);
	}
	if (frame->name[0])
		cJSON_AddStringToObject(object, "name", frame->name);
	return object;
}

static void add_sentences_json(const struct network_sentences *sentences, cJSON *array)
{
	for (unsigned int i = 0; i < sentences->count; i++) {
		const struct network_sentence *sentence = &sentences->list[i];
		cJSON *object = cJSON_CreateObject();

		cJSON_AddStringToObject(object, "host", sentence->host);
		if (sentence->port)
			cJSON_AddNumberToObject(object, "port", sentence->port);
		cJSON_AddStringToObject(object, "reason", sentence->text);
		cJSON_AddItemToArray(array, object);
	}
}

static void add_denied_json(const struct network_report *report, cJSON *network)
{
	add_sentences_json(&report->denied, cJSON_AddArrayToObject(network, "denied"));
	cJSON_AddNumberToObject(network, "denials_untold", (double)report->denied.untold);
	add_sentences_json(&report->failed, cJSON_AddArrayToObject(network, "failed"));
	cJSON_AddNumberToObject(network, "failures_untold", (double)report->failed.untold);
	cJSON_AddBoolToObject(network, "byte_limit_reached", report->spent[0] != '\0');
}

static void add_ways_json(const struct network_report *report, cJSON *network)
{
	cJSON *ways = cJSON_AddArrayToObject(network, "reached");

	for (unsigned int i = 0; i < report->way_count; i++) {
		const struct network_way *way = &report->ways[i];
		cJSON *object = cJSON_CreateObject();

		cJSON_AddStringToObject(object, "host", way->host);
		cJSON_AddNumberToObject(object, "port", way->port);
		cJSON_AddNumberToObject(object, "connections", (double)way->connections);
		cJSON_AddNumberToObject(object, "failures", (double)way->failures);
		cJSON_AddNumberToObject(object, "bytes_sent", (double)way->sent);
		cJSON_AddNumberToObject(object, "bytes_received", (double)way->received);
		cJSON_AddItemToArray(ways, object);
	}
}

static void add_secrets_json(const struct network_report *report, cJSON *network)
{
	cJSON *secrets = cJSON_AddArrayToObject(network, "secrets");

	for (unsigned int i = 0; i < report->secret_count; i++) {
		const struct network_secret *secret = &report->secrets[i];
		cJSON *object = cJSON_CreateObject();

		cJSON_AddStringToObject(object, "name", secret->name);
		cJSON_AddStringToObject(object, "host", secret->host);
		cJSON_AddNumberToObject(object, "port", secret->port);
		cJSON_AddNumberToObject(object, "used", (double)secret->used);
		cJSON_AddItemToArray(secrets, object);
	}
	cJSON_AddNumberToObject(network, "secrets_masked", (double)report->secrets_masked);
	cJSON_AddNumberToObject(network, "tokens_replaced", (double)report->tokens_replaced);
}

static void add_signatures_json(const struct network_report *report, cJSON *network)
{
	cJSON *signatures = cJSON_AddArrayToObject(network, "signatures");

	for (unsigned int i = 0; i < report->signed_count; i++) {
		cJSON *object = cJSON_CreateObject();

		cJSON_AddStringToObject(object, "what", report->signatures[i].sentence);
		cJSON_AddNumberToObject(object, "count", (double)report->signatures[i].count);
		cJSON_AddItemToArray(signatures, object);
	}
}

void network_report_add_json(const struct network_report *report,
			     const struct monitor_counters *counters, cJSON *root)
{
	cJSON *network = cJSON_AddObjectToObject(root, "network");
	cJSON *frames;

	cJSON_AddNumberToObject(network, "frames_dropped", (double)counters->frames_dropped);
	cJSON_AddNumberToObject(network, "bytes_dropped", (double)counters->bytes_dropped);
	cJSON_AddNumberToObject(network, "frames_untold", (double)counters->frames_untold);
	frames = cJSON_AddArrayToObject(network, "first_frames");
	for (unsigned int i = 0; i < report->frame_count; i++)
		cJSON_AddItemToArray(frames, frame_json(&report->frames[i]));
	add_ways_json(report, network);
	add_denied_json(report, network);
	add_secrets_json(report, network);
	add_signatures_json(report, network);
}

void network_report_log(const struct network_report *report,
			const struct monitor_counters *counters)
{
	char text[NETWORK_SENTENCE_BYTES];

	log_info("network: %llu frames dropped by the card, which leads nowhere",
		 (unsigned long long)counters->frames_dropped);
	for (unsigned int i = 0; i < report->frame_count; i++) {
		network_report_describe(&report->frames[i], text);
		log_info("network: first of its kind: %s", text);
	}
	for (unsigned int i = 0; i < report->way_count; i++) {
		const struct network_way *way = &report->ways[i];

		log_info("network: %s:%u: %llu connections, %llu bytes sent, %llu received, %llu "
			 "failures",
			 way->host, way->port, (unsigned long long)way->connections,
			 (unsigned long long)way->sent, (unsigned long long)way->received,
			 (unsigned long long)way->failures);
	}
	for (unsigned int i = 0; i < report->secret_count; i++)
		log_info("network: %s was used %llu times for %s:%u", report->secrets[i].name,
			 (unsigned long long)report->secrets[i].used, report->secrets[i].host,
			 report->secrets[i].port);
	if (counters->frames_untold)
		log_info("network: %llu more frames were of kinds that had no room here",
			 (unsigned long long)counters->frames_untold);
}
