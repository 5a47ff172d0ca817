/* SPDX-License-Identifier: Apache-2.0 */
/* Ways out of the guest, as options of `mvagent run` and `mvagent policy check` name them. */
#ifndef MVAGENT_CLI_RUN_NETWORK_H
#define MVAGENT_CLI_RUN_NETWORK_H

#include <getopt.h>
#include <stdbool.h>

#include "vmm/cli/allow_from.h"
#include "vmm/relay/settings.h"

/* Zero before use. */
struct run_network {
	struct relay_settings settings;
	bool proxy_env;           /* a proxy in the guest, and variables that name it */
	bool from[ALLOW_CLIENTS]; /* clients to be asked: run_network_ask_clients */
};

/* Numbers of the options below, out of the way of a program's own. */
enum network_option {
	NETWORK_ALLOW = 0x4000,
	NETWORK_DENY,
	NETWORK_ALLOW_FILE,
	NETWORK_ALLOW_PRESET,
	NETWORK_ALLOW_FROM,
	NETWORK_ANY_SNI,
	NETWORK_RESOLVER,
	NETWORK_PUBLISH,
	NETWORK_ALLOW_BYTES,
	NETWORK_PROXY_ENV,
	NETWORK_OPTIONS_END,
};

/* Entries of a program's table, and what --help says of those that policy check knows too. */
#define NETWORK_POLICY_OPTIONS                                                   \
	{"allow", required_argument, NULL, NETWORK_ALLOW},                       \
		{"deny", required_argument, NULL, NETWORK_DENY},                 \
		{"allow-file", required_argument, NULL, NETWORK_ALLOW_FILE},     \
		{"allow-preset", required_argument, NULL, NETWORK_ALLOW_PRESET}, \
		{"allow-from", required_argument, NULL, NETWORK_ALLOW_FROM},

#define NETWORK_OPTIONS                                                              \
	NETWORK_POLICY_OPTIONS{"allow-any-sni", no_argument, NULL, NETWORK_ANY_SNI}, \
		{"resolver", required_argument, NULL, NETWORK_RESOLVER},             \
		{"publish", required_argument, NULL, NETWORK_PUBLISH},               \
		{"allow-bytes", required_argument, NULL, NETWORK_ALLOW_BYTES},       \
		{"proxy-env", no_argument, NULL, NETWORK_PROXY_ENV},

static inline bool network_is_option(int option)
{
	return option >= NETWORK_ALLOW && option < NETWORK_OPTIONS_END;
}

/* Applies one of them. 0 or -errno with the sentence printed. */
int run_network_apply(struct run_network *network, int option, const char *value);

/* Asks the user's clients of --allow-from for their hosts; git for the remotes of @directories. 0
 * or -errno with the sentence printed. */
int run_network_ask_clients(struct run_network *network, const char *const *directories,
			    unsigned int count);

/* Whether anything is allowed or published, so that there must be a relay. */
bool run_network_needs_relay(const struct run_network *network);

/* Finds the proxy that the host's own programs are to use: HTTPS_PROXY, ALL_PROXY and NO_PROXY, in
 * large or small letters. 0 or -errno with the sentence printed. */
int run_network_find_proxy(struct run_network *network);

void run_network_free(struct run_network *network);

#endif
