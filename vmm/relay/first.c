/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/first.h"

#include <stdio.h>
#include <string.h>

#include "vmm/relay/hello.h"

static enum first_verdict refuse(char reason[FIRST_REASON_BYTES], const char *text)
{
	snprintf(reason, FIRST_REASON_BYTES, "%s; --allow-any-sni would let it pass", text);
	return FIRST_REFUSE;
}

static enum first_verdict judge_name(const char *host, const char *name,
				     char reason[FIRST_REASON_BYTES])
{
	char text[FIRST_REASON_BYTES / 2 + NAME_BYTES / 2];

	if (strcmp(host, name) == 0)
		return FIRST_PASS;
	snprintf(text, sizeof(text), "its TLS asks for another server, %.*s", 200,
		 *name ? name : "which is no host's name");
	return refuse(reason, text);
}

enum first_verdict first_judge(const struct route_policy *policy, const char *host, bool is_address,
			       uint16_t port, const uint8_t *bytes, size_t length, bool over,
			       char reason[FIRST_REASON_BYTES])
{
	char name[NAME_BYTES];

	if (is_address || policy->any_server_name || (over && !length))
		return FIRST_PASS;
	switch (hello_read(bytes, length, name)) {
	case HELLO_MORE:
		return over || length >= LIMIT_RELAY_FIRST_BYTES
			       ? refuse(reason, "its TLS does not say which server it asks for")
			       : FIRST_MORE;
	case HELLO_NOT_TLS:
		return port == ROUTE_PORT_TLS ? refuse(reason, "it is not TLS") : FIRST_PASS;
	case HELLO_NAMED:
		return judge_name(host, name, reason);
	case HELLO_UNNAMED:
		return refuse(reason, "its TLS does not say which server it asks for (no SNI)");
	case HELLO_ENCRYPTED:
		return refuse(reason, "its TLS says only in secret which server it asks for "
				      "(Encrypted Client Hello)");
	case HELLO_BROKEN:
		break;
	}
	return refuse(reason, "it begins like TLS and is none");
}

enum first_verdict first_judge_secret(const char *host, const uint8_t *bytes, size_t length,
				      bool over, char reason[FIRST_REASON_BYTES])
{
	char name[NAME_BYTES];
	enum hello hello = hello_read(bytes, length, name);

	if (hello == HELLO_MORE && !over && length < LIMIT_RELAY_FIRST_BYTES)
		return FIRST_MORE;
	if (hello == HELLO_NAMED && strcmp(host, name) == 0)
		return FIRST_TERMINATE;
	snprintf(reason, FIRST_REASON_BYTES,
		 "a secret is for this host, and only TLS that asks for it by name reaches it");
	return FIRST_REFUSE;
}
