/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mvagent-relay: the one process of a run with a network, when the user allows some hosts. It sees
 * no memory of the guest and no file; what it lets through is decided by vmm/relay/policy.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/version.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"
#include "vmm/relay/relay.h"
#include "vmm/wire/relay.h"

/* Descriptors of a connection, at its most: the guest's end, the end that is handed over, and those
 * of the attempts to reach its server, one that is on its way to mvagent-secret; and those of the
 * relay itself. */
#define DESCRIPTORS_EACH 4U
#define DESCRIPTORS_OWN  64U

#define BACKLOG 64

struct options {
	int settings_fd;
	int lender_fd;
	int event_fd;
	int secret_fd;
	int sign_fd;
	bool allow_degraded;
};

static const char usage[] =
	"usage: mvagent-relay OPTIONS\n"
	"Carries a guest's connections to hosts that are allowed; started by mvagent, which hands\n"
	"it all it needs.\n"
	"  --settings-fd N       file with what is allowed\n"
	"  --lender-fd N         socket to mvagent-vmm\n"
	"  --event-fd N          socket to mvagent\n"
	"  --secret-fd N         socket to mvagent-secret, when there is one\n"
	"  --sign-fd N           socket to mvagent-sign, when there is one\n"
	"  --allow-degraded      go on where the host allows neither namespaces nor Landlock\n"
	"  --verbose             print what happens\n";

enum {
	OPTION_SETTINGS = OPTION_FIRST,
	OPTION_LENDER,
	OPTION_EVENT,
	OPTION_SECRET,
	OPTION_SIGN,
	OPTION_ALLOW_DEGRADED,
	OPTION_VERBOSE,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"settings-fd", required_argument, NULL, OPTION_SETTINGS},
	{"lender-fd", required_argument, NULL, OPTION_LENDER},
	{"event-fd", required_argument, NULL, OPTION_EVENT},
	{"secret-fd", required_argument, NULL, OPTION_SECRET},
	{"sign-fd", required_argument, NULL, OPTION_SIGN},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{NULL, 0, NULL, 0},
};

static int apply_option(void *context, int option, char *value)
{
	struct options *options = context;

	switch (option) {
	case OPTION_SETTINGS:
		return option_parse_fd("--settings-fd", value, &options->settings_fd);
	case OPTION_LENDER:
		return option_parse_fd("--lender-fd", value, &options->lender_fd);
	case OPTION_EVENT:
		return option_parse_fd("--event-fd", value, &options->event_fd);
	case OPTION_SECRET:
		return option_parse_fd("--secret-fd", value, &options->secret_fd);
	case OPTION_SIGN:
		return option_parse_fd("--sign-fd", value, &options->sign_fd);
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
	.version = "mvagent-relay " MVAGENT_VERSION,
	.help = "mvagent-relay --help",
	.letters = "+:hV",
	.options = long_options,
	.apply = apply_option,
};

/* How many connections the limit of descriptors allows, which is raised as far as it may be. */
static unsigned int connections_allowed(void)
{
	const rlim_t wanted = DESCRIPTORS_EACH * LIMIT_RELAY_CONNECTIONS + DESCRIPTORS_OWN;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = bytes_minimum(wanted, limit.rlim_max);
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur <= DESCRIPTORS_OWN + DESCRIPTORS_EACH)
		return 1;
	return (unsigned int)bytes_minimum((limit.rlim_cur - DESCRIPTORS_OWN) / DESCRIPTORS_EACH,
					   LIMIT_RELAY_CONNECTIONS);
}

/* Before the jail, which lets nothing be bound any more. */
static int listen_on(const struct published_port *port)
{
	const int yes = 1;
	char text[ADDRESS_TEXT_BYTES];
	struct sockaddr_storage address;
	socklen_t length = address_to_socket(&port->address, port->port, &address);
	FD_CLEANUP int fd =
		socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd_take(&fd);
	address_write(&port->address, text);
	return log_errno(-errno, "--publish %s:%u:%u: cannot listen there", text, port->port,
			 port->guest_port);
}

static int run(const struct options *options, struct relay_plan *plan)
{
	struct relay *relay = NULL;
	struct loop *loop = NULL;
	uint8_t walls = 0;
	int error = 0;

	for (unsigned int i = 0; !error && i < plan->settings->published_count; i++) {
		plan->listeners[i] = listen_on(&plan->settings->published[i]);
		error = plan->listeners[i] < 0 ? plan->listeners[i] : 0;
	}
	plan->connections = connections_allowed();
	/* Waiting is all that it needs a ring for, and sockets are best kept out of one. */
	if (!error) {
		error = loop_create(&loop, LOOP_CAPACITY_MAX, LOOP_BACKEND_EPOLL);
		error = error ? error : loop_enable(loop);
		if (error)
			log_errno(error, "cannot make an event loop");
	}
	/* Reads the host's /etc/resolv.conf and its like, which the jail closes. */
	error = error ? error : relay_create(&relay, loop, plan);
	if (!error)
		error = jail_enter(&(struct jail){.network = true,
						  .allow_degraded = options->allow_degraded,
						  .walls = &walls});
	error = error ? error : jail_seal(filter_relay, options->allow_degraded);
	error = error ? error : relay_tell_walls(plan->event_fd, "mvagent-relay", walls);
	error = error ? error : loop_run(loop);
	relay_destroy(relay);
	loop_destroy(loop);
	return error;
}

int main(int argc, char **argv)
{
	static struct relay_settings settings;
	struct options options = {
		.settings_fd = -1, .lender_fd = -1, .event_fd = -1, .secret_fd = -1, .sign_fd = -1};
	struct relay_plan plan = {.settings = &settings};
	int error, result = option_set_parse(&option_set, argc, argv, &options);

	if (result <= 0)
		return result < 0 ? 2 : 0;
	if (options.settings_fd < 0 || options.lender_fd < 0 || options.event_fd < 0) {
		log_error("--settings-fd, --lender-fd and --event-fd are needed; this program is "
			  "started by mvagent");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* c-ares writes to its sockets without asking for none */
	error = relay_settings_read(&settings, options.settings_fd);
	fd_close(&options.settings_fd);
	plan.lender_fd = options.lender_fd;
	plan.event_fd = options.event_fd;
	plan.secret_fd = options.secret_fd;
	plan.sign_fd = options.sign_fd;
	error = error ? error : run(&options, &plan);
	relay_settings_free(&settings);
	return error ? 1 : 0;
}
