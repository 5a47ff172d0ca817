/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/log.h"
#include "vmm/root/host_content.h"
#include "vmm/root/host_plan.h"

/* Descriptors for all but the host's files: sockets, eventfds, guest memory, the sources. */
#define OTHER_DESCRIPTORS (32U + LIMIT_ROOT_SOURCES)

struct host_root {
	struct host_plan plan;
	struct host_image image;
	struct host_content *content;
	uint64_t build_ns;
};

/* How many files may be open at once. 0: too few. */
static unsigned int files_to_keep_open(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	/* It takes no harm from select(2), which is what the lower limit is for. */
	if (limit.rlim_cur < limit.rlim_max && limit.rlim_cur < 1024) {
		limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return 0;
	}
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
	return error;
}

int host_root_create(struct host_root **root, const struct blk_options *options)
{
	struct host_root *created = calloc(1, sizeof(*created));
	unsigned int descriptors = files_to_keep_open();
	uint64_t begin = clock_monotonic_ns();
	int error;

	if (!created || !descriptors) {
		free(created);
		return descriptors ? -ENOMEM : -EMFILE;
	}
	error = make_plan(&created->plan, options);
	if (!error)
		error = host_image_build(&created->image, &created->plan, NULL);
	if (!error)
		error = host_content_create(&created->content, &created->plan, &created->image,
					    descriptors);
	created->build_ns = clock_monotonic_ns() - begin;
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

struct content host_root_content(const struct host_root *root)
{
	return host_content_of(root->content);
}

void host_root_report(const struct host_root *root)
{
	const struct host_counts *counts = &root->image.counts;
	struct host_content_counters content = host_content_counters(root->content);

	log_info("%llu directories, %llu files and %llu links of the host in %llu KiB of metadata, "
		 "made in %llu ms; %llu files opened, %llu refused",
		 (unsigned long long)counts->directories, (unsigned long long)counts->files,
		 (unsigned long long)counts->symlinks,
		 (unsigned long long)root->image.layout.metadata_bytes >> 10,
		 (unsigned long long)root->build_ns / CLOCK_NS_PER_MS,
		 (unsigned long long)content.opened, (unsigned long long)content.changed);
}
