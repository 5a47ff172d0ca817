/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-fs: one share, as a vhost-user back end. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/device.h"
#include "vmm/fs/options.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"

/* Operations of the loop: what the back end uses, and the three of struct host_side. */
#define LOOP_OPERATIONS (1 + FS_DEVICE_QUEUES + 3)

/* What comes from the host's side: changes of files, and room for notes about them. */
struct host_side {
	struct fs_server *server;
	struct loop *loop;
	struct loop_operation watch;
	struct loop_operation again; /* the watch had more to tell than one turn takes */
	struct loop_operation notify;
};

/* As many descriptors as the system lets this process have: each inode the guest knows holds one.
 */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log_warning("cannot raise the limit of open files: %s", strerror(errno));
}

/* A write past RLIMIT_FSIZE or into a hung-up socket is answered by its errno. */
static void ignore_signals(void)
{
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static void host_side_again(struct loop_operation *operation, int result);

/* A host that changes files faster than they can be told of must not starve the guest: each turn of
 * the loop takes one part, and the requests that came meanwhile are served between two. */
static void host_side_serve_watch(struct host_side *side)
{
	if (!loop_operation_idle(&side->again) || !fs_server_serve_watch(side->server))
		return;
	if (loop_timer(side->loop, &side->again, 0, host_side_again))
		log_fatal("no room for an operation of the event loop");
}

static void host_side_again(struct loop_operation *operation, int result)
{
	if (result != -ECANCELED)
		host_side_serve_watch(CONTAINER_OF(operation, struct host_side, again));
}

static void host_side_watch_event(struct loop_operation *operation, int result)
{
	if (result != -ECANCELED)
		host_side_serve_watch(CONTAINER_OF(operation, struct host_side, watch));
}

static void host_side_notify_event(struct loop_operation *operation, int result)
{
	if (result != -ECANCELED)
		fs_server_serve_notify(CONTAINER_OF(operation, struct host_side, notify)->server);
}

static int host_side_start(struct host_side *side, struct fs_server *server, int notify_fd,
			   struct loop *loop)
{
	int watch_fd = fs_server_watch_fd(server);
	int error = 0;

	*side = (struct host_side){.server = server, .loop = loop};
	if (watch_fd >= 0)
		error = loop_watch(loop, &side->watch, watch_fd, POLLIN, host_side_watch_event);
	if (!error && notify_fd >= 0)
		error = loop_watch(loop, &side->notify, notify_fd, POLLIN | POLLOUT,
				   host_side_notify_event);
	return error;
}

/* Serves the front end on the socket of @options, which is taken over, until it hangs up. */
static int serve(struct fs_server *server, struct fs_options *options)
{
	struct vhost_backend_description description;
	struct vhost_backend_counters counters;
	struct vhost_backend *backend;
	struct fs_device device;
	struct host_side host;
	struct loop *loop;
	int error = loop_create(&loop, LOOP_OPERATIONS,
				options->no_io_uring ? LOOP_BACKEND_EPOLL : LOOP_BACKEND_ANY);

	if (error) {
		fd_close(&options->socket_fd);
		return log_errno(error, "cannot make an event loop");
	}
	description = fs_device_describe(&device, server);
	error = vhost_backend_create(&backend, &description, loop, fd_take(&options->socket_fd));
	if (error) {
		log_errno(error, "cannot serve the vhost-user socket");
		goto out_loop;
	}
	error = host_side_start(&host, server, options->notify_fd, loop);
	if (!error)
		error = loop_enable(loop);
	if (error) {
		log_errno(error, "cannot get ready to serve");
		goto out_backend;
	}
	error = jail_seal(filter_fs, options->allow_degraded);
	if (error)
		goto out_backend;
	error = loop_run(loop);
	if (error)
		log_errno(error, "the vhost-user session failed");
	fs_server_tell_changes(server);
	counters = vhost_backend_counters(backend);
	fs_server_report(server);
	log_info("kicks %llu, interrupts %llu", (unsigned long long)counters.kicks,
		 (unsigned long long)counters.interrupts);
out_backend:
	vhost_backend_destroy(backend);
out_loop:
	loop_destroy(loop);
	return error;
}

/* The share's path as the host has it, which cannot be told once this process is confined. Empty:
 * it is not known. */
static void find_root_path(int root_fd, char path[PATH_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", root_fd);
	length = readlink(link, path, PATH_MAX - 1);
	path[length < 0 ? 0 : length] = '\0';
}

/* A share that is only read, or under review, is only read here too. Root who shares what is
 * another user's lets this process be that user, so that what the agent makes is theirs too; the
 * changes of a review are kept below root's own directories. */
static int confine(const struct fs_options *options, uint8_t *walls)
{
	struct stat root = {0};
	const struct jail_directory directories[] = {
		{options->root_fd, !options->read_only && options->upper_fd < 0, false},
		{options->upper_fd, true, true},
	};

	if (options->upper_fd < 0 && fstat(options->root_fd, &root))
		return log_errno(-errno, "cannot look at the root of the share");
	return jail_enter(&(struct jail){
		.directories = directories,
		.directory_count = ARRAY_SIZE(directories),
		.capabilities = CAPABILITIES_FILE_SERVER,
		.proc = true,
		.keep_user = true,
		.owner = root.st_uid,
		.owner_group = root.st_gid,
		.allow_degraded = options->allow_degraded,
		.walls = walls,
	});
}

int main(int argc, char **argv)
{
	struct fs_options options;
	struct fs_review review;
	struct fs_config config;
	struct fs_server *server;
	char root_path[PATH_MAX];
	uint8_t walls = 0;
	int result = fs_options_parse(&options, argc, argv);

	if (result <= 0)
		return result ? EXIT_FAILURE : EXIT_SUCCESS;
	log_set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	ignore_signals();
	raise_descriptor_limit();
	find_root_path(options.root_fd, root_path);
	if (options.socket_path)
		options.socket_fd = vhost_backend_listen(options.socket_path);
	if (options.socket_fd < 0 || confine(&options, &walls))
		return EXIT_FAILURE;

	review = (struct fs_review){.upper_fd = options.upper_fd, .base_fd = options.base_fd};
	config = (struct fs_config){
		.root_fd = options.root_fd,
		.read_only = options.read_only,
		.guest_uid = options.guest_uid,
		.guest_gid = options.guest_gid,
		.policy = options.policy,
		.scan = true,
		.root_path = root_path,
		.cache = options.cache,
		.notify_fd = options.notify_fd,
		.journal_fd = options.record_fd,
		.review = options.upper_fd < 0 ? NULL : &review,
	};
	result = fs_server_create(&server, &config);
	if (result)
		return EXIT_FAILURE;
	fs_server_tell_walls(server, walls);
	result = serve(server, &options);
	fs_server_destroy(server);
	/* Not before: with the descriptor that made it goes a mount that hangs nowhere. */
	fd_close(&options.root_fd);
	fd_close(&options.upper_fd);
	fd_close(&options.base_fd);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
