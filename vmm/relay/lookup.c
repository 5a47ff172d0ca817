/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/lookup.h"

#include <ares.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/log.h"

#define SOCKETS     16U /* of c-ares: one a server, by UDP and by TCP */
#define TIMEOUT_MS  2000
#define TRIES       3
#define KEEP_LEAST  1U /* seconds; several connections of one program get the same */
#define KEEP_MOST   300U
#define KEEP_FAILED 2U

struct entry {
	char name[NAME_BYTES]; /* empty: free */
	bool pending;
	uint64_t until_ns;
	struct lookup_result result;
	struct lookup_waiter *waiters;
	struct lookup *lookup;
};

struct watched_socket {
	struct lookup *lookup;
	ares_socket_t fd; /* ARES_SOCKET_BAD: free, once the watch is idle */
	struct loop_operation watch;
};

struct lookup {
	struct loop *loop;
	ares_channel channel;
	bool library;
	struct watched_socket sockets[SOCKETS];
	struct entry entries[LIMIT_RELAY_NAMES];
};

/* c-ares reads once for each call; the loop tells once for each change. */
static void socket_ready(struct loop_operation *operation, int result)
{
	struct watched_socket *watched = CONTAINER_OF(operation, struct watched_socket, watch);
	struct pollfd ready = {.fd = watched->fd, .events = POLLIN};

	if (result < 0 || watched->fd == ARES_SOCKET_BAD)
		return;
	do {
		ares_process_fd(watched->lookup->channel,
				result & (POLLIN | POLLHUP | POLLERR) ? watched->fd
								      : ARES_SOCKET_BAD,
				result & POLLOUT ? watched->fd : ARES_SOCKET_BAD);
		result = POLLIN;
		ready.fd = watched->fd;
	} while (watched->fd != ARES_SOCKET_BAD && poll(&ready, 1, 0) > 0);
}

/* c-ares opens, wants, or is about to close a socket. Reading and writing are watched together. */
static void socket_state(void *context, ares_socket_t fd, int readable, int writable)
{
	struct lookup *lookup = context;
	struct watched_socket *free_one = NULL;

	for (unsigned int i = 0; i < SOCKETS; i++) {
		struct watched_socket *watched = &lookup->sockets[i];

		if (watched->fd == fd) {
			if (!readable && !writable) {
				loop_cancel(lookup->loop, &watched->watch);
				watched->fd = ARES_SOCKET_BAD;
			}
			return;
		}
		if (watched->fd == ARES_SOCKET_BAD && loop_operation_idle(&watched->watch))
			free_one = watched;
	}
	if (!free_one || (!readable && !writable))
		return; /* without a watch it ends by its time-out */
	free_one->fd = fd;
	if (loop_watch(lookup->loop, &free_one->watch, fd, POLLIN | POLLOUT, socket_ready) < 0)
		free_one->fd = ARES_SOCKET_BAD;
}

int lookup_create(struct lookup **lookup, struct loop *loop, const char *servers)
{
	struct ares_options options = {
		/* A name is asked for as it is: with a search list it would be another's as well.
		 * ares_getaddrinfo of some versions overlooks the flag, but not an empty list. */
		.flags = ARES_FLAG_NOSEARCH, .ndomains = 0,
		.timeout = TIMEOUT_MS,       .tries = TRIES,
		.lookups = (char[]){"b"},    .sock_state_cb = socket_state,
	};
	struct lookup *made = calloc(1, sizeof(*made));
	int status;

	if (!made)
		return log_errno(-ENOMEM, "cannot look up names");
	options.sock_state_cb_data = made;
	made->loop = loop;
	for (unsigned int i = 0; i < SOCKETS; i++) {
		made->sockets[i].lookup = made;
		made->sockets[i].fd = ARES_SOCKET_BAD;
	}
	status = ares_library_init(ARES_LIB_INIT_ALL);
	made->library = status == ARES_SUCCESS;
	if (made->library)
		status = ares_init_options(&made->channel, &options,
					   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
						   ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
						   ARES_OPT_SOCK_STATE_CB);
	if (status == ARES_SUCCESS && servers)
		status = ares_set_servers_ports_csv(made->channel, servers);
	if (status != ARES_SUCCESS) {
		log_error("cannot look up names: %s", ares_strerror(status));
		lookup_destroy(made);
		return -EIO;
	}
	*lookup = made;
	return 0;
}

