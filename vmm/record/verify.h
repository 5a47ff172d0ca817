/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a record is what its run wrote: needs nothing but the file and a public key. */
#ifndef MVAGENT_RECORD_VERIFY_H
#define MVAGENT_RECORD_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/record/key.h"

enum record_verdict {
	RECORD_WHOLE,     /* every line is as it was written, and the end is signed by that key */
	RECORD_CUT,       /* so far as it goes, but it has no end: nothing vouches for it */
	RECORD_OTHER_KEY, /* whole in itself, and signed by another key */
	RECORD_ALTERED,
};

struct record_check {
	enum record_verdict verdict;
	uint64_t lines; /* whole ones in the file */
	uint64_t line;  /* RECORD_ALTERED: the first that is wrong, as it is counted in the file */
	char sentence[200];     /* says it all */
	uint8_t key[KEY_BYTES]; /* RECORD_WHOLE, RECORD_OTHER_KEY: who signed */
};

/* Checks the contents of a file. @trusted: the key that must have signed. 0 or -ENOMEM. */
int record_verify(struct record_check *check, const char *text, size_t length,
		  const uint8_t trusted[KEY_BYTES]);

#endif
