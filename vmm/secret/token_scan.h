/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the tokens that a server gives out (access_token, refresh_token, id_token, however they are
 * written together or escaped), anywhere in what it says, and replaces each by a placeholder. In
 * JSON that is so however deep it lies; what is behind such a name in another form cannot be
 * replaced, and is stopped. It comes in pieces and leaves as long as it came: where a token was
 * escaped blanks follow its string. Pure but for the store.
 */
#ifndef MVAGENT_SECRET_TOKEN_SCAN_H
#define MVAGENT_SECRET_TOKEN_SCAN_H

#include <sys/types.h>

#include "vmm/secret/token_store.h"

#define TOKEN_WORD_BYTES 12U /* "refreshtoken" */

enum token_state {
	TOKEN_TEXT,
	TOKEN_NAMED,       /* a string that is such a name has ended */
	TOKEN_NAMED_ODDLY, /* the same, inside of a string or in quotes of another kind */
	TOKEN_ASSIGNED,    /* ':' has followed */
	TOKEN_VALUE,
};

/* Zero before use, but for .scope. */
struct token_scan {
	struct token_scope *scope;
	enum token_state state;
	unsigned int escape;         /* characters so far of one that is escaped */
	unsigned int code;           /* of \u */
	size_t word_length;          /* of the word that goes on, without '_' and '-' */
	char word[TOKEN_WORD_BYTES]; /* the end of it, in small letters */
	const char *reason;          /* once it is refused, as what follows "its answer " */
	size_t length;
	char held[LIMIT_SECRET_TOKEN_RAW_BYTES]; /* of a value that has begun */
};

/* What may be taken at once, so that what leaves is at most as much as a masker takes. */
#define TOKEN_SCAN_ROOM  16384U
#define TOKEN_SCAN_BYTES (TOKEN_SCAN_ROOM - LIMIT_SECRET_TOKEN_RAW_BYTES - 1U)

/* Takes the next bytes, at most TOKEN_SCAN_BYTES. What may leave goes to @out, which has room for
 * TOKEN_SCAN_ROOM. Returns its length, or -1 with .reason. */
ssize_t token_scan_put(struct token_scan *scan, const char *bytes, size_t length, char *out);

/* How much of what was taken waits, and is of a token. */
size_t token_scan_held(const struct token_scan *scan);

/* What was said ends here: the next one begins anew. 0; or -1 with .reason: it ends in a token. */
int token_scan_end(struct token_scan *scan);

/* Looks at the next bytes of a head, where no token can be replaced. 0 or -1 with .reason. */
int token_scan_look(struct token_scan *scan, const char *bytes, size_t length);

#endif