void lookup_destroy(struct lookup *lookup)
{
	if (!lookup)
		return;
	if (lookup->channel)
		ares_destroy(lookup->channel);
	for (unsigned int i = 0; i < SOCKETS; i++)
		loop_end(lookup->loop, &lookup->sockets[i].watch);
	if (lookup->library)
		ares_library_cleanup();
	free(lookup);
}

static void fill_result(struct entry *entry, int status, const struct ares_addrinfo *found)
{
	const struct ares_addrinfo_node *node = status == ARES_SUCCESS ? found->nodes : NULL;
	unsigned int seconds = KEEP_MOST;

	entry->result.count = 0;
	for (; node && entry->result.count < LIMIT_RELAY_ADDRESSES; node = node->ai_next) {
		struct address *address = &entry->result.addresses[entry->result.count];

		if (address_of_socket(node->ai_addr, address) == 0)
			entry->result.count++;
		if (node->ai_ttl >= 0 && (unsigned int)node->ai_ttl < seconds)
			seconds = (unsigned int)node->ai_ttl;
	}
	entry->result.error = NULL;
	if (!entry->result.count) {
		entry->result.error = status == ARES_SUCCESS || status == ARES_ENODATA
					      ? "the name has no address"
					      : ares_strerror(status);
		seconds = KEEP_FAILED;
	}
	if (seconds < KEEP_LEAST)
		seconds = KEEP_LEAST;
	entry->until_ns = clock_monotonic_ns() + seconds * (uint64_t)1000 * CLOCK_NS_PER_MS;
}

static void found(void *context, int status, int timeouts, struct ares_addrinfo *addresses)
{
	struct entry *entry = context;
	struct lookup_waiter *waiter;

	(void)timeouts;
	/* The channel is on its way out, and so is all else. */
	if (status != ARES_EDESTRUCTION)
		fill_result(entry, status, addresses);
	if (addresses)
		ares_freeaddrinfo(addresses);
	while (status != ARES_EDESTRUCTION && (waiter = entry->waiters)) {
		entry->waiters = waiter->next;
		waiter->waiting = false;
		waiter->done(waiter, &entry->result);
	}
	/* Only now: until then nobody else may have this place. */
	entry->pending = false;
}

/* The entry of @name, or one that it may have: a free one, or the one that is out of date for
 * longest. NULL when all are in use. */
static struct entry *find_entry(struct lookup *lookup, const char *name)
{
	struct entry *oldest = NULL;

	for (unsigned int i = 0; i < LIMIT_RELAY_NAMES; i++) {
		struct entry *entry = &lookup->entries[i];

		if (strcmp(entry->name, name) == 0)
			return entry;
		if (!entry->pending && (!oldest || entry->until_ns < oldest->until_ns))
			oldest = entry;
	}
	if (oldest) {
		*oldest = (struct entry){.lookup = lookup};
		snprintf(oldest->name, sizeof(oldest->name), "%s", name);
	}
	return oldest;
}

void lookup_ask(struct lookup *lookup, const char *name, struct lookup_waiter *waiter,
		void (*done)(struct lookup_waiter *waiter, const struct lookup_result *result))
{
	static const struct lookup_result busy = {.error = "too many names are looked up"};
	const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT,
						  .ai_family = AF_UNSPEC};
	struct entry *entry = find_entry(lookup, name);

	*waiter = (struct lookup_waiter){.done = done};
	if (!entry) {
		done(waiter, &busy);
		return;
	}
	if (!entry->pending && clock_monotonic_ns() < entry->until_ns) {
		done(waiter, &entry->result);
		return;
	}
	waiter->waiting = true;
	waiter->next = entry->waiters;
	entry->waiters = waiter;
	if (entry->pending)
		return;
	entry->pending = true;
	ares_getaddrinfo(lookup->channel, name, NULL, &hints, found, entry);
}

void lookup_forget(struct lookup *lookup, struct lookup_waiter *waiter)
{
	for (unsigned int i = 0; waiter->waiting && i < LIMIT_RELAY_NAMES; i++) {
		struct lookup_waiter **link = &lookup->entries[i].waiters;

		while (*link && *link != waiter)
			link = &(*link)->next;
		if (*link) {
			*link = waiter->next;
			waiter->waiting = false;
		}
	}
}

void lookup_tick(struct lookup *lookup)
{
	ares_process_fd(lookup->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
