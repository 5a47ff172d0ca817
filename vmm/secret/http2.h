/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 between a guest and one server (RFC 9113): two connections, one with each, whose streams
 * belong together in pairs. What is said in a stream passes as requests and answers of HTTP/1.1 do:
 * the same is put in, masked and stopped. Frames that are about a connection end here. The library
 * reads and writes frames; this decides what becomes of them. Without input or output of its own.
 */
#ifndef MVAGENT_SECRET_HTTP2_H
#define MVAGENT_SECRET_HTTP2_H

#include <sys/types.h>

#include "vmm/secret/http_head.h"
#include "vmm/secret/mask_table.h"
#include "vmm/secret/token_store.h"
#include "vmm/wire/relay.h"

struct http2;

enum http2_side { HTTP2_GUEST, HTTP2_SERVER };

struct http2_plan {
	struct http_target target; /* whose strings stay */
	const struct mask_table *masks;
	struct token_scope *tokens; /* NULL: the server gives out none */
	/* Something was stopped: @text is a sentence about it. May be called by http2_take. */
	void (*tell)(void *user, enum relay_event_type type, const char *text);
	void *user;
};

/* 0 or -ENOMEM. */
int http2_create(struct http2 **http2, const struct http2_plan *plan);
void http2_destroy(struct http2 *http2);

/* Whether a side may say more: not while much waits to be said because of it. */
bool http2_may_take(const struct http2 *http2, enum http2_side side);

/* Takes what a side said. 0; or -1: it cannot be understood, and both connections are over (which
 * was told). */
int http2_take(struct http2 *http2, enum http2_side side, const void *bytes, size_t length);

/* What is to be said to a side next, until the next call: its length; 0: nothing now; or -1: there
 * is no memory. */
ssize_t http2_give(struct http2 *http2, enum http2_side side, const uint8_t **bytes);

/* A side has ended its connection. */
void http2_end(struct http2 *http2, enum http2_side side);

/* Whether all is said, to this side. */
bool http2_is_over(const struct http2 *http2, enum http2_side side);

/* Whether in some answer there is what may be the start of a secret, and waits; and that it waits
 * no longer: masker_flush. */
bool http2_is_holding(const struct http2 *http2);
void http2_flush(struct http2 *http2);

/* How often each secret was put in, and masked. */
const uint64_t *http2_uses(const struct http2 *http2);
const uint64_t *http2_masked(const struct http2 *http2);

#endif
