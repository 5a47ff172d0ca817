/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/policy_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void policy_paths_destroy(struct policy_paths *paths)
{
	for (uint32_t i = 0; i < paths->count; i++) {
		free(paths->nodes[i].name);
		free(paths->nodes[i].merged);
	}
	for (uint16_t i = 0; i < paths->text_count; i++)
		free(paths->texts[i]);
	free(paths->nodes);
	*paths = (struct policy_paths){0};
}

uint32_t policy_paths_find(const struct policy_paths *paths, uint32_t node, const char *name)
{
	if (node == 0 || node >= paths->count)
		return 0;
	for (node = paths->nodes[node].first; node; node = paths->nodes[node].next)
		if (strcmp(paths->nodes[node].name, name) == 0)
			return node;
	return 0;
}

bool policy_paths_prepare(struct policy_paths *paths)
{
	struct policy_path_node *grown;
	uint32_t room = paths->room ? paths->room * 2 : 64;

	if (paths->count + 2 < paths->room)
		return true;
	if (room > LIMIT_POLICY_PATH_NAMES)
		return false;
	grown = reallocarray(paths->nodes, room, sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + paths->room, 0, (room - paths->room) * sizeof(*grown));
	paths->nodes = grown;
	paths->room = room;
	if (paths->count <= POLICY_PATH_ROOT)
		paths->count = POLICY_PATH_ROOT + 1;
	return true;
}

uint32_t policy_paths_add(struct policy_paths *paths, uint32_t node, const char *name,
			  uint16_t rule)
{
	uint32_t found = policy_paths_find(paths, node, name);
	char *copy;

	if (found)
		return found;
	copy = policy_paths_prepare(paths) ? strdup(name) : NULL;
	if (!copy)
		return 0;
	found = paths->count++;
	paths->nodes[found] = (struct policy_path_node){
		.name = copy,
		.next = paths->nodes[node].first,
		.rule = rule,
	};
	paths->nodes[node].first = found;
	return found;
}

int policy_paths_add_text(struct policy_paths *paths, const char *text)
{
	char *copy;

	if (paths->text_count == LIMIT_POLICY_PATHS)
		return -E2BIG;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	paths->texts[paths->text_count] = copy;
	return paths->text_count++;
}
