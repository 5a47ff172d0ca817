/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which HTTP is spoken (RFC 7301): HTTP/2 if the guest and the server both do, and else HTTP/1.1.
 * The guest is asked first; then the server; and only then is the guest answered.
 */
#ifndef MVAGENT_SECRET_ALPN_H
#define MVAGENT_SECRET_ALPN_H

#include <openssl/ssl.h>
#include <stdbool.h>

/* Of one connection; zero before use. */
struct alpn {
	bool asked;   /* it is known what the guest speaks */
	bool http2;   /* HTTP/2, as far as is known */
	bool settled; /* the server has answered, or HTTP/2 is out of question */
};

/* For contexts of TLS with guests. */
void alpn_set_callbacks(SSL_CTX *context);

/* For a connection with a guest, in such a context: its handshake stops until it is settled. */
void alpn_attach(struct alpn *alpn, SSL *guest);

/* Asks the server, before its handshake. 0 or -ENOMEM. */
int alpn_ask_server(const struct alpn *alpn, SSL *server);

/* The server's handshake is over; NULL: it has failed. */
void alpn_settle(struct alpn *alpn, SSL *server);

/* Whether HTTP/2 was agreed on. */
bool alpn_is_http2(const SSL *ssl);

#endif
