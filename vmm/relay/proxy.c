/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/relay/address.h"

#define DEFAULT_PORT 80 /* of http:// */

static int hex_digit(char letter)
{
	if (letter >= '0' && letter <= '9')
		return letter - '0';
	letter |= 0x20;
	return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* RFC 3986, 2.1. Returns the decoded length. */
static size_t decode_percent(const char *text, size_t length, char *decoded)
{
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		if (text[i] == '%' && low >= 0) {
			decoded[made++] = (char)(high << 4 | low);
			i += 2;
		} else {
			decoded[made++] = text[i];
		}
	}
	return made;
}

/* RFC 4648, 4 */
static void encode_base64(const char *bytes, size_t length, char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		uint32_t group = (uint32_t)(uint8_t)bytes[i] << 16;

		if (i + 1 < length)
			group |= (uint32_t)(uint8_t)bytes[i + 1] << 8;
		if (i + 2 < length)
			group |= (uint8_t)bytes[i + 2];
		*text++ = digits[group >> 18];
		*text++ = digits[group >> 12 & 63];
		*text++ = i + 1 < length ? digits[group >> 6 & 63] : '=';
		*text++ = i + 2 < length ? digits[group & 63] : '=';
	}
	*text = '\0';
}

static int read_credentials(struct proxy *proxy, const char *text, size_t length)
{
	char decoded[PROXY_CREDENTIALS_BYTES / 2];

	if (length >= sizeof(decoded))
		return -EINVAL;
	length = decode_percent(text, length, decoded);
	if (!memchr(decoded, ':', length))
		decoded[length++] = ':';
	encode_base64(decoded, length, proxy->credentials);
	return 0;
}

static int read_place(struct proxy *proxy, const char *text, size_t length)
{
	const char *colon = memrchr(text, ':', length);
	struct address address;
	char port[8] = "";
	uint64_t number = DEFAULT_PORT;

	if (colon && (text[0] != '[' || colon[-1] == ']')) {
		size_t digits = length - (size_t)(colon - text) - 1;

		if (digits >= sizeof(port))
			return -EINVAL;
		memcpy(port, colon + 1, digits);
		if (number_parse(port, 1, UINT16_MAX, &number) < 0)
			return -EINVAL;
		length = (size_t)(colon - text);
	}
	proxy->port = (uint16_t)number;
	if (address_read(text, length, &address) == 0) {
		address_write(&address, proxy->host);
		return 0;
	}
	return name_read(text, length, proxy->host);
}

int proxy_read(struct proxy *proxy, const char *text, const char *variable)
{
	const char *scheme = strstr(text, "://"), *at;
	size_t length;
	int error = 0;

	if (scheme && strncasecmp(text, "http://", 7) != 0) {
		log_error("%s: only a proxy of the kind http:// can be used, not %.*s://", variable,
			  (int)(scheme - text), text);
		return -EINVAL;
	}
	text = scheme ? scheme + 3 : text;
	length = strcspn(text, "/?#");
	at = memrchr(text, '@', length);
	if (at) {
		error = read_credentials(proxy, text, (size_t)(at - text));
		length -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	if (!error)
		error = read_place(proxy, text, length);
	if (error) {
		proxy->host[0] = '\0';
		log_error("%s: it is no proxy that can be used: give http://HOST:PORT", variable);
	}
	return error;
}

/* One entry of the list, which is not empty. */
static bool covers(const char *entry, size_t length, const char *host)
{
	struct address listed, asked;
	char name[NAME_BYTES];

	if (length == 1 && *entry == '*')
		return true;
	if (address_read(entry, length, &listed) == 0)
		return address_read(host, strlen(host), &asked) == 0 &&
		       address_equals(&listed, &asked);
	if (length > 1 && *entry == '*') {
		entry++;
		length--;
	}
	if (length > 1 && *entry == '.') {
		entry++;
		length--;
	}
	return name_read(entry, length, name) == 0 &&
	       (strcmp(host, name) == 0 || name_is_below(host, name));
}

bool proxy_is_exempt(const struct proxy *proxy, const char *host)
{
	const char *next = proxy->exceptions;

	while (*(next += strspn(next, ", "))) {
		size_t length = strcspn(next, ", ");

		if (covers(next, length, host))
			return true;
		next += length;
	}
	return false;
}

size_t proxy_request(const struct proxy *proxy, const char *host, uint16_t port,
		     char request[PROXY_REQUEST_BYTES])
{
	const char *header = proxy->credentials[0] ? "Proxy-Authorization: Basic " : "";
	const char *end = proxy->credentials[0] ? "\r\n" : "";
	int length = snprintf(request, PROXY_REQUEST_BYTES,
			      "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n", host, port,
			      host, port, header, proxy->credentials, end);

	return (size_t)length;
}

int proxy_response(const char *bytes, size_t length)
{
	static const char start[] = "HTTP/1.";
	const char *end = memmem(bytes, length, "\r\n\r\n", 4);
	size_t known = length < sizeof(start) - 1 ? length : sizeof(start) - 1;
	int status = 0;

	if (memcmp(bytes, start, known) != 0)
		return -1;
	if (!end)
		return length >= PROXY_RESPONSE_BYTES ? -1 : 0;
	if (end - bytes < 12 || bytes[8] != ' ')
		return -1;
	for (int i = 9; i < 12; i++) {
		if (bytes[i] < '0' || bytes[i] > '9')
			return -1;
		status = 10 * status + bytes[i] - '0';
	}
	if (bytes[12] != ' ' && bytes[12] != '\r')
		return -1;
	if (status < 200 || status > 299)
		return status ? -status : -1;
	return (int)(end - bytes) + 4;
}
