/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/fd.h"

/* What may wait to be sent before more is written. */
#define ROOM_BYTES 65536

/* What may wait to be sent before more is read: more than is ever written, so that only answers of
 * TLS itself, to new keys without end (RFC 8446, 4.6.3), come to so much. */
#define ANSWERS_BYTES (3UL * ROOM_BYTES)

int tls_begin(struct tls *tls, SSL_CTX *context, const void *first, size_t length)
{
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	tls->ssl = SSL_new(context);
	if (!tls->ssl || !in || !out ||
	    (length && BIO_write(in, first, (int)length) != (int)length)) {
		BIO_free(in);
		BIO_free(out);
		SSL_free(tls->ssl);
		tls->ssl = NULL;
		return -ENOMEM;
	}
	BIO_set_mem_eof_return(in, -1); /* what is not there may come: BIO_s_mem(3) */
	SSL_set_bio(tls->ssl, in, out);
	if (SSL_is_server(tls->ssl))
		SSL_set_accept_state(tls->ssl);
	else
		SSL_set_connect_state(tls->ssl);
	return 0;
}

int tls_expect(struct tls *tls, const char *host)
{
	SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
					    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set_tlsext_host_name(tls->ssl, host) && SSL_set1_host(tls->ssl, host) ? 0
											 : -EINVAL;
}

static bool receive(struct tls *tls)
{
	uint8_t bytes[TLS_PIECE_BYTES];
	ssize_t count;

	if (tls->fd_over || BIO_ctrl_pending(SSL_get_rbio(tls->ssl)) >= ROOM_BYTES)
		return false;
	do {
		count = recv(tls->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (count < 0 && errno == EINTR);
	if (count < 0 && errno == EAGAIN)
		return false;
	if (count <= 0) {
		tls->fd_over = true;
		/* From here on want of bytes is their end. */
		BIO_set_mem_eof_return(SSL_get_rbio(tls->ssl), 0);
		return true;
	}
	if (BIO_write(SSL_get_rbio(tls->ssl), bytes, (int)count) != (int)count)
		tls->failed = true;
	return true;
}

static bool send_some(struct tls *tls)
{
	bool moved = false;

	for (;;) {
		ssize_t count;

		if (tls->offset == tls->length) {
			int length =
				BIO_read(SSL_get_wbio(tls->ssl), tls->bytes, sizeof(tls->bytes));

			if (length <= 0)
				break;
			tls->offset = 0;
			tls->length = (size_t)length;
		}
		count = send(tls->fd, tls->bytes + tls->offset, tls->length - tls->offset,
			     MSG_DONTWAIT | MSG_NOSIGNAL);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return moved;
		if (count < 0) {
			tls->failed = true;
			return true;
		}
		tls->offset += (size_t)count;
		moved = true;
	}
	if (tls->closed && !tls->shut) {
		shutdown(tls->fd, SHUT_WR);
		tls->shut = true;
		moved = true;
	}
	return moved;
}

static bool shake_hands(struct tls *tls)
{
	int result, error;

	if (tls->ready || tls->failed)
		return false;
	ERR_clear_error();
	result = SSL_do_handshake(tls->ssl);
	error = SSL_get_error(tls->ssl, result);
	tls->ready = result == 1;
	tls->failed = result != 1 && error != SSL_ERROR_WANT_READ &&
		      error != SSL_ERROR_WANT_CLIENT_HELLO_CB;
	if (tls->failed)
		tls->reason = ERR_reason_error_string(ERR_peek_error());
	return tls->ready || tls->failed;
}

bool tls_move(struct tls *tls)
{
	bool moved = receive(tls);

	moved |= shake_hands(tls);
	moved |= send_some(tls);
	return moved;
}

size_t tls_read(struct tls *tls, void *bytes, size_t size)
{
	int count, error;

	if (tls->over || tls->failed || BIO_ctrl_pending(SSL_get_wbio(tls->ssl)) > ANSWERS_BYTES)
		return 0;
	ERR_clear_error();
	count = SSL_read(tls->ssl, bytes, (int)size);
	if (count > 0)
		return (size_t)count;
	error = SSL_get_error(tls->ssl, count);
	if (error == SSL_ERROR_WANT_READ)
		return 0;
	if (error == SSL_ERROR_ZERO_RETURN)
		tls->over = tls->over_told = true;
	else if (tls->fd_over)
		tls->over = true; /* the connection ended without a word */
	else
		tls->failed = true;
	return 0;
}

bool tls_has_room(const struct tls *tls)
{
	return BIO_ctrl_pending(SSL_get_wbio(tls->ssl)) < ROOM_BYTES;
}

/* Into memory: it is taken at once, or the connection is over. */
void tls_write(struct tls *tls, const void *bytes, size_t length)
{
	ERR_clear_error();
	if (length && SSL_write(tls->ssl, bytes, (int)length) != (int)length)
		tls->failed = true;
}

void tls_close(struct tls *tls, bool told)
{
	if (tls->closed)
		return;
	ERR_clear_error();
	if (told && tls->ready)
		SSL_shutdown(tls->ssl);
	tls->closed = true;
}

bool tls_is_sent(const struct tls *tls)
{
	return tls->offset == tls->length && !BIO_ctrl_pending(SSL_get_wbio(tls->ssl)) &&
	       (!tls->closed || tls->shut);
}

void tls_explain(const struct tls *tls, char *text, size_t size)
{
	long verified = SSL_get_verify_result(tls->ssl);

	if (!SSL_is_server(tls->ssl) && verified != X509_V_OK)
		snprintf(text, size, "its certificate is not good: %s",
			 X509_verify_cert_error_string(verified));
	else if (tls->reason)
		snprintf(text, size, "TLS failed: %s", tls->reason);
	else
		snprintf(text, size, "the connection ended during the TLS handshake");
}

void tls_end(struct tls *tls)
{
	SSL_free(tls->ssl);
	tls->ssl = NULL;
	explicit_bzero(tls->bytes, sizeof(tls->bytes));
	fd_close(&tls->fd);
}
