/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mvagent-sign: the one process of a run that speaks to the user's ssh-agent, when --ssh-agent is
 * given. mvagent-relay hands it connections of the guest's; it reads what they ask and lets log-ins
 * to the named servers be signed. It has no network, no file, no key, and sees no memory of the
 * guest.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <signal.h>
#include <time.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/version.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"
#include "vmm/sign/server.h"
#include "vmm/wire/relay.h"

struct options {
	int policy_fd;
	int relay_fd;
	int event_fd;
	int agent_fd;
	bool allow_degraded;
};

static const char usage[] =
	"usage: mvagent-sign OPTIONS\n"
	"Lets the host's ssh-agent sign a guest's log-ins to named servers; started by mvagent,\n"
	"which hands it all it needs.\n"
	"  --policy-fd N         file with the rules\n"
	"  --relay-fd N          socket to mvagent-relay\n"
	"  --event-fd N          socket to mvagent\n"
	"  --agent-fd N          socket to the host's ssh-agent\n"
	"  --allow-degraded      go on where the host allows neither namespaces nor Landlock\n"
	"  --verbose             print what happens\n";

enum {
	OPTION_POLICY = OPTION_FIRST,
	OPTION_RELAY,
	OPTION_EVENT,
	OPTION_AGENT,
	OPTION_ALLOW_DEGRADED,
	OPTION_VERBOSE,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"policy-fd", required_argument, NULL, OPTION_POLICY},
	{"relay-fd", required_argument, NULL, OPTION_RELAY},
	{"event-fd", required_argument, NULL, OPTION_EVENT},
	{"agent-fd", required_argument, NULL, OPTION_AGENT},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{NULL, 0, NULL, 0},
};

static int apply_option(void *context, int option, char *value)
{
	struct options *options = context;

	switch (option) {
	case OPTION_POLICY:
		return option_parse_fd("--policy-fd", value, &options->policy_fd);
	case OPTION_RELAY:
		return option_parse_fd("--relay-fd", value, &options->relay_fd);
	case OPTION_EVENT:
		return option_parse_fd("--event-fd", value, &options->event_fd);
	case OPTION_AGENT:
		return option_parse_fd("--agent-fd", value, &options->agent_fd);
	case OPTION_ALLOW_DEGRADED:
		options->allow_degraded = true;
		return 0;
	default:
		log_set_level(LOG_VERBOSE);
		return 0;
	}
}

static const struct option_set option_set = {
	.usage = usage,
	.version = "mvagent-sign " MVAGENT_VERSION,
	.help = "mvagent-sign --help",
	.letters = "+:hV",
	.options = long_options,
	.apply = apply_option,
};

/* What OpenSSL finds by name it finds before the walls are up. */
static bool prepare_crypto(void)
{
	static const char *const digests[] = {"SHA256", "SHA384", "SHA512"};

	if (!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
				 NULL))
		return false;
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
		EVP_MD *digest = EVP_MD_fetch(NULL, digests[i], NULL);

		if (!digest)
			return false;
		EVP_MD_free(digest);
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct sign_policy policy;
	struct options options = {-1, -1, -1, -1, false};
	struct sign_plan plan = {.policy = &policy};
	int error, result = option_set_parse(&option_set, argc, argv, &options);
	uint8_t walls = 0;

	if (result <= 0)
		return result < 0 ? 2 : 0;
	if (options.policy_fd < 0 || options.relay_fd < 0 || options.event_fd < 0 ||
	    options.agent_fd < 0) {
		log_error("--policy-fd, --relay-fd, --event-fd and --agent-fd are needed; this "
			  "program is started by mvagent");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	tzset(); /* which would look for /etc/localtime later */
	plan.relay_fd = options.relay_fd;
	plan.event_fd = options.event_fd;
	plan.agent_fd = options.agent_fd;
	error = sign_policy_read(&policy, options.policy_fd);
	fd_close(&options.policy_fd);
	if (error || !prepare_crypto()) {
		log_error("the rules cannot be used; this program is started by mvagent");
		return 1;
	}
	error = jail_enter(
		&(struct jail){.allow_degraded = options.allow_degraded, .walls = &walls});
	error = error ? error : jail_seal(filter_sign, options.allow_degraded);
	error = error ? error : relay_tell_walls(options.event_fd, "mvagent-sign", walls);
	error = error ? error : sign_serve(&plan);
	return error ? 1 : 0;
}
