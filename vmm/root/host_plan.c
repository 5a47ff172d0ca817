/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/root/path_rules.h"

/* The guest's init mounts over these: what lies there would not be seen. */
static const char *const covered[] = {"dev", "proc", "run", "sys", "tmp", NULL};

static uint16_t find_child(const struct host_plan *plan, uint16_t parent, const char *name,
			   size_t length)
{
	uint16_t index = plan->entries[parent].first_child;

	while (index && (strlen(plan->entries[index].name) != length ||
			 memcmp(plan->entries[index].name, name, length) != 0))
		index = plan->entries[index].next;
	return index;
}

/* Finds or makes the entry of one name: a directory until it is told otherwise. 0: no room. */
static uint16_t need_child(struct host_plan *plan, uint16_t parent, const char *name, size_t length)
{
	uint16_t index = find_child(plan, parent, name, length);
	struct plan_entry *entry;

	if (index || plan->entry_count == LIMIT_ROOT_PLAN)
		return index;
	index = (uint16_t)plan->entry_count;
	entry = &plan->entries[index];
	*entry = (struct plan_entry){
		.name = strndup(name, length),
		.next = plan->entries[parent].first_child,
		.mode = 0755,
		.kind = PLAN_DIRECTORY,
	};
	if (!entry->name)
		return 0;
	plan->entries[parent].first_child = index;
	plan->entry_count++;
	return index;
}

/* Finds or makes the entry of an absolute path, and the directories on the way. */
static struct plan_entry *need_entry(struct host_plan *plan, const char *path)
{
	const char *rest = path;
	uint16_t index = 0;

	while (*rest) {
		size_t length = strcspn(rest + 1, "/");

		if (plan->entries[index].kind == PLAN_SYMLINK ||
		    plan->entries[index].kind == PLAN_FILE) {
			log_error("%s: a part of this path is no directory of the guest's root; "
				  "give the path without links",
				  path);
			return NULL;
		}
		index = need_child(plan, index, rest + 1, length);
		if (!index) {
			log_error("the root file system has too many directories of its own: "
				  "give less of --root-add");
			return NULL;
		}
		rest += length + 1;
	}
	return &plan->entries[index];
}

static int add_text_entry(struct host_plan *plan, const char *path, enum plan_kind kind,
			  uint16_t mode, const char *text)
{
	struct plan_entry *entry = need_entry(plan, path);

	if (!entry)
		return -ENOSPC;
	entry->kind = (uint8_t)kind;
	entry->mode = mode;
	entry->text = text ? strdup(text) : NULL;
	return text && !entry->text ? -ENOMEM : 0;
}

/* Takes over @fd, a directory. */
static int add_source(struct host_plan *plan, const char *path, const char *const *only, bool added,
		      int fd)
{
	struct plan_source *source = &plan->sources[plan->source_count];
	struct plan_entry *entry = need_entry(plan, path);
	char *copy = strdup(path);

	if (entry && plan->source_count == LIMIT_ROOT_SOURCES)
		log_error("--root-add %s: at most %d directories make up the root", path,
			  LIMIT_ROOT_SOURCES);
	if (!entry || !copy || plan->source_count == LIMIT_ROOT_SOURCES) {
		free(copy);
		fd_close(&fd);
		return -ENOSPC;
	}
	*source = (struct plan_source){
		.path = copy, .only = only, .added = added, .checked = only != NULL, .fd = fd};
	entry->kind = PLAN_SOURCE;
	entry->source = (uint16_t)plan->source_count++;
	return 0;
}

/* Whether everybody may go to a listed directory, and see what is in it. */
static bool everybody_may_enter(const struct host_plan *plan, const char *path)
{
	char part[PATH_MAX];
	struct stat status = {0};

	for (const char *end = path; *end;) {
		end += strcspn(end + 1, "/") + 1;
		memcpy(part, path + 1, (size_t)(end - path) - 1);
		part[end - path - 1] = '\0';
		if (fstatat(plan->host_fd, part, &status, 0) < 0 || !(status.st_mode & S_IXOTH))
			return false;
	}
	return status.st_mode & S_IROTH;
}

/* What is at a listed path of the host: a directory, a link, or nothing. */
static int add_listed_source(struct host_plan *plan, const struct listed_path *listed)
{
	const char *relative = listed->path + 1;
	char target[PATH_MAX];
	ssize_t length;
	int fd = openat(plan->host_fd, relative, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && everybody_may_enter(plan, listed->path))
		return add_source(plan, listed->path, listed->only, false, fd);
	if (fd >= 0) {
		fd_close(&fd);
		return 0;
	}
	if (errno != ENOTDIR && errno != ELOOP)
		return 0;
	length = readlinkat(plan->host_fd, relative, target, sizeof(target) - 1);
	if (length <= 0)
		return 0;
	target[length] = '\0';
	return add_text_entry(plan, listed->path, PLAN_SYMLINK, 0777, target);
}

