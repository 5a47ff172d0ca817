/* SPDX-License-Identifier: Apache-2.0 */
/* What the command tried to reach by the network card, which leads nowhere: for -v and --json. */
#ifndef MVAGENT_CLI_NETWORK_REPORT_H
#define MVAGENT_CLI_NETWORK_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "vmm/base/limits.h"
#include "vmm/wire/frame.h"
#include "vmm/wire/monitor.h"
#include "vmm/wire/relay.h"

#define NETWORK_REPORT_FRAMES (FRAME_CLASSES * LIMIT_FRAMES_OF_A_CLASS)

#define NETWORK_REPORT_SENTENCES LIMIT_RELAY_DENIALS
#define NETWORK_REPORT_WAYS      256U

struct network_sentence {
	char host[RELAY_NAME_BYTES + 1];
	uint16_t port; /* 0: the name was asked for */
	char text[RELAY_EVENT_TEXT_BYTES];
};

/* Each once, in order. */
struct network_sentences {
	unsigned int count;
	uint64_t untold; /* for which there was no room */
	struct network_sentence list[NETWORK_REPORT_SENTENCES];
};

/* A host and port that was reached, or was to be. */
struct network_way {
	char host[RELAY_NAME_BYTES + 1];
	uint16_t port;
	uint64_t connections, failures, sent, received;
};

/* A secret and a host that it was used for. */
struct network_secret {
	char name[LIMIT_SECRET_NAME_BYTES + 1];
	char host[RELAY_NAME_BYTES + 1];
	uint16_t port;
	uint64_t used;
};

/* What the user's ssh-agent has signed. */
struct network_signature {
	char sentence[RELAY_EVENT_TEXT_BYTES];
	uint64_t count;
};

#define NETWORK_REPORT_SIGNATURES 64U

#define NETWORK_REPORT_SECRETS (LIMIT_SECRETS * 4)

struct network_report {
	unsigned int secret_count;
	struct network_secret secrets[NETWORK_REPORT_SECRETS];
	uint64_t secrets_masked;  /* in what servers said */
	uint64_t tokens_replaced; /* that servers gave out */
	unsigned int frame_count;
	struct frame_summary frames[NETWORK_REPORT_FRAMES]; /* the first of each kind, in order */
	struct network_sentences denied;
	struct network_sentences failed; /* what is allowed, and could not be reached */
	unsigned int signed_count;
	struct network_signature signatures[NETWORK_REPORT_SIGNATURES];
	char spent[RELAY_EVENT_TEXT_BYTES]; /* --allow-bytes are used up; "": they are not */
	unsigned int way_count;
	struct network_way ways[NETWORK_REPORT_WAYS];
};

#define NETWORK_SENTENCE_BYTES 512

/* Adds what mvagent-vmm sent, if it is a summary and there is room. */
void network_report_add_frame(struct network_report *report, const void *bytes, size_t length);

/* Adds a sentence about a host and port, unless it is there. Whether it was added; else it was
 * there or there was no room. */
bool network_report_add_sentence(struct network_sentences *sentences, const char *host,
				 uint16_t port, const char *text);

/* Adds a connection that is over, or one that failed. */
void network_report_add_event(struct network_report *report, const struct relay_event *event);

/* Adds a signature; those of the same words are there once. */
void network_report_add_signature(struct network_report *report, const struct relay_event *event);

/* Says in words what a frame was for. */
void network_report_describe(const struct frame_summary *frame, char text[NETWORK_SENTENCE_BYTES]);

/* Adds the object "network". */
void network_report_add_json(const struct network_report *report,
			     const struct monitor_counters *counters, cJSON *root);

/* Prints it at LOG_VERBOSE. */
void network_report_log(const struct network_report *report,
			const struct monitor_counters *counters);

#endif
