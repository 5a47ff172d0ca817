/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as SSH writes them (RFC 4251, 5): each function takes the next value, or fails for good
 * when there is none. What is taken points into the bytes that are read. Pure. */
#ifndef MVAGENT_SIGN_READER_H
#define MVAGENT_SIGN_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	const uint8_t *data;
	size_t length;
};

struct reader {
	struct bytes rest;
	bool failed;
};

uint8_t reader_byte(struct reader *reader);
uint32_t reader_uint32(struct reader *reader);
struct bytes reader_string(struct reader *reader);

/* Whether all was as it should be, and nothing is left. */
bool reader_is_done(const struct reader *reader);

bool bytes_equal(struct bytes one, struct bytes other);
bool bytes_equal_text(struct bytes bytes, const char *text);

/* Copies text of which others will make sentences: what does not fit is left out. */
void bytes_copy_text(struct bytes bytes, char *to, size_t size);

/* Writers: the place behind what was written. There is room. */
uint8_t *put_uint32(uint8_t *to, uint32_t value);
uint8_t *put_string(uint8_t *to, struct bytes string);

#endif