int host_plan_create(struct host_plan *plan, const char *host)
{
	int error = 0;

	*plan = (struct host_plan){.entry_count = 1};
	plan->entries[0] = (struct plan_entry){.kind = PLAN_DIRECTORY, .mode = 0755};
	plan->host_fd = open(host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (plan->host_fd < 0)
		return log_errno(-errno, "cannot open the directory %s", host);
	for (unsigned int i = 0; i < host_list_count && !error; i++) {
		const struct listed_path *listed = &host_list[i];

		if (listed->kind == PLAN_SOURCE)
			error = add_listed_source(plan, listed);
		else
			error = add_text_entry(plan, listed->path, listed->kind, listed->mode,
					       listed->text);
	}
	return error;
}

void host_plan_destroy(struct host_plan *plan)
{
	for (unsigned int i = 0; i < plan->source_count; i++) {
		free(plan->sources[i].path);
		fd_close(&plan->sources[i].fd);
	}
	for (unsigned int i = 0; i < plan->entry_count; i++) {
		free(plan->entries[i].name);
		free(plan->entries[i].text);
	}
	fd_close(&plan->host_fd);
}

static bool path_is_plain(const char *path)
{
	if (path[0] != '/' || !path[1] || strlen(path) >= PATH_MAX)
		return false;
	while (*path) {
		size_t length = strcspn(path + 1, "/");

		if (length == 0 || length > NAME_MAX || (length == 1 && path[1] == '.') ||
		    (length == 2 && path[1] == '.' && path[2] == '.'))
			return false;
		path += length + 1;
	}
	return true;
}

/* Whether the directory can hold what a user adds. @path is plain. */
static int check_added(const char *path)
{
	size_t length = strcspn(path + 1, "/");

	for (const char *const *name = covered; *name; name++) {
		if (strlen(*name) == length && strncmp(path + 1, *name, length) == 0) {
			log_error("--root-add %s: the guest has a /%s of its own", path, *name);
			return -EINVAL;
		}
	}
	if (strcmp(path, "/etc") == 0) {
		log_error("--root-add /etc: it holds passwords and keys; name the directory in it "
			  "that is needed");
		return -EINVAL;
	}
	return 0;
}

int host_plan_add_directory(struct host_plan *plan, const char *path)
{
	struct stat status;
	int error, fd;

	if (!path_is_plain(path)) {
		log_error("--root-add %s: give the absolute path of a directory", path);
		return -EINVAL;
	}
	error = check_added(path);
	if (error)
		return error;
	/* The user named it, so links are followed. */
	fd = openat(plan->host_fd, path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return log_errno(-errno, "--root-add %s", path);
	if (fstat(fd, &status) < 0) {
		error = log_errno(-errno, "--root-add %s", path);
	} else if ((status.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH)) {
		log_error("--root-add %s: only what everybody may read enters the root, and this "
			  "directory has mode %04o: change that, or use --share %s:ro",
			  path, status.st_mode & 07777U, path);
		error = -EACCES;
	}
	if (!error)
		return add_source(plan, path, NULL, true, fd);
	fd_close(&fd);
	return error;
}

int host_plan_hide(struct host_plan *plan, const char *pattern)
{
	if (!*pattern || strcmp(pattern, "/") == 0 || (*pattern != '/' && strchr(pattern, '/'))) {
		log_error("--root-hide %s: give a name, or a path that begins with /; both may "
			  "have wildcards",
			  pattern);
		return -EINVAL;
	}
	if (plan->hide_count == LIMIT_ROOT_HIDES) {
		log_error("--root-hide %s: at most %d patterns can be given", pattern,
			  LIMIT_ROOT_HIDES);
		return -E2BIG;
	}
	plan->hides[plan->hide_count++] = pattern;
	return 0;
}

bool host_plan_hides(const struct host_plan *plan, const struct plan_source *source,
		     const char *path)
{
	for (unsigned int i = 0; i < plan->hide_count; i++) {
		if (path_rules_hides(plan->hides[i], path))
			return true;
	}
	if (!source || !source->added)
		return false;
	for (const char *const *name = host_list_credentials; *name; name++) {
		if (path_rules_hides(*name, path))
			return true;
	}
	return false;
}

const char *host_plan_below(const struct plan_source *source, const char *path)
{
	const char *below = path + strlen(source->path) - 1;

	return *below == '/' ? below + 1 : ".";
}
