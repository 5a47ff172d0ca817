/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/checklist_host.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/escape_filter.h"
#include "vmm/review/store.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

#define LISTED_NAMES 100000 /* of the working directory */

static int make_mark(char mark[CHECKLIST_MARK_SIZE])
{
	uint8_t bytes[(CHECKLIST_MARK_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return log_errno(-EIO, "cannot make random numbers");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(mark + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

void checklist_add(struct checklist_outside *outside, enum checklist_line line,
		   enum checklist_purpose purpose, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	if (outside->item_count == CHECKLIST_ITEMS) {
		free(text);
		return;
	}
	outside->items[outside->item_count++] =
		(struct checklist_item){.line = line, .purpose = purpose, .text = text};
}

const char *checklist_in_share(const struct checklist_host *host, const char *path,
			       unsigned int *share)
{
	const char *found = NULL;

	for (unsigned int i = 0; i < host->shares.count; i++) {
		const char *below = run_shares_below(path, host->shares.directories[i].host_path);

		if (!below)
			continue;
		*share = i;
		found = below;
	}
	return found;
}

void checklist_guest_path(const struct checklist_host *host, const char *path, char *guest,
			  size_t size)
{
	unsigned int share;
	const char *below = checklist_in_share(host, path, &share);

	if (below)
		snprintf(guest, size, "%s%s%s", host->shares.directories[share].path,
			 *below ? "/" : "", below);
	else
		snprintf(guest, size, "%s", path);
}

/* Of a working directory in a share: the repository that it is in, or the share. So a share of all
 * projects is more than the one that is worked on, and a subdirectory of a project is not less. */
static void find_root(struct checklist_host *host)
{
	unsigned int share;
	char path[PATH_MAX], git[PATH_MAX + 8];
	size_t least;

	if (!*host->directory || !checklist_in_share(host, host->directory, &share))
		return;
	snprintf(host->root, sizeof(host->root), "%s", host->shares.directories[share].host_path);
	least = strlen(host->root);
	snprintf(git, sizeof(git), "%s/.git", host->root);
	if (access(git, F_OK) == 0)
		return;
	snprintf(path, sizeof(path), "%s", host->directory);
	for (; strlen(path) > least; *strrchr(path, '/') = '\0') {
		snprintf(git, sizeof(git), "%s/.git", path);
		if (access(git, F_OK) == 0) {
			snprintf(host->root, sizeof(host->root), "%s", path);
			return;
		}
	}
}

/* The command's working directory, as far as it is one of this host's. */
static void find_directory(struct checklist_host *host, const struct run_options *options)
{
	const char *given =
		options->working_directory ? options->working_directory : host->shares.first;

	for (unsigned int i = 0; given && i < host->shares.count; i++) {
		const struct shared_directory *share = &host->shares.directories[i];
		const char *below = run_shares_below(given, share->path);

		if (below)
			snprintf(host->directory, sizeof(host->directory), "%s%s%s",
				 share->host_path, *below && share->host_path[1] ? "/" : "", below);
	}
	find_root(host);
}

/* Plants a file in a directory, if it may. */
static void plant(struct checklist_host *host, const char *directory, unsigned int above)
{
	struct checklist_outside *outside = &host->outside;
	FD_CLEANUP int fd = -1;
	char *mark, *path;

	if (outside->canary_count == CHECKLIST_CANARIES || !*directory ||
	    strcmp(directory, "/") == 0)
		return;
	mark = outside->canaries[outside->canary_count].mark;
	if (make_mark(mark))
		return;
	if (asprintf(&path, "%s/" CHECKLIST_CANARY_PREFIX "%.8s", directory, host->number) < 0)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0) {
		free(path);
		return;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) || fd_write_full(fd, mark, strlen(mark))) {
		unlink(path);
		free(path);
		return;
	}
	outside->canaries[outside->canary_count].path = path;
	outside->canaries[outside->canary_count].above = above;
	outside->canaries[outside->canary_count++].fd = fd_take(&fd);
}

static void plant_all(struct checklist_host *host)
{
	char path[PATH_MAX];

	if (*host->root) {
		/* dirname(3) shortens its argument. */
		snprintf(path, sizeof(path), "%s", host->root);
		plant(host, dirname(path), 1);
		plant(host, dirname(path), 2);
	}
	plant(host, host->home, 0);
	if (review_state_path(path, "records") == 0 && review_state_make(path) == 0)
		plant(host, dirname(path), 0);
}

/* One socket on all addresses of this host, at a port that the kernel chooses. */
static void listen_everywhere(struct checklist_host *host)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	struct sockaddr_in any4 = {.sin_family = AF_INET};
	socklen_t length = sizeof(any);
	const int off = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool bound = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
		     bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0;

	if (!bound) {
		fd_close(&fd);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bound = fd >= 0 && bind(fd, (struct sockaddr *)&any4, sizeof(any4)) == 0;
	}
	if (!bound || listen(fd, 8) < 0 || getsockname(fd, (struct sockaddr *)&any, &length) < 0) {
		fd_close(&fd);
		return;
	}
	/* The port is at the same place in both. */
	host->port = ntohs(any.sin6_port);
	host->listener = fd;
	host->outside.listening = true;
}

static void read_boot(struct checklist_outside *outside)
{
	FD_CLEANUP int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, outside->boot, sizeof(outside->boot) - 1);

	outside->boot[count > 0 ? count : 0] = '\0';
	outside->boot[strcspn(outside->boot, "\n")] = '\0';
}

