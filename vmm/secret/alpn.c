/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/alpn.h"

#include <errno.h>
#include <string.h>

static const uint8_t both[] = "\x02h2\x08http/1.1";
#define HTTP2_BYTES 3U /* of them */

/* Whether HTTP/2 is in the extension of a hello: lists of lists with lengths (RFC 7301, 3.1). What
 * is broken is refused by the library later. */
static bool offers_http2(const uint8_t *list, size_t length)
{
	size_t at = 2;

	while (at < length) {
		const size_t name = list[at];

		if (name > length - at - 1)
			return false;
		if (name == 2 && memcmp(list + at + 1, "h2", 2) == 0)
			return true;
		at += 1 + name;
	}
	return false;
}

/* SSL_CTX_set_client_hello_cb(3). Also for a second hello (RFC 8446, 4.1.2), which cannot change
 * what the first one said: choose_protocol sees to it. */
static int on_hello(SSL *ssl, int *alert, void *context)
{
	struct alpn *alpn = SSL_get_app_data(ssl);
	const uint8_t *list;
	size_t length;

	(void)alert;
	(void)context;
	if (!alpn->asked) {
		alpn->asked = true;
		alpn->http2 = SSL_client_hello_get0_ext(
				      ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
				      &list, &length) &&
			      offers_http2(list, length);
		alpn->settled = !alpn->http2;
	}
	return alpn->settled ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_RETRY;
}

static int choose_protocol(SSL *ssl, const uint8_t **out, uint8_t *out_length, const uint8_t *in,
			   unsigned int length, void *context)
{
	const struct alpn *alpn = SSL_get_app_data(ssl);
	const uint8_t *ours = alpn->http2 ? both : both + HTTP2_BYTES;
	const unsigned int ours_length =
		alpn->http2 ? HTTP2_BYTES : (unsigned int)sizeof(both) - 1 - HTTP2_BYTES;

	(void)context;
	return SSL_select_next_proto((uint8_t **)(uintptr_t)out, out_length, ours, ours_length, in,
				     length) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void alpn_set_callbacks(SSL_CTX *context)
{
	SSL_CTX_set_client_hello_cb(context, on_hello, NULL);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
}

void alpn_attach(struct alpn *alpn, SSL *guest)
{
	SSL_set_app_data(guest, alpn);
}

int alpn_ask_server(const struct alpn *alpn, SSL *server)
{
	const uint8_t *ours = alpn->http2 ? both : both + HTTP2_BYTES;
	const size_t length = sizeof(both) - 1 - (size_t)(ours - both);

	return SSL_set_alpn_protos(server, ours, (unsigned int)length) ? -ENOMEM : 0;
}

bool alpn_is_http2(const SSL *ssl)
{
	const uint8_t *name;
	unsigned int length;

	SSL_get0_alpn_selected(ssl, &name, &length);
	return length == 2 && memcmp(name, "h2", 2) == 0;
}

void alpn_settle(struct alpn *alpn, SSL *server)
{
	alpn->http2 = server && alpn_is_http2(server);
	alpn->settled = true;
}
