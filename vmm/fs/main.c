/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-fs: one share, as a vhost-user back end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/device.h"
#include "vmm/fs/options.h"
#include "vmm/fs/privilege.h"
#include "vmm/jail/landlock.h"

/* Operations of the loop: what the back end uses, and the two of struct host_side. */
#define LOOP_OPERATIONS (1 + FS_DEVICE_QUEUES + 2)

/* What comes from the host's side: changes of files, and room for notes about them. */
struct host_side {
	struct fs_server *server;
	struct loop_operation watch;
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

static void host_side_watch_event(struct loop_operation *operation, int result)
{
	(void)result;
	fs_server_serve_host(CONTAINER_OF(operation, struct host_side, watch)->server);
}

static void host_side_notify_event(struct loop_operation *operation, int result)
{
	(void)result;
	fs_server_serve_host(CONTAINER_OF(operation, struct host_side, notify)->server);
}

static int host_side_start(struct host_side *side, struct fs_server *server, int notify_fd,
			   struct loop *loop)
{
	int watch_fd = fs_server_watch_fd(server);
	int error = 0;

	*side = (struct host_side){.server = server};
	if (watch_fd >= 0)
		error = loop_watch(loop, &side->watch, watch_fd, POLLIN, host_side_watch_event);
	if (!error && notify_fd >= 0)
		error = loop_watch(loop, &side->notify, notify_fd, POLLIN | POLLOUT,
				   host_side_notify_event);
	return error;
}

/* Serves the front end on @socket_fd, which is taken over, until it hangs up. */
static int serve(struct fs_server *server, int socket_fd, int notify_fd,
		 enum loop_backend loop_backend)
{
	struct vhost_backend_description description;
	struct vhost_backend_counters counters;
	struct vhost_backend *backend;
	struct fs_device device;
	struct host_side host;
	struct loop *loop;
	int error = loop_create(&loop, LOOP_OPERATIONS, loop_backend);

	if (error) {
		fd_close(&socket_fd);
		return log_errno(error, "cannot make an event loop");
	}
	description = fs_device_describe(&device, server);
	error = vhost_backend_create(&backend, &description, loop, socket_fd);
	if (error) {
		log_errno(error, "cannot serve the vhost-user socket");
		goto out_loop;
	}
	error = host_side_start(&host, server, notify_fd, loop);
	if (!error)
		error = loop_enable(loop);
	if (!error)
		error = loop_run(loop);
	if (error)
		log_errno(error, "the vhost-user session failed");
	counters = vhost_backend_counters(backend);
	fs_server_report(server);
	log_info("kicks %llu, interrupts %llu", (unsigned long long)counters.kicks,
		 (unsigned long long)counters.interrupts);
	vhost_backend_destroy(backend);
out_loop:
	loop_destroy(loop);
	return error;
}

/*
 * The second wall, beside the resolution of names: the share is all that this process can open any
 * more. A share that is only read, or under review, is only read here too.
 */
static int confine(const struct fs_options *options)
{
	const struct landlock_directory directories[] = {
		{options->root_fd, !options->read_only && options->upper_fd < 0, false},
		{options->upper_fd, true, true},
#ifdef __SANITIZE_ADDRESS__
		{open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), false, false}, /* at the end */
#endif
	};
	int error = landlock_confine(directories, ARRAY_SIZE(directories));

	if (error == -EOPNOTSUPP) {
		log_info("this kernel has no Landlock: names alone keep the server in the share");
		return 0;
	}
	return error ? log_errno(error, "cannot confine the server to its share") : 0;
}

int main(int argc, char **argv)
{
	struct fs_options options;
	struct fs_review review;
	struct fs_config config;
	struct fs_server *server;
	int result = fs_options_parse(&options, argc, argv);

	if (result <= 0)
		return result ? EXIT_FAILURE : EXIT_SUCCESS;
	log_set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	ignore_signals();
	raise_descriptor_limit();
	if (fs_drop_capabilities())
		return EXIT_FAILURE;
	if (options.socket_path)
		options.socket_fd = vhost_backend_listen(options.socket_path);
	if (options.socket_fd < 0 || confine(&options))
		return EXIT_FAILURE;

	review = (struct fs_review){.upper_fd = options.upper_fd, .base_fd = options.base_fd};
	config = (struct fs_config){
		.root_fd = options.root_fd,
		.read_only = options.read_only,
		.guest_uid = options.guest_uid,
		.guest_gid = options.guest_gid,
		.policy = options.policy,
		.scan = true,
		.cache = options.cache,
		.notify_fd = options.notify_fd,
		.review = options.upper_fd < 0 ? NULL : &review,
	};
	result = fs_server_create(&server, &config);
	if (result)
		return EXIT_FAILURE;
	fd_close(&options.root_fd);
	fd_close(&options.upper_fd);
	fd_close(&options.base_fd);
	result = serve(server, options.socket_fd, options.notify_fd,
		       options.no_io_uring ? LOOP_BACKEND_EPOLL : LOOP_BACKEND_ANY);
	fs_server_destroy(server);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
