/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that are used for the guest, as options of `mvagent run` name them. */
#ifndef MVAGENT_CLI_RUN_SECRETS_H
#define MVAGENT_CLI_RUN_SECRETS_H

#include <getopt.h>
#include <stdbool.h>

#include "vmm/cli/run_variables.h"
#include "vmm/cli/secret_uses.h"
#include "vmm/relay/settings.h"
#include "vmm/secret/secret.h"

enum secret_source {
	SECRET_FROM_VARIABLE, /* of the same name */
	SECRET_FROM_FILE,
	SECRET_FROM_COMMAND,
};

/* Zero before use. */
struct run_secrets {
	struct secret_set *set; /* NULL: none */
	enum secret_source sources[LIMIT_SECRETS];
	char *places[LIMIT_SECRETS]; /* path or command; allocated */
	struct secret_uses uses;
};

/* Numbers of the options below, out of the way of a program's own. */
enum secret_option {
	SECRET_OPTION = 0x5000,
	SECRET_FILE_OPTION,
	SECRET_COMMAND_OPTION,
	SECRET_QUERY_OPTION,
	SECRET_OAUTH_OPTION,
	SECRET_OPTIONS_END,
};

#define SECRET_OPTIONS                                                          \
	{"secret", required_argument, NULL, SECRET_OPTION},                     \
		{"secret-file", required_argument, NULL, SECRET_FILE_OPTION},   \
		{"secret-cmd", required_argument, NULL, SECRET_COMMAND_OPTION}, \
		{"secret-query", required_argument, NULL, SECRET_QUERY_OPTION}, \
		{"secret-oauth", required_argument, NULL, SECRET_OAUTH_OPTION},

static inline bool secret_is_option(int option)
{
	return option >= SECRET_OPTION && option < SECRET_OPTIONS_END;
}

/* NAME@HOST[:PORT],..., or NAME=PLACE@HOST... of the next two; what uses the last two add. Also
 * allows the hosts. 0 or -errno with the sentence printed. */
int run_secrets_apply(struct run_secrets *secrets, struct route_policy *policy, int option,
		      const char *value);

/* Finds the values that nobody has to be asked for. @variables: of the user's, none of which may
 * have the name of a secret. 0 or -errno with the sentence printed. */
int run_secrets_find(struct run_secrets *secrets, const struct run_variables *variables);

/* Then: runs the commands of the others, and tells @settings of all. The same. */
int run_secrets_prepare(struct run_secrets *secrets, struct relay_settings *settings);

/* Opens the file of the certificates that programs of this host trust. A descriptor, or -errno with
 * the sentence printed. */
int run_secrets_open_trust(void);

/* Forgets the values, also in this process's environment: the one who needs them has them. */
void run_secrets_forget(struct run_secrets *secrets);

void run_secrets_free(struct run_secrets *secrets);

#endif
