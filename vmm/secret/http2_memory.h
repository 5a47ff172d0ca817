/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the library that speaks HTTP/2: bounded, and wiped when it is given back, for secrets
 * are in what it packs and unpacks. */
#ifndef MVAGENT_SECRET_HTTP2_MEMORY_H
#define MVAGENT_SECRET_HTTP2_MEMORY_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>

/* Must stay where it is while anything of it is in use. */
struct http2_memory {
	size_t used, limit; /* bytes */
	nghttp2_mem functions;
};

void http2_memory_begin(struct http2_memory *memory, size_t limit);

#endif
