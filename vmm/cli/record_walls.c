/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps each process of a run in. */
#include <stdio.h>
#include <string.h>

#include "vmm/cli/record_lines.h"
#include "vmm/jail/jail.h"
#include "vmm/record/canonical.h"

/* What the kernel says of a process, wherever anybody can read it. */
struct seen {
	bool known;
	bool no_new_privileges;
	bool filtered;
	char capabilities[17]; /* CapEff */
	unsigned int uid;      /* effective */
};

static const char *find_field(const char *text, const char *name)
{
	const char *found = strstr(text, name);

	return found ? found + strlen(name) + strspn(found + strlen(name), "\t ") : "";
}

static struct seen look_at(pid_t pid)
{
	char path[32], text[4096] = "";
	struct seen seen = {0};
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return seen;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	seen.known = *find_field(text, "\nSeccomp:");
	seen.no_new_privileges = *find_field(text, "\nNoNewPrivs:") == '1';
	seen.filtered = *find_field(text, "\nSeccomp:") == '2';
	snprintf(seen.capabilities, sizeof(seen.capabilities), "%.16s",
		 find_field(text, "\nCapEff:"));
	/* Real, effective, saved and of the file system (proc_pid_status(5)). */
	seen.known &= sscanf(find_field(text, "\nUid:"), "%*u %u", &seen.uid) == 1;
	return seen;
}

static void add_wall(cJSON *walls, cJSON *missing, const char *name, bool there)
{
	cJSON_AddItemToArray(there ? walls : missing, cJSON_CreateString(name));
}

static cJSON *process_walls(const struct process *process)
{
	struct seen seen = look_at(process->pid);
	cJSON *object = cJSON_CreateObject(), *walls, *missing;

	cJSON_AddStringToObject(object, "process", process->name ? process->name : "");
	walls = cJSON_AddArrayToObject(object, "in_force");
	missing = cJSON_AddArrayToObject(object, "missing");
	add_wall(walls, missing, "namespaces", process->apart);
	/* The rest is the process's own to know. */
	if (process->walls_told) {
		add_wall(walls, missing, "mounts", process->walls & JAIL_MOUNTS);
		add_wall(walls, missing, "landlock", process->walls & JAIL_LANDLOCK);
	} else {
		cJSON_AddItemToObject(object, "not_told", cJSON_Parse("[\"mounts\",\"landlock\"]"));
	}
	add_wall(walls, missing, "no_new_privileges", seen.no_new_privileges);
	add_wall(walls, missing, "system_calls", seen.filtered);
	if (seen.known) {
		cJSON_AddStringToObject(object, "capabilities", seen.capabilities);
		canonical_add_count(object, "uid", seen.uid);
	} else {
		cJSON_AddNullToObject(object, "capabilities");
		cJSON_AddNullToObject(object, "uid");
	}
	return object;
}

cJSON *record_line_walls(const struct supervisor *supervisor)
{
	cJSON *line = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(line, "processes");

	for (unsigned int i = 0; i < supervisor->process_count; i++)
		cJSON_AddItemToArray(list, process_walls(&supervisor->processes[i]));
	return line;
}
