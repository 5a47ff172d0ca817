/* SPDX-License-Identifier: Apache-2.0 */
/* The first message of a TLS client (RFC 8446, 4.1.2): which server it asks for. Pure. */
#ifndef MVAGENT_RELAY_HELLO_H
#define MVAGENT_RELAY_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/relay/names.h"

enum hello {
	HELLO_MORE,      /* it may become one: more bytes are needed */
	HELLO_NOT_TLS,   /* something else */
	HELLO_NAMED,     /* it names a server (RFC 6066, 3) */
	HELLO_UNNAMED,   /* it names none */
	HELLO_ENCRYPTED, /* it names one in secret (Encrypted Client Hello) */
	HELLO_BROKEN,    /* it is TLS, but not such a message, or too long */
};

/* Looks at the first @length bytes of a connection. @name gets the server's name, in the form that
 * is compared; it is empty if it is no name of a host. */
enum hello hello_read(const uint8_t *bytes, size_t length, char name[NAME_BYTES]);

#endif
