/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own way out when it is an HTTP proxy: the CONNECT request and what it answers (RFC
 * 9110, 9.3.6). Pure. */
#ifndef MVAGENT_RELAY_PROXY_H
#define MVAGENT_RELAY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/relay/names.h"

#define PROXY_CREDENTIALS_BYTES 512
#define PROXY_REQUEST_BYTES     2048
#define PROXY_RESPONSE_BYTES    8192 /* its head, at most */

struct proxy {
	char host[NAME_BYTES]; /* empty: there is none */
	uint16_t port;
	char credentials[PROXY_CREDENTIALS_BYTES]; /* for Basic, encoded; or empty */
	char exceptions[2048];                     /* as in NO_PROXY */
};

/* Reads http://[USER[:PASSWORD]@]HOST[:PORT][/], scheme and path may be missing. 0, or -EINVAL with
 * a sentence printed that does not show the password; @variable is where it came from. */
int proxy_read(struct proxy *proxy, const char *text, const char *variable);

/* Whether @host (a name in its one form, or an address as text) is reached without it: NO_PROXY is
 * a list of *, names that mean themselves and all below them, and addresses. */
bool proxy_is_exempt(const struct proxy *proxy, const char *host);

/* Returns the request's length. */
size_t proxy_request(const struct proxy *proxy, const char *host, uint16_t port,
		     char request[PROXY_REQUEST_BYTES]);

/* Returns the length of the answer's head, which says yes; 0 when it is not complete; or minus the
 * status that it has, -1 for what is no answer at all. */
int proxy_response(const char *bytes, size_t length);

#endif
