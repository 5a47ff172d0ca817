/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a TLS connection over a non-blocking stream socket, which is read and written here and
 * nowhere else. */
#ifndef MVAGENT_SECRET_TLS_H
#define MVAGENT_SECRET_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TLS_PIECE_BYTES 16384U /* of plain text in one record: RFC 8446, 5.1 */

/* Zero before use, but for .fd. */
struct tls {
	int fd; /* -1: none */
	SSL *ssl;
	bool ready;            /* the handshake is over */
	bool failed;           /* it will not be, or the connection has broken */
	bool fd_over;          /* the socket has had its end */
	bool over;             /* nothing more is to be read */
	bool over_told;        /* the other end has said so (close_notify): nothing was cut off */
	bool closed;           /* our close_notify is among what is to be sent */
	bool shut;             /* and so is the end of the socket */
	const char *reason;    /* why the handshake failed, in OpenSSL's words; or NULL */
	size_t offset, length; /* of what the socket did not take */
	uint8_t bytes[TLS_PIECE_BYTES];
};

/* Begins. @first: bytes that were read from the socket before. 0 or -errno; then there is nothing
 * to be ended but .fd. */
int tls_begin(struct tls *tls, SSL_CTX *context, const void *first, size_t length);

/* For a client, before the first tls_handshake: the name that it asks for and that the certificate
 * must have. */
int tls_expect(struct tls *tls, const char *host);

/* Moves what the socket has and takes, and goes on with the handshake. Whether anything moved. */
bool tls_move(struct tls *tls);

/* Plain text: the length, or 0 when there is none now, or no more (.over), or it is broken
 * (.failed). At most TLS_PIECE_BYTES. */
size_t tls_read(struct tls *tls, void *bytes, size_t size);

/* Whether there is room for one more tls_write. */
bool tls_has_room(const struct tls *tls);
void tls_write(struct tls *tls, const void *bytes, size_t length);

/* Says that nothing more comes. @told: by close_notify, or else as if cut off. */
void tls_close(struct tls *tls, bool told);

/* Whether all that was written has left. */
bool tls_is_sent(const struct tls *tls);

/* Why the handshake failed, in words. */
void tls_explain(const struct tls *tls, char *text, size_t size);

/* Ends it and closes the socket. */
void tls_end(struct tls *tls);

#endif
