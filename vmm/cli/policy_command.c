/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/policy_command.h"

#include <stdio.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/base/option.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/run_network.h"

static const char usage[] =
	"usage: mvagent policy check [OPTIONS] HOST[:PORT]\n"
	"Says whether 'mvagent run' with the same options lets its command reach that host and\n"
	"port (443 unless one is given), by which rule, and what would change it. Exit status: 0\n"
	"it is allowed, 1 it is not.\n"
	"\n"
	"  --allow HOST[:PORT], --deny HOST[:PORT], --allow-file FILE, --allow-preset NAME,\n"
	"  --allow-from CLIENT   as for 'mvagent run'\n"
	"  -h, --help            this text\n";

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	NETWORK_POLICY_OPTIONS{NULL, 0, NULL, 0},
};

static int apply(void *context, int option, char *value)
{
	return run_network_apply(context, option, value);
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent policy check --help",
	.letters = "+:h",
	.options = long_options,
	.takes_words = true,
	.apply = apply,
};

/* Parts HOST[:PORT]. Returns the host's length, or 0 with the sentence printed. */
static size_t split(const char *word, uint16_t *port)
{
	const char *colon = strrchr(word, ':');
	struct address address;
	uint64_t number;

	*port = ROUTE_PORT_TLS;
	if (!colon || address_read(word, strlen(word), &address) == 0)
		return strlen(word);
	if (strstr(word, "://")) {
		log_error("policy check: %s is a URL; give HOST or HOST:PORT", word);
		return 0;
	}
	if (number_parse(colon + 1, 1, UINT16_MAX, &number) < 0) {
		log_error("policy check: '%s' is no port: it is a number from 1 to 65535",
			  colon + 1);
		return 0;
	}
	*port = (uint16_t)number;
	if (colon == word)
		log_error("policy check: a host is needed, such as example.com:443");
	return (size_t)(colon - word);
}

static int check(const struct run_network *network, const char *word)
{
	struct route_decision decision;
	char host[NAME_BYTES + 64], text[ROUTE_SENTENCE_BYTES];
	uint16_t port;
	size_t length = split(word, &port);

	if (!length)
		return EXIT_MVAGENT;
	decision = route_policy_decide(&network->settings.policy, word, length, port);
	snprintf(host, sizeof(host), "%.*s", (int)length, word);
	route_explain(&decision, host, port, text);
	puts(text);
	return decision.verdict == ROUTE_ALLOWED ? 0 : 1;
}

int policy_command(int argc, char **argv)
{
	static const char *const here = ".";
	struct run_network network = {0};
	int status = EXIT_MVAGENT, first;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc < 2 || strcmp(argv[1], "check") != 0) {
		log_error("policy: there is 'mvagent policy check HOST:PORT'; see 'mvagent policy "
			  "--help'");
		return EXIT_MVAGENT;
	}
	first = option_set_parse(&option_set, argc - 1, argv + 1, &network);
	if (first == 0)
		status = 0;
	else if (first > 0 && first != argc - 2)
		log_error("policy check: give one HOST:PORT");
	else if (first > 0 && run_network_ask_clients(&network, &here, 1) == 0)
		status = check(&network, argv[1 + first]);
	run_network_free(&network);
	return status;
}
