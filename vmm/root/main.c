/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-blk: the guest's root device, as a vhost-user back end. */
#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"
#include "vmm/root/blk.h"
#include "vmm/root/host_cache.h"
#include "vmm/root/host_confine.h"
#include "vmm/root/host_root.h"
#include "vmm/root/image.h"
#include "vmm/root/options.h"
#include "vmm/root/verified_image.h"
#include "vmm/virtio/vhost_backend.h"
#include "vmm/wire/ready.h"

/* The back end's operations (its socket, and a kick for each queue) and the reads in flight. */
#define LOOP_OPERATIONS (1 + BLK_QUEUES + LIMIT_BLK_INFLIGHT)

/* The device and the back end that it is plugged into. */
struct server {
	struct loop *loop;
	/* What is served: one of the three. */
	struct image image;
	struct verified_image *verified;
	struct host_root *host;
	bool is_spoiled; /* the second is not what it should be */
	struct blk *blk;
	struct vhost_backend *backend;
};

/* Nothing that is not the image may reach the guest: the run is over. */
static void end_spoiled(void *context)
{
	struct server *server = context;

	server->is_spoiled = true;
	loop_stop(server->loop, -EBADMSG);
}

static int process_queue(void *device, unsigned int index, struct virtqueue *queue)
{
	struct server *server = device;

	(void)index;
	return blk_process_queue(server->blk, queue);
}

static void drain_queue(void *device, unsigned int index, struct virtqueue *queue)
{
	struct server *server = device;

	(void)index;
	(void)queue;
	blk_drain(server->blk);
}

static void finish_batch(void *context)
{
	struct server *server = context;

	vhost_backend_finish_batch(server->backend, 0);
}

/* What the device is made of. 0 or -errno with the sentence printed. */
static int open_content(struct server *server, const struct blk_options *options,
			struct content *content)
{
	uint64_t sectors = 0;
	int error;

	if (options->host) {
		error = host_root_create(&server->host, options);
		if (!error)
			*content = host_root_content(server->host);
	} else if (options->is_verified) {
		error = verified_image_create(&server->verified, options->image_fd,
					      options->image_bytes, options->verity_root,
					      end_spoiled, server);
		if (!error)
			*content = verified_image_content(server->verified);
	} else {
		error = image_measure(options->image_fd, &sectors);
		*content = image_content(&server->image, options->image_fd, sectors);
	}
	return error;
}

/* Puts the device together. @socket_fd is taken over. 0 or -errno; either way server_destroy. */
static int server_create(struct server *server, const struct blk_options *options,
			 const struct content *content, int socket_fd)
{
	static const struct vhost_backend_ops ops = {
		.process_queue = process_queue,
		.drain_queue = drain_queue,
	};
	FD_CLEANUP int owned_fd = socket_fd;
	struct virtio_blk_config config;
	int error = loop_create(&server->loop, LOOP_OPERATIONS,
				options->no_io_uring ? LOOP_BACKEND_EPOLL : LOOP_BACKEND_ANY);

	if (error)
		return error;
	error = blk_create(&server->blk, &(struct blk_description){.loop = server->loop,
								   .content = *content,
								   .finish_batch = finish_batch,
								   .context = server});
	if (error)
		return error;
	config = blk_config(server->blk);
	return vhost_backend_create(&server->backend,
				    &(struct vhost_backend_description){
					    .ops = &ops,
					    .device = server,
					    .features = blk_features() |
							1ULL << VIRTIO_F_VERSION_1 |
							1ULL << VIRTIO_RING_F_INDIRECT_DESC |
							1ULL << VIRTIO_RING_F_EVENT_IDX,
					    .queue_count = BLK_QUEUES,
					    .config = &config,
					    .config_size = sizeof(config),
				    },
				    server->loop, fd_take(&owned_fd));
}

static void server_destroy(struct server *server)
{
	vhost_backend_destroy(server->backend);
	blk_destroy(server->blk);
	loop_destroy(server->loop);
	verified_image_destroy(server->verified);
	host_root_destroy(server->host);
}

static void report(const struct server *server)
{
	struct vhost_backend_counters backend = vhost_backend_counters(server->backend);
	struct blk_counters blk = blk_counters(server->blk);

	log_info("%llu requests (%llu waited for a file, %llu refused), %llu kicks, "
		 "%llu interrupts",
		 (unsigned long long)blk.requests, (unsigned long long)blk.waited,
		 (unsigned long long)blk.refused, (unsigned long long)backend.kicks,
		 (unsigned long long)backend.interrupts);
	if (server->host)
		host_root_report(server->host);
}

static int say_ready(const struct server *server, const struct blk_options *options,
		     struct ready_message *ready)
{
	if (options->ready_fd < 0)
		return 0;
	ready->has_metadata_hash = server->host != NULL;
	if (server->host)
		memcpy(ready->metadata_hash, host_root_metadata_hash(server->host),
		       sizeof(ready->metadata_hash));
	return fd_write_full(options->ready_fd, ready, sizeof(*ready));
}

int main(int argc, char **argv)
{
	struct server server = {0};
	struct ready_message ready = {0};
	struct blk_options options;
	struct content content;
	int status, result = blk_options_parse(&options, argc, argv);

	if (result <= 0)
		return result ? EXIT_FAILURE : EXIT_SUCCESS;
	log_set_level(options.verbose ? LOG_VERBOSE : LOG_NORMAL);
	if (open_content(&server, &options, &content))
		return EXIT_FAILURE;
	if (options.socket_path)
		options.socket_fd = vhost_backend_listen(options.socket_path);
	fd_close(&options.cache_fd);
	if (options.socket_fd < 0 || host_confine(server.host ? host_root_plan(server.host) : NULL,
						  options.allow_degraded, &ready.walls))
		return EXIT_FAILURE;

	result = server_create(&server, &options, &content, options.socket_fd);
	if (!result)
		result = loop_enable(server.loop);
	if (result)
		log_errno(result, "cannot set up the root device");
	else
		result = jail_seal(server.host ? filter_blk_host : filter_blk,
				   options.allow_degraded);
	if (!result)
		result = say_ready(&server, &options, &ready);
	fd_close(&options.ready_fd);
	if (!result) {
		result = loop_run(server.loop);
		if (result && !server.is_spoiled)
			log_errno(result, "the vhost-user session failed");
		report(&server);
	}
	status = result                                              ? EXIT_FAILURE
		 : server.host && host_root_is_outdated(server.host) ? HOST_CACHE_OUTDATED
								     : EXIT_SUCCESS;
	server_destroy(&server);
	fd_close(&options.image_fd);
	return status;
}
