/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that the command is given: --env and --env-file. */
#ifndef MVAGENT_CLI_RUN_VARIABLES_H
#define MVAGENT_CLI_RUN_VARIABLES_H

/* How much of a file is read. */
#define RUN_VARIABLES_FILE_BYTES (256U << 10)

struct run_variable {
	char *text;       /* NAME=VALUE, or NAME, a variable of the user's that is set; allocated */
	const char *file; /* of --env-file; NULL: it is one of --env */
};

/* Zero before use. */
struct run_variables {
	unsigned int count;
	unsigned int from_files; /* they come first, because those of --env count more */
	struct run_variable *list;
};

/* NAME=VALUE or NAME, of --env. 0 or -errno with the sentence printed. */
int run_variables_add(struct run_variables *variables, const char *value);

/* A file of such, one a line, as it stands: no quotes, no continued lines, nothing put in for
 * $NAME. Empty lines and those that begin with # are left out. @path has to outlive @variables. 0
 * or -errno with the sentence printed; it shows nothing of the file, which may be a secret. */
int run_variables_add_file(struct run_variables *variables, const char *path);

/* NULL: the user has unset it. */
const char *run_variable_value(const struct run_variable *variable);

void run_variables_free(struct run_variables *variables);

#endif
