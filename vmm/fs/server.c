/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/operation.h"
#include "vmm/fs/watch.h"

/* How many descriptors there may be for the guest. */
static unsigned int server_fd_limit(unsigned int wanted)
{
	struct rlimit limit;
	rlim_t available = LIMIT_FS_FD_MINIMUM;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur > LIMIT_FS_FD_RESERVE + LIMIT_FS_FD_MINIMUM)
		available = limit.rlim_cur - LIMIT_FS_FD_RESERVE;
	if (available > LIMIT_FS_INODES + LIMIT_FS_HANDLES)
		available = LIMIT_FS_INODES + LIMIT_FS_HANDLES;
	if (wanted >= LIMIT_FS_FD_MINIMUM && wanted < available)
		return wanted;
	return (unsigned int)available;
}

static void server_forget_inode(void *context, struct inode *inode)
{
	coherence_forget(context, inode);
}

static void server_change_lower(void *context, struct inode *inode)
{
	coherence_forget(context, inode);
	coherence_lose(context);
}

/* Opens a directory once more, O_PATH. fd or -errno. */
static int server_open_directory(int directory_fd, struct statx *status)
{
	int fd = path_open_name(directory_fd, ".");
	int error = fd < 0 ? fd : path_status(fd, status);

	if (!error && !S_ISDIR(status->stx_mode))
		error = -ENOTDIR;
	if (error)
		fd_close(&fd);
	return error ? error : fd;
}

/* Makes @root_fd (taken over), whose status is @status, node 1. */
static int server_add_root(struct fs_server *server, int root_fd, const struct statx *status,
			   unsigned int fd_limit)
{
	struct inode_identity identity = inode_identity_of(status);
	int error =
		inode_table_create(&server->inodes, root_fd, &identity, server_fd_limit(fd_limit));

	if (error)
		return log_errno(error, "no memory for the file server");
	server->root_fd = root_fd;
	server->inodes.removing = server_forget_inode;
	server->inodes.lower_changes = server_change_lower;
	server->inodes.context = server;
	return guard_enter_root(server);
}

/* The root of a share under review is in both layers. @lower_fd is taken over. */
static int server_open_layers(struct fs_server *server, const struct fs_config *config,
			      int lower_fd, const struct statx *lower)
{
	const struct timespec times[2] = {
		{lower->stx_atime.tv_sec, lower->stx_atime.tv_nsec},
		{lower->stx_mtime.tv_sec, lower->stx_mtime.tv_nsec},
	};
	struct statx status;
	struct inode *root;
	int upper_fd = server_open_directory(config->review->upper_fd, &status);
	int error = upper_fd < 0 ? upper_fd : layer_create(&server->layer, config->review->base_fd);

	if (error) {
		fd_close(&upper_fd);
		fd_close(&lower_fd);
		return log_errno(error, "cannot use the directory for the guest's changes");
	}
	server->guard.hide_only = true;
	error = server_add_root(server, upper_fd, &status, config->fd_limit);
	if (error) {
		fd_close(&lower_fd);
		return error;
	}
	root = inode_find(&server->inodes, FUSE_ROOT_ID);
	root->layers = INODE_MERGED;
	root->lower = root->origin = inode_number_of(lower);
	inode_reserve_fd(&server->inodes);
	inode_adopt_lower_fd(&server->inodes, root, lower_fd);
	/* A new one is as old as what it stands for. */
	utimensat(upper_fd, "", times, AT_EMPTY_PATH);
	return 0;
}

static int server_open_root(struct fs_server *server, const struct fs_config *config)
{
	struct statx status;
	int root_fd = server_open_directory(config->root_fd, &status);

	if (root_fd < 0)
		return log_errno(root_fd, root_fd == -ENOSYS
						  ? "no openat2(2): the kernel is older than "
						    "Linux 5.6, or a filter around mvagent "
						    "forbids it (in a service of systemd, leave "
						    "out RestrictSUIDSGID=)"
						  : "cannot open the root of the share");
	server->root_device = inode_number_of(&status).device;
	return config->review ? server_open_layers(server, config, root_fd, &status)
			      : server_add_root(server, root_fd, &status, config->fd_limit);
}