/* What the host sees in the working directory. */
static void list_directory(struct checklist_host *host)
{
	DIR *directory = *host->directory ? opendir(host->directory) : NULL;
	const struct dirent *entry;
	int count = 0;

	if (!directory)
		return;
	host->outside.names = cJSON_CreateArray();
	while (count++ < LISTED_NAMES && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			cJSON_AddItemToArray(host->outside.names,
					     cJSON_CreateString(entry->d_name));
	}
	closedir(directory);
}

int checklist_host_prepare(struct checklist_host *host, const struct run_options *options)
{
	const char *home = getenv("HOME");
	int error;

	*host = (struct checklist_host){.listener = -1};
	error = run_shares_open(&host->shares, options);
	error = error ? error : make_mark(host->number);
	if (error)
		return error;
	if (home && home[0] == '/' && !realpath(home, host->home))
		host->home[0] = '\0';
	find_directory(host, options);
	plant_all(host);
	listen_everywhere(host);
	read_boot(&host->outside);
	list_directory(host);
	host->outside.environment = environ;
	host->outside.expiries = checklist_expiries(&options->variables);
	checklist_items_make(host, options);
	for (unsigned int i = 0; i < host->outside.item_count; i++)
		host->texts[i] = host->outside.items[i].text;
	return 0;
}

/* What the guest sent for a terminal goes through what stands before the user's. */
static void filter(struct checklist_outside *outside, const struct findings *findings)
{
	struct escape_filter escape = {0};
	uint8_t output[ESCAPE_FILTER_OUTPUT(1024)];

	for (unsigned int i = 0; i < outside->item_count; i++) {
		const struct finding *finding = findings_of(findings, FINDINGS_AGENT, i);

		if (outside->items[i].purpose != TRY_TERMINAL || !finding->told ||
		    finding->length > 1024 || !memchr(finding->data, '\033', finding->length))
			continue;
		outside->filter_left = escape_filter_run(&escape, (const uint8_t *)finding->data,
							 finding->length, output);
		outside->filtered = true;
	}
}

void checklist_host_look(struct checklist_host *host, const struct findings *findings)
{
	struct pollfd polled = {.fd = host->listener, .events = POLLIN};

	if (host->listener >= 0 && poll(&polled, 1, 0) > 0)
		host->outside.connections = 1; /* or more: none is taken */
	filter(&host->outside, findings);
}

void checklist_host_destroy(struct checklist_host *host)
{
	struct checklist_outside *outside = &host->outside;

	for (unsigned int i = 0; i < outside->canary_count; i++) {
		if (unlink(outside->canaries[i].path) < 0)
			log_errno(-errno, "cannot remove %s, which the review had planted",
				  outside->canaries[i].path);
		free(outside->canaries[i].path);
		fd_close(&outside->canaries[i].fd);
	}
	for (unsigned int i = 0; i < outside->item_count; i++) {
		free(outside->items[i].text);
		free(outside->items[i].same);
	}
	cJSON_Delete(outside->unplanted);
	cJSON_Delete(outside->exposed);
	cJSON_Delete(outside->projects);
	cJSON_Delete(outside->shared_projects);
	cJSON_Delete(outside->names);
	cJSON_Delete(outside->variables);
	cJSON_Delete(outside->placeholders);
	cJSON_Delete(outside->expiries);
	fd_close(&host->listener);
	run_shares_destroy(&host->shares);
	*host = (struct checklist_host){.listener = -1};
}
