/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_root.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/base/number.h"

int run_root_set(struct run_root *root, const char *value)
{
	if (!*value) {
		log_error("--root needs 'host' or an image file");
		return -EINVAL;
	}
	/* A file of that name is ./host. */
	root->image = strcmp(value, "host") == 0 ? NULL : value;
	return 0;
}

/* Whether @directory is @path or above it; both canonical. */
static bool holds(const char *directory, const char *path)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && (!path[length] || path[length] == '/');
}

/* All of a home would be keys and settings; what a tool needs of it can be named. */
static int check_home(const char *given, const char *resolved)
{
	const struct passwd *user = getpwuid(getuid());
	const char *homes[] = {getenv("HOME"), user ? user->pw_dir : NULL};
	char home[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		if (!homes[i] || !realpath(homes[i], home) || strcmp(home, "/") == 0 ||
		    !holds(resolved, home))
			continue;
		log_error("--root-add %s: your home directory is in it, with all your keys and "
			  "settings; name the directory that is needed, such as ~/.local/bin",
			  given);
		return -EPERM;
	}
	return 0;
}

/* Whether the guest can have it at the very path that was given. */
static bool is_plain(const char *path)
{
	if (path[0] != '/' || !path[1])
		return false;
	while (*path) {
		size_t length = strcspn(path + 1, "/");

		if (length == 0 || (path[1] == '.' && length == 1) ||
		    (path[1] == '.' && path[2] == '.' && length == 2))
			return false;
		path += length + 1;
	}
	return true;
}

int run_root_add(struct run_root *root, const char *value)
{
	char resolved[PATH_MAX];
	int error;

	if (root->add_count == LIMIT_ROOT_ADDS) {
		log_error("--root-add %s: at most %d directories can be added", value,
			  LIMIT_ROOT_ADDS);
		return -E2BIG;
	}
	if (!realpath(value, resolved))
		return log_errno(-errno, "--root-add %s", value);
	if (strcmp(resolved, "/") == 0) {
		log_error("--root-add %s: it is this whole system", value);
		return -EPERM;
	}
	error = check_home(value, resolved);
	if (error)
		return error;
	/* Tools know their own place by the path that the user knows too, be it over links. */
	root->adds[root->add_count] = strdup(is_plain(value) ? value : resolved);
	if (!root->adds[root->add_count])
		return log_errno(-ENOMEM, "cannot keep --root-add");
	root->add_count++;
	return 0;
}

int run_root_hide(struct run_root *root, const char *value)
{
	if (root->hide_count == LIMIT_ROOT_HIDES) {
		log_error("--root-hide %s: at most %d patterns can be given", value,
			  LIMIT_ROOT_HIDES);
		return -E2BIG;
	}
	root->hides[root->hide_count++] = value;
	return 0;
}

int run_root_set_scratch(struct run_root *root, const char *value)
{
	/* It is more than any memory; what is above that is never used. */
	int error = number_parse_mib(value, LIMIT_SCRATCH_GIB << 10, &root->scratch_mib);

	if (!error && root->scratch_mib > 0)
		return 0;
	if (error == -ERANGE) {
		log_error("--scratch %s: at most %lluG can be given; it is of the guest's memory",
			  value, LIMIT_SCRATCH_GIB);
		return -EINVAL;
	}
	log_error("--scratch %s: give a size in MiB above 0, or with suffix M or G", value);
	return -EINVAL;
}

int run_root_check(const struct run_root *root)
{
	if (!root->image || (!root->add_count && !root->hide_count))
		return 0;
	log_error("--root-add and --root-hide are for --root host; the root is the image %s",
		  root->image);
	return -EINVAL;
}

int run_root_make_plan(const struct run_root *root, struct host_plan *plan)
{
	int error = host_plan_create(plan, "/");

	for (unsigned int i = 0; i < root->add_count && !error; i++)
		error = host_plan_add_directory(plan, root->adds[i]);
	for (unsigned int i = 0; i < root->hide_count && !error; i++)
		error = host_plan_hide(plan, root->hides[i]);
	return error;
}

int run_root_try(const struct run_root *root)
{
	struct host_plan plan;
	int error;

	if (!root->add_count && !root->hide_count)
		return 0;
	error = run_root_make_plan(root, &plan);
	host_plan_destroy(&plan);
	return error;
}

void run_root_plan(const struct run_root *root, struct process_plan *plan)
{
	process_plan_add(plan, "--host");
	for (unsigned int i = 0; i < root->add_count; i++) {
		process_plan_add(plan, "--add");
		process_plan_add(plan, "%s", root->adds[i]);
	}
	for (unsigned int i = 0; i < root->hide_count; i++) {
		process_plan_add(plan, "--hide");
		process_plan_add(plan, "%s", root->hides[i]);
	}
}

void run_root_free(struct run_root *root)
{
	for (unsigned int i = 0; i < root->add_count; i++)
		free(root->adds[i]);
	root->add_count = 0;
}