int fs_server_create(struct fs_server **result, const struct fs_config *config)
{
	struct fs_server *server = calloc(1, sizeof(*server));
	int error;

	if (!server) {
		policy_destroy(config->policy);
		return log_errno(-ENOMEM, "no memory for the file server");
	}
	server->proc_fd = -1;
	server->read_only = config->read_only;
	if (journal_create(&server->journal, config->journal_fd)) {
		policy_destroy(config->policy);
		free(server);
		return log_errno(-ENOMEM, "no memory for the file server");
	}
	guard_create(&server->guard, config->policy ? config->policy : policy_create());
	if (!server->guard.policy) {
		journal_destroy(server->journal);
		free(server);
		return log_errno(-ENOMEM, "no memory for the file server");
	}
	server->coherence.notify_fd = -1;
	handle_table_create(&server->handles);
	server->proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (server->proc_fd < 0 || fchdir(server->proc_fd)) {
		error = log_errno(-errno, "cannot enter /proc/self/fd, which must be mounted");
		goto out;
	}
	error = server_open_root(server, config);
	if (error)
		goto out;
	error = coherence_create(&server->coherence, config->cache, config->notify_fd,
				 config->root_fd);
	if (error) {
		log_errno(error, "cannot prepare notes to the guest");
		goto out;
	}
	error = attr_owner_create(&server->owner, config->guest_uid, config->guest_gid);
	if (error) {
		log_errno(error, "cannot read this process's groups");
		goto out;
	}
	if (config->scan) {
		error = scan_start(&server->scan, config->root_fd, config->root_path,
				   server->guard.policy, !config->read_only && !config->review);
		if (error) {
			log_errno(error, "cannot look for hidden files");
			goto out;
		}
	}
	umask(0);
	*result = server;
	return 0;
out:
	fs_server_destroy(server);
	return error;
}

int fs_server_finish_scan(struct fs_server *server)
{
	struct scan *scan = server->scan;

	server->scan = NULL;
	if (!scan)
		return server->scan_failed ? -ENFILE : 0;
	if (scan_finish(scan, &server->guard.scanned) || guard_enter_root(server))
		server->scan_failed = true;
	return server->scan_failed ? -ENFILE : 0;
}

void fs_server_destroy(struct fs_server *server)
{
	fs_server_finish_scan(server);
	attr_owner_destroy(&server->owner);
	identity_set_destroy(&server->own_links);
	guard_destroy(&server->guard);
	handle_table_destroy(&server->handles);
	inode_table_destroy(&server->inodes);
	layer_destroy(server->layer);
	coherence_destroy(&server->coherence);
	journal_destroy(server->journal);
	fd_close(&server->proc_fd);
	free(server);
}

void fs_server_tell_walls(struct fs_server *server, uint8_t walls)
{
	journal_walls(server, walls);
}

void fs_server_tell_changes(struct fs_server *server)
{
	journal_finish(server);
}

void fs_server_reset(struct fs_server *server)
{
	uint32_t closed = handle_table_reset(&server->handles);

	while (closed--)
		inode_return_fd(&server->inodes);
	inode_table_reset(&server->inodes);
	server->initialized = false;
}

uint32_t fs_server_serve(struct fs_server *server, const struct descriptor_chain *chain)
{
	struct wire_request request;
	int result = wire_decode(&request, chain, server->arguments);

	if (result)
		server->counters.invalid++;
	else
		result = fs_dispatch(server, &request);
	if (result < 0)
		server->counters.errors++;
	if (result == -ENFILE)
		server->counters.full++;
	return fs_operation_replies(request.header.opcode) ? wire_finish(&request, result) : 0;
}

int fs_server_watch_fd(const struct fs_server *server)
{
	return server->coherence.watch ? watch_fd(server->coherence.watch) : -1;
}

bool fs_server_serve_watch(struct fs_server *server)
{
	return coherence_serve_watch(server);
}

void fs_server_serve_notify(struct fs_server *server)
{
	coherence_serve_notify(server);
}

const struct fs_counters *fs_server_counters(const struct fs_server *server)
{
	return &server->counters;
}

struct fs_usage fs_server_usage(const struct fs_server *server)
{
	return (struct fs_usage){
		.inodes = server->inodes.inode_count,
		.handles = server->handles.open_count,
		.descriptors = server->inodes.fd_used,
	};
}

void fs_server_report(const struct fs_server *server)
{
	uint64_t total = 0;

	for (uint32_t opcode = 0; opcode < WIRE_OPCODE_COUNT; opcode++) {
		uint64_t count = server->counters.requests[opcode];

		total += count;
		if (count)
			log_info("requests: %s %" PRIu64, fs_operation_name(opcode), count);
	}
	log_info("notes of the host's changes to the guest: %" PRIu64, server->coherence.notes);
	log_info("requests in all: %" PRIu64 ", answered with an error: %" PRIu64
		 ", not well-formed: %" PRIu64,
		 total, server->counters.errors, server->counters.invalid);
}
