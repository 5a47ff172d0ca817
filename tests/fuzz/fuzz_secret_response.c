/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says to a guest whose secrets it has been told. No secret leaves whole, however it
 * is cut, into pieces and into chunks; whether an answer makes sense does not depend on the cuts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VALUE "S3CRET-S3CRET"
/* No form of it has a letter of the value in it, which would make one of what is around it. */
#define PLACE "~~~~~~~~~~~~~"

static const struct mask_table *the_table(void)
{
	static struct mask_table *table;
	static struct secret_set set;

	if (!table) {
		set.count = 1;
		set.secrets[0].length = strlen(VALUE);
		memcpy(set.secrets[0].value, VALUE, sizeof(VALUE));
		memcpy(set.secrets[0].placeholder, PLACE, sizeof(PLACE));
		if (mask_table_create(&table, &set) < 0)
			abort();
	}
	return table;
}

/* The contents of what left, without the lines around chunks, are what is looked through: where no
 * line ends there is none. */
static void check(const char *out, size_t length)
{
	if (memmem(out, length, VALUE, strlen(VALUE)))
		abort();
}

/* Whether it was refused. */
static bool pass(const uint8_t *data, size_t size, size_t piece, uint64_t heads)
{
	struct request_stream *request = calloc(1, sizeof(*request));
	struct response_stream *response = calloc(1, sizeof(*response));
	char *out = malloc(2 * RESPONSE_ROOM);
	size_t taken, kept = 0;
	ssize_t length = 0;

	if (!request || !response || !out)
		abort();
	request->begun = REQUEST_UNANSWERED;
	request->heads = heads;
	request->state = heads & 2 ? REQUEST_WAITS : REQUEST_HEAD;
	response->request = request;
	response->masker.table = the_table();
	for (size_t done = 0; done < size && length >= 0; done += taken) {
		length = response_take(response, (const char *)data + done,
				       (size_t)bytes_minimum(piece, size - done), &taken,
				       out + kept);
		if (length < 0)
			break;
		if ((size_t)length > RESPONSE_ROOM || !taken)
			abort();
		check(out, kept + (size_t)length);
		/* The end of it may be the beginning of one. */
		kept += (size_t)length;
		if (kept >= strlen(VALUE)) {
			memmove(out, out + kept - strlen(VALUE) + 1, strlen(VALUE) - 1);
			kept = strlen(VALUE) - 1;
		}
	}
	if (length < 0 && !response->reason)
		abort();
	check(out, kept + response_flush(response, out + kept));
	free(out);
	free(response);
	free(request);
	return length < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 100000)
		return 0;
	if (pass(data + 1, size - 1, MASKER_PIECE_BYTES, data[0]) !=
	    pass(data + 1, size - 1, 1 + size % 13, data[0]))
		abort();
	return 0;
}
