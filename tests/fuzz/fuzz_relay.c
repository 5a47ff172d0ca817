/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest says to mvagent-relay and to the supervisor about hosts, what a proxy answers, and
 * what is decided about it. What is accepted has one encoding only; no prefix of it is refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/relay/policy.h"
#include "vmm/relay/proxy.h"
#include "vmm/wire/names.h"
#include "vmm/wire/relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct route_policy *policy(void)
{
	static struct route_policy made;

	if (!made.count) {
		log_set_level(LOG_QUIET);
		route_policy_add(&made, false, "*.example.com", "a");
		route_policy_add(&made, true, "secret.example.com", "b");
		route_policy_add(&made, false, "10.0.0.5:5432", "c");
	}
	return &made;
}

/* Allowed are names below example.com, by their letters alone, and one address. */
static void check_decision(const char *name, size_t length, uint16_t port)
{
	struct route_decision decision = route_policy_decide(policy(), name, length, port);
	char form[NAME_BYTES], text[ROUTE_SENTENCE_BYTES];
	uint16_t ports[LIMIT_ROUTE_PORTS];
	unsigned int count = route_policy_ports(policy(), name, length, ports);
	struct address address;
	bool listed = false;

	for (unsigned int i = 0; i < count; i++)
		listed |= ports[i] == port;
	if (port && listed != (decision.verdict == ROUTE_ALLOWED))
		abort();
	if ((count > 0) !=
	    (route_policy_decide(policy(), name, length, 0).verdict == ROUTE_ALLOWED))
		abort();
	if (name_read(name, length, form) == 0) {
		route_explain(&decision, form, port, text);
		if (decision.verdict == ROUTE_ALLOWED &&
		    (!name_is_below(form, "example.com") ||
		     strcmp(form, "secret.example.com") == 0 || strlen(form) + 2 < length))
			abort();
	} else if (decision.verdict == ROUTE_ALLOWED && (address_read(name, length, &address) < 0 ||
							 address.bytes[0] != 10 || port != 5432)) {
		abort();
	}
}

static void check_request(const uint8_t *data, size_t size)
{
	struct relay_request request, part;
	uint8_t bytes[RELAY_REQUEST_BYTES];
	int result = relay_decode_request(data, size, &request);

	if (result <= 0)
		return;
	if (relay_encode_request(&request, bytes) != (size_t)result ||
	    memcmp(bytes, data, (size_t)result) != 0)
		abort();
	for (int prefix = 0; prefix < result; prefix++) {
		if (relay_decode_request(data, (size_t)prefix, &part) != 0)
			abort();
	}
	check_decision(request.name, request.name_length, request.port);
}

static void check_names(const uint8_t *data, size_t size)
{
	uint8_t bytes[NAMES_GREETING_BYTES];
	struct names_greeting greeting;
	struct names_answer answer;
	int result = names_decode_greeting(data, size, &greeting);

	if (result > 0 && (names_encode_greeting(&greeting, bytes) != (size_t)result ||
			   memcmp(bytes, data, (size_t)result) != 0))
		abort();
	result = names_decode_answer(data, size, &answer);
	if (result > 0 && (names_encode_answer(&answer, bytes) != (size_t)result ||
			   memcmp(bytes, data, (size_t)result) != 0))
		abort();
}

static void check_proxy(const uint8_t *data, size_t size)
{
	char *exact = malloc(size + 1);
	struct proxy proxy = {0};
	int head;

	if (!exact)
		return;
	memcpy(exact, data, size);
	head = proxy_response(exact, size);
	if (head > (int)size || (head > 0 && memcmp(exact + head - 4, "\r\n\r\n", 4) != 0))
		abort();
	exact[size] = '\0';
	if (proxy_read(&proxy, exact, "x") == 0 && (!proxy.host[0] || !proxy.port))
		abort();
	if (strlen(exact) < sizeof(proxy.exceptions)) {
		strcpy(proxy.exceptions, exact);
		proxy_is_exempt(&proxy, "a.example.com");
		proxy_is_exempt(&proxy, "10.0.0.5");
	}
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_request(data, size);
	check_names(data, size);
	check_proxy(data, size);
	if (size > 2)
		check_decision((const char *)data + 2, size - 2,
			       (uint16_t)(data[0] | data[1] << 8));
	return 0;
}
