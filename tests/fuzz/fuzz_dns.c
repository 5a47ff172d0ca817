/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the guest's resolver, which knows names that begin with 'k' and addresses whose last
 * byte is odd. A response must repeat the identifier and be one, and no name may be found that has
 * other bytes than those of names. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find(void *context, const char *name, struct in_addr *address)
{
	size_t length = strlen(name);

	(void)context;
	if (!length || length >= DNS_NAME_BYTES)
		abort();
	for (size_t i = 0; i < length; i++) {
		if (name[i] <= ' ' || name[i] >= 0x7f || (name[i] >= 'A' && name[i] <= 'Z'))
			abort();
	}
	address->s_addr = htonl(0x7f4d0001);
	return name[0] == 'k';
}

static bool find_address(void *context, struct in_addr address, char name[DNS_NAME_BYTES])
{
	(void)context;
	strcpy(name, "api.example.com");
	return ntohl(address.s_addr) & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dns_names names = {.find = find, .find_address = find_address};
	uint8_t response[DNS_RESPONSE_BYTES];
	uint8_t *exact = malloc(size ? size : 1);
	size_t length;

	if (!exact)
		return 0;
	if (size)
		memcpy(exact, data, size);
	length = dns_answer(&names, exact, size, response);
	free(exact);
	if (!length)
		return 0;
	if (length < 12 || length > sizeof(response) || memcmp(response, data, 2) != 0 ||
	    !(response[2] & 0x80) || response[4] || response[5] > 1)
		abort();
	if ((response[3] & 0xf) && response[7])
		abort();
	return 0;
}
