/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_root.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/root/host_cache.h"
#include "vmm/root/host_content.h"
#include "vmm/root/host_plan.h"

/* Descriptors for all but the host's files: sockets, eventfds, guest memory, the sources. */
#define OTHER_DESCRIPTORS (32U + LIMIT_ROOT_SOURCES)

/* Progress is shown when it takes longer than this, and not more often. */
#define PROGRESS_NS 300000000U

struct host_root {
	struct host_plan plan;
	struct host_image image;
	struct host_content *content;
	uint64_t ready_ns; /* how long it took */
	uint64_t shown_ns; /* when progress was shown last, or the beginning */
	int progress_fd;   /* -1: nobody wants to know */
	bool from_cache;
};

/* How many files may be open at once. 0: too few. */
static unsigned int files_to_keep_open(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur <= OTHER_DESCRIPTORS + LIMIT_BLK_INFLIGHT) {
		log_error("serving the host's directories takes at least %u open files, and the "
			  "limit is %llu: raise it with 'ulimit -n'",
			  OTHER_DESCRIPTORS + LIMIT_BLK_INFLIGHT + 1,
			  (unsigned long long)limit.rlim_cur);
		return 0;
	}
	return (unsigned int)bytes_minimum(limit.rlim_cur - OTHER_DESCRIPTORS, LIMIT_ROOT_OPEN);
}

static int make_plan(struct host_plan *plan, const struct blk_options *options)
{
	int error = host_plan_create(plan, options->host);

	for (unsigned int i = 0; i < options->add_count && !error; i++)
		error = host_plan_add_directory(plan, options->adds[i]);
	for (unsigned int i = 0; i < options->hide_count && !error; i++)
		error = host_plan_hide(plan, options->hides[i]);
	/* What was needed is open. */
	fd_close(&plan->host_fd);
	return error;
}

/* For who waits for the device. */
static void show_progress(void *context, uint32_t names)
{
	struct host_root *root = context;
	uint64_t now = clock_monotonic_ns();

	if (now - root->shown_ns < PROGRESS_NS)
		return;
	root->shown_ns = now;
	/* If it cannot be told, the device will be ready all the same. */
	fd_write_full(root->progress_fd, &names, sizeof(names));
}

static int build_image(struct host_root *root, struct host_cache *cache)
{
	const struct host_progress shown = {.show = show_progress, .context = root};
	int64_t second = time(NULL);
	int error =
		host_image_build(&root->image, &root->plan, root->progress_fd >= 0 ? &shown : NULL);

	if (!error)
		host_cache_save(cache, &root->image, second);
	return error;
}

static int fill(struct host_root *root, const struct blk_options *options, unsigned int descriptors)
{
	struct host_cache *cache;
	int error = make_plan(&root->plan, options);

	if (!error)
		error = host_cache_open(&cache, options->cache_fd, &root->plan);
	if (error)
		return error;
	root->from_cache = host_cache_load(cache, &root->plan, &root->image) == 0;
	if (!root->from_cache)
		error = build_image(root, cache);
	/* Who serves the guest has no business there any more. */
	host_cache_close(cache);
	if (!error)
		error = host_content_create(&root->content, &root->plan, &root->image, descriptors);
	return error;
}

int host_root_create(struct host_root **root, const struct blk_options *options)
{
	struct host_root *created = calloc(1, sizeof(*created));
	unsigned int descriptors = files_to_keep_open();
	int error;

	if (!created || !descriptors) {
		free(created);
		return descriptors ? -ENOMEM : -EMFILE;
	}
	created->plan.host_fd = -1;
	created->progress_fd = options->progress ? options->ready_fd : -1;
	created->shown_ns = clock_monotonic_ns();
	created->ready_ns = created->shown_ns;
	error = fill(created, options, descriptors);
	created->ready_ns = clock_monotonic_ns() - created->ready_ns;
	if (error)
		host_root_destroy(created);
	else
		*root = created;
	return error;
}

void host_root_destroy(struct host_root *root)
{
	if (!root)
		return;
	host_content_destroy(root->content);
	host_image_destroy(&root->image);
	host_plan_destroy(&root->plan);
	free(root);
}

const struct host_plan *host_root_plan(const struct host_root *root)
{
	return &root->plan;
}

const uint8_t *host_root_metadata_hash(const struct host_root *root)
{
	return root->image.metadata_hash;
}

struct content host_root_content(const struct host_root *root)
{
	return host_content_of(root->content);
}

bool host_root_is_outdated(const struct host_root *root)
{
	return host_content_counters(root->content).changed > 0;
}

void host_root_report(const struct host_root *root)
{
	const struct host_counts *counts = &root->image.counts;
	struct host_content_counters content = host_content_counters(root->content);

	log_info("%llu directories, %llu files and %llu links of the host in %llu KiB of metadata, "
		 "%s in %llu us; %llu reads of it, %llu of files; %llu files opened, %llu refused",
		 (unsigned long long)counts->directories, (unsigned long long)counts->files,
		 (unsigned long long)counts->symlinks,
		 (unsigned long long)root->image.layout.metadata_bytes >> 10,
		 root->from_cache ? "checked" : "made", (unsigned long long)root->ready_ns / 1000,
		 (unsigned long long)content.metadata, (unsigned long long)content.contents,
		 (unsigned long long)content.opened, (unsigned long long)content.changed);
}
