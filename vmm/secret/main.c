/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mvagent-secret: the one process that has the user's secrets, when there are any. It ends the TLS
 * of connections to their hosts and puts the secrets into requests. It has no network and sees no
 * file and no memory of the guest: mvagent-relay, which has the network, hands it both ends of each
 * connection, and gets neither secrets nor plain text to see.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/version.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"
#include "vmm/secret/broker.h"
#include "vmm/wire/relay.h"
#include "vmm/wire/terminate.h"

#define DESCRIPTORS_OWN 32U

struct options {
	int secrets_fd;
	int trust_fd;
	int relay_fd;
	int event_fd;
	int ready_fd;
	bool allow_degraded;
};

static const char usage[] =
	"usage: mvagent-secret OPTIONS\n"
	"Puts secrets into a guest's requests to their hosts; started by mvagent, which hands it\n"
	"all it needs.\n"
	"  --secrets-fd N        file with the secrets; it is overwritten\n"
	"  --trust-fd N          file with the certificates that this host trusts\n"
	"  --relay-fd N          socket to mvagent-relay\n"
	"  --event-fd N          socket to mvagent\n"
	"  --ready-fd N          pipe that gets the certificate of the run's authority\n"
	"  --allow-degraded      go on where the host allows neither namespaces nor Landlock\n"
	"  --verbose             print what happens\n";

enum {
	OPTION_SECRETS = OPTION_FIRST,
	OPTION_TRUST,
	OPTION_RELAY,
	OPTION_EVENT,
	OPTION_READY,
	OPTION_ALLOW_DEGRADED,
	OPTION_VERBOSE,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"secrets-fd", required_argument, NULL, OPTION_SECRETS},
	{"trust-fd", required_argument, NULL, OPTION_TRUST},
	{"relay-fd", required_argument, NULL, OPTION_RELAY},
	{"event-fd", required_argument, NULL, OPTION_EVENT},
	{"ready-fd", required_argument, NULL, OPTION_READY},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{NULL, 0, NULL, 0},
};

static int apply_option(void *context, int option, char *value)
{
	struct options *options = context;

	switch (option) {
	case OPTION_SECRETS:
		return option_parse_fd("--secrets-fd", value, &options->secrets_fd);
	case OPTION_TRUST:
		return option_parse_fd("--trust-fd", value, &options->trust_fd);
	case OPTION_RELAY:
		return option_parse_fd("--relay-fd", value, &options->relay_fd);
	case OPTION_EVENT:
		return option_parse_fd("--event-fd", value, &options->event_fd);
	case OPTION_READY:
		return option_parse_fd("--ready-fd", value, &options->ready_fd);
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
	.version = "mvagent-secret " MVAGENT_VERSION,
	.help = "mvagent-secret --help",
	.letters = "+:hV",
	.options = long_options,
	.apply = apply_option,
};

/* The whole of a file, so that half of it is not taken for all; allocated. 0 or -errno. */
static int read_file(int fd, char **text, size_t *length)
{
	struct stat status;
	int error;

	*text = NULL;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > LIMIT_SECRET_TRUST_BYTES)
		return -EFBIG;
	*length = (size_t)status.st_size;
	*text = malloc(*length + 1);
	error = *text ? fd_pread_full(fd, *text, *length, 0) : -ENOMEM;
	if (error) {
		free(*text);
		*text = NULL;
	}
	return error;
}

/* Reads the certificates of a bundle. NULL with the sentence printed: none could be read. */
static X509_STORE *read_trust(int fd)
{
	char *text;
	size_t length = 0;
	int error = read_file(fd, &text, &length);
	BIO *file = error ? NULL : BIO_new_mem_buf(text, (int)length);
	X509_STORE *store = X509_STORE_new();
	unsigned int count = 0;
	X509 *certificate;

	while (file && store && (certificate = PEM_read_bio_X509_AUX(file, NULL, NULL, NULL))) {
		count += X509_STORE_add_cert(store, certificate) == 1;
		X509_free(certificate);
	}
	ERR_clear_error();
	BIO_free(file);
	free(text);
	if (count)
		return store;
	X509_STORE_free(store);
	if (error)
		log_errno(error, "cannot read the file of the certificates that this host trusts");
	else
		log_error("there is no certificate in the file of those that this host trusts");
	return NULL;
}

/* The guest is told of the authority by the supervisor. */
static int tell_authority(const struct authority *authority, int fd)
{
	char text[LIMIT_AUTHORITY_BYTES];
	int error = authority_write(authority, text);

	error = error ? error : fd_write_full(fd, text, strlen(text));
	return error ? log_errno(error, "cannot tell mvagent of the authority") : 0;
}

/* For all connections, as far as this host allows it: those beyond are refused. */
static void raise_limit_of_descriptors(void)
{
	const rlim_t wanted = TERMINATE_DESCRIPTORS * LIMIT_SECRET_CONNECTIONS + DESCRIPTORS_OWN;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = bytes_minimum(wanted, limit.rlim_max);
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int run(struct options *options, struct secret_set *secrets)
{
	struct authority *authority = NULL;
	struct broker *broker = NULL;
	struct loop *loop = NULL;
	struct broker_plan plan = {
		.secrets = secrets,
		.relay_fd = options->relay_fd,
		.event_fd = options->event_fd,
		.trust = read_trust(options->trust_fd),
	};
	uint8_t walls = 0;
	int error = plan.trust ? authority_create(&authority) : -EINVAL;

	plan.authority = authority;
	raise_limit_of_descriptors();
	fd_close(&options->trust_fd);
	if (!error) {
		error = loop_create(&loop, BROKER_LOOP_CAPACITY, LOOP_BACKEND_EPOLL);
		error = error ? error : loop_enable(loop);
		if (error)
			log_errno(error, "cannot make an event loop");
	}
	error = error ? error : broker_create(&broker, loop, &plan);
	error = error ? error : tell_authority(authority, options->ready_fd);
	fd_close(&options->ready_fd);
	if (!error)
		error = jail_enter(
			&(struct jail){.allow_degraded = options->allow_degraded, .walls = &walls});
	error = error ? error : jail_seal(filter_secret, options->allow_degraded);
	error = error ? error : relay_tell_walls(options->event_fd, "mvagent-secret", walls);
	error = error ? error : loop_run(loop);
	broker_destroy(broker);
	loop_destroy(loop);
	authority_destroy(authority);
	return error;
}

int main(int argc, char **argv)
{
	static struct secret_set secrets;
	struct options options = {-1, -1, -1, -1, -1, false};
	int error, result = option_set_parse(&option_set, argc, argv, &options);

	if (result <= 0)
		return result < 0 ? 2 : 0;
	if (options.secrets_fd < 0 || options.trust_fd < 0 || options.relay_fd < 0 ||
	    options.event_fd < 0 || options.ready_fd < 0) {
		log_error("--secrets-fd, --trust-fd, --relay-fd, --event-fd and --ready-fd are "
			  "needed; this program is started by mvagent");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	tzset(); /* which would look for /etc/localtime later */
	/* What others set up for their programs is not for this one. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
				 OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
			 NULL);
	error = secret_set_read(&secrets, options.secrets_fd);
	if (error)
		log_errno(error, "the secrets cannot be used; this program is started by mvagent");
	fd_close(&options.secrets_fd);
	error = error ? error : run(&options, &secrets);
	secret_set_wipe(&secrets);
	return error ? 1 : 0;
}
