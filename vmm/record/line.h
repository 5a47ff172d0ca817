/* SPDX-License-Identifier: Apache-2.0 */
/* What those who write lines of a record and those who check them agree on. */
#ifndef MVAGENT_RECORD_LINE_H
#define MVAGENT_RECORD_LINE_H

#define LINE_NUMBER   "n"
#define LINE_PREVIOUS "previous"
#define LINE_TIME     "time"
#define LINE_EVENT    "event"

/* What the first line has as the hash of the line before. */
#define LINE_NO_HASH "0000000000000000000000000000000000000000000000000000000000000000"

/* The last line is signed (signed.h): these words come before what it says. */
#define LINE_SIGNED_WORDS "mvagent record 1\n"

#endif
