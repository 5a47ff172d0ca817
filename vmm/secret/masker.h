/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server says, with each secret in it replaced by its placeholder, in every form of the
 * table, which is as long: nothing else changes. Of a secret that is cut short the beginning is
 * replaced too. It comes in pieces, and a secret may be in several. Pure.
 */
#ifndef MVAGENT_SECRET_MASKER_H
#define MVAGENT_SECRET_MASKER_H

#include "vmm/secret/mask_table.h"

#define MASKER_PIECE_BYTES 16384U

/* Zero before use, but for .table. */
struct masker {
	const struct mask_table *table;
	uint64_t masked[LIMIT_SECRETS]; /* occurrences of each */
	size_t length;
	size_t passed;                                    /* of these, the first ones have left */
	char bytes[MASK_FORM_BYTES + MASKER_PIECE_BYTES]; /* what may be the start of one */
};

/* Takes the next bytes, at most MASKER_PIECE_BYTES, and gives what may leave to @out, which has
 * room for sizeof(masker->bytes). Returns its length. */
size_t masker_put(struct masker *masker, const void *bytes, size_t length, char *out);

/* Whether something waits for what comes next. */
bool masker_is_holding(const struct masker *masker);

/* Nothing came for a while, or will: what waits may leave. If it is the start of a secret and more
 * than a few bytes, they are replaced; if the rest comes later, that is replaced in any case.
 * Returns the length of what may leave. */
size_t masker_flush(struct masker *masker, char *out);

#endif
