/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in the query of a request, for those services that take them nowhere else. Pure. */
#ifndef MVAGENT_SECRET_HTTP_QUERY_H
#define MVAGENT_SECRET_HTTP_QUERY_H

#include "vmm/secret/http_head.h"

/* Puts secrets that may be there into the query of the first line (what is between '?' and '#', or
 * the end), encoded as URLs are: so it may get longer, up to LIMIT_SECRET_HEAD_BYTES. A head as
 * http_head_rewrite takes it. 0; or -1 with @reason. */
int http_query_rewrite(char *head, size_t *length, const struct http_target *target,
		       struct http_request *request, char reason[HTTP_REASON_BYTES]);

#endif
