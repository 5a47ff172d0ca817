/* SPDX-License-Identifier: Apache-2.0 */
/* What those who write lines of a record and those who check them agree on. */
#ifndef MVAGENT_RECORD_LINE_H
#define MVAGENT_RECORD_LINE_H

#include <cjson/cJSON.h>

#define LINE_NUMBER    "n"
#define LINE_PREVIOUS  "previous"
#define LINE_TIME      "time"
#define LINE_EVENT     "event"
#define LINE_KEY       "key"
#define LINE_SIGNATURE "signature"

/* What the first line has as the hash of the line before. */
#define LINE_NO_HASH "0000000000000000000000000000000000000000000000000000000000000000"

/* What is signed: these words, and the last line as it would be without its signature. */
#define LINE_SIGNED_PREFIX "mvagent record 1\n"

/* That text; allocated. NULL: no memory. @line is left without a signature. */
char *line_signed_text(cJSON *line);

#endif
