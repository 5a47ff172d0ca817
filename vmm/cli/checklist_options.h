/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `mvagent review`: the options of run, and what only a review has; and what
 * the user has written down for all reviews. */
#ifndef MVAGENT_CLI_CHECKLIST_OPTIONS_H
#define MVAGENT_CLI_CHECKLIST_OPTIONS_H

#include "vmm/checklist/checklist.h"
#include "vmm/cli/run_options.h"

#define CHECKLIST_FILE_BYTES 65536U

struct checklist_options {
	struct run_options run;
	const char *from; /* a run on record, instead of probes */
	const char *html;
	const char *json;
	const char *rows; /* the register, as CSV or JSON by the name's end */
	struct checklist_register given;
	char *file; /* the user's own file, which the register points into; allocated */
};

/* As run_options_parse. Free in every case. */
enum run_options_result checklist_options_parse(struct checklist_options *options, int argc,
						char **argv);
void checklist_options_free(struct checklist_options *options);

/* Takes the lines "name = value" of @text, in place, for what is not set. 0 or -EINVAL with the
 * sentence printed. */
int checklist_take_file(struct checklist_register *given, char *text, const char *path);

#endif
