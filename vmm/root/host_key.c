/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/root/host_image.h"

/* To be raised with every change of what is written, or of what the same plan leads to. */
#define FORMAT_VERSION 2U

static void write_plan(const struct host_plan *plan, FILE *out)
{
	for (unsigned int i = 0; i < plan->entry_count; i++) {
		const struct plan_entry *entry = &plan->entries[i];

		fprintf(out, "entry %u %u %u %u %o %s\n%s\n", entry->kind, entry->next,
			entry->first_child, entry->source, entry->mode,
			entry->name ? entry->name : "", entry->text ? entry->text : "");
	}
	for (unsigned int i = 0; i < plan->source_count; i++) {
		const struct plan_source *source = &plan->sources[i];

		fprintf(out, "source %d %s\n", source->added, source->path);
		for (const char *const *name = source->only; name && *name; name++)
			fprintf(out, "only %s\n", *name);
	}
	for (unsigned int i = 0; i < plan->hide_count; i++)
		fprintf(out, "hide %s\n", plan->hides[i]);
	for (const char *const *name = host_list_credentials; *name; name++)
		fprintf(out, "credential %s\n", *name);
}

static bool is_below_a_source(const struct host_plan *plan, const char *path)
{
	for (unsigned int i = 0; i < plan->source_count; i++) {
		size_t length = strlen(plan->sources[i].path);

		if (strncmp(path, plan->sources[i].path, length) == 0 && path[length] == '/')
			return true;
	}
	return false;
}

/* What is mounted there stays outside, and no directory's time tells of a mount. */
static void write_mounts(const struct host_plan *plan, FILE *out)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	/* 36 35 98:0 /mnt1 /mnt2 ...: proc_pid_mountinfo(5). */
	while (mounts && getline(&line, &size, mounts) > 0) {
		char *field = line, *path = NULL;

		for (int i = 0; i < 5 && field; i++)
			path = strsep(&field, " ");
		if (path && is_below_a_source(plan, path))
			fprintf(out, "mount %s\n", path);
	}
	free(line);
	if (mounts)
		fclose(mounts);
}

int host_key_make(const struct host_plan *plan, char **key, size_t *length)
{
	FILE *out = open_memstream(key, length);

	if (!out)
		return -ENOMEM;
	fprintf(out, "mvagent root %u, node %zu, uid %u\n", FORMAT_VERSION,
		sizeof(struct tree_node), geteuid());
	write_plan(plan, out);
	write_mounts(plan, out);
	if (fclose(out) == 0)
		return 0;
	free(*key);
	*key = NULL;
	return -ENOMEM;
}
