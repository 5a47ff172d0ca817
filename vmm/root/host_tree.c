/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/inode_set.h"
#include "vmm/base/log.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/host_names.h"
#include "vmm/root/path_rules.h"

#define STATX_WANTED (STATX_BASIC_STATS | STATX_MNT_ID)

/* Blocks that files may take in all: what is left is more than any metadata. */
#define FILE_BLOCKS_MAX (EROFS_BLOCKS_MAX - (1U << 28))

/* The times of what is made: as constant as its contents. */
#define MADE_TIME 1704067200

#define PROGRESS_NAMES 1024U

#define CHILD_PATH_BYTES (PATH_MAX + EROFS_NAME_MAXIMUM + 2)

struct walk {
	const struct host_plan *plan;
	struct tree *tree;
	struct host_counts *counts;
	const struct host_progress *progress; /* may be NULL */
	struct host_names names;
	struct inode_set links; /* files with several names: the node of the first, plus 1 */
	uint64_t file_blocks;
	uint64_t mounts[LIMIT_ROOT_SOURCES]; /* of each source: all of it is on that one */
	char *path;                          /* of the directory, in the guest, without "/" */
};

/* The directory whose children are gathered. */
struct place {
	uint32_t index;
	int fd; /* -1: not of the host */
};

int host_open(int directory_fd, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	long fd = syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* The path of a name of the directory at hand, in the guest and on the host; "": its own. */
static void path_of(const struct walk *walk, const char *name, char *path)
{
	snprintf(path, CHILD_PATH_BYTES, "/%s%s%s", walk->path, walk->path[0] && name[0] ? "/" : "",
		 name);
}

/* Counts a name of the directory at hand, or that itself (""), which does not enter. */
static void leave_out(struct walk *walk, const char *name, uint64_t *count)
{
	char path[CHILD_PATH_BYTES];

	++*count;
	if (!walk->progress || !walk->progress->left_out)
		return;
	path_of(walk, name, path);
	walk->progress->left_out(walk->progress->context, path,
				 (size_t)((char *)count - (char *)walk->counts));
}

static void copy_attributes(struct tree_node *node, const struct statx *status)
{
	node->host_inode = status->stx_ino;
	node->size = S_ISREG(status->stx_mode) ? status->stx_size : 0;
	node->mtime = status->stx_mtime.tv_sec;
	node->mtime_ns = status->stx_mtime.tv_nsec;
	node->ctime = status->stx_ctime.tv_sec;
	node->ctime_ns = status->stx_ctime.tv_nsec;
	/* Of other owners no numbers are known in a user namespace. */
	node->uid = status->stx_uid == geteuid() ? status->stx_uid : 0;
	node->gid = status->stx_gid == getegid() ? status->stx_gid : 0;
	node->mode = status->stx_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
	if (S_ISDIR(status->stx_mode))
		node->mode |= status->stx_mode & S_ISVTX;
}

static int64_t add_child(struct walk *walk, const struct place *place, const char *name,
			 size_t length)
{
	int64_t index = tree_add_node(walk->tree, name, length);

	if (index >= 0) {
		walk->tree->nodes[index].parent = place->index;
		walk->tree->nodes[index].source = walk->tree->nodes[place->index].source;
		walk->tree->nodes[index].whole = walk->tree->nodes[place->index].whole;
	}
	return index;
}

static int set_text(struct walk *walk, int64_t index, const char *text)
{
	size_t length = strlen(text);
	int64_t stored = tree_add_text(walk->tree, text, length);

	if (stored < 0)
		return (int)stored;
	walk->tree->nodes[index].text = (uint32_t)stored;
	walk->tree->nodes[index].size = length;
	return 0;
}

/* What the plan says of a node: a directory, a source's top, a file or a link. */
static int apply_plan(struct walk *walk, uint32_t index, uint16_t entry_index)
{
	static const uint8_t kinds[] = {
		[PLAN_DIRECTORY] = TREE_DIRECTORY,
		[PLAN_SOURCE] = TREE_DIRECTORY,
		[PLAN_FILE] = TREE_MADE,
		[PLAN_SYMLINK] = TREE_SYMLINK,
	};
	const struct plan_entry *entry = &walk->plan->entries[entry_index];
	struct tree_node *node = &walk->tree->nodes[index];
	const struct plan_source *source = &walk->plan->sources[entry->source];
	struct statx status;

	node->plan = entry_index;
	node->kind = kinds[entry->kind];
	node->source = TREE_NO_SOURCE;
	node->mode = entry->mode;
	node->mtime = MADE_TIME;
	if (entry->kind == PLAN_FILE || entry->kind == PLAN_SYMLINK)
		return set_text(walk, index, entry->text);
	if (entry->kind == PLAN_DIRECTORY)
		return 0;
	if (statx(source->fd, "", AT_EMPTY_PATH, STATX_WANTED, &status) < 0)
		return log_errno(-errno, "cannot look at %s", source->path);
	node->source = entry->source;
	node->whole = source->only == NULL;
	walk->mounts[entry->source] = status.stx_mnt_id;
	copy_attributes(node, &status);
	return 0;
}

static bool everybody_may(uint16_t mode, uint16_t rights)
{
	return (mode & rights) == rights;
}

/* Whether it stays outside for what it is, which is counted. */
static bool stays_outside(struct walk *walk, const struct place *place, const char *name,
			  const struct statx *status)
{
	uint16_t source = walk->tree->nodes[place->index].source;
	uint16_t type = status->stx_mode & S_IFMT;
	struct host_counts *counts = walk->counts;

	if (status->stx_mnt_id != walk->mounts[source]) {
		leave_out(walk, name, &counts->mounts);
	} else if (type == S_IFLNK) {
		return false;
	} else if (type != S_IFREG && type != S_IFDIR) {
		leave_out(walk, name, &counts->special);
	} else if (!everybody_may(status->stx_mode,
				  type == S_IFDIR ? S_IROTH | S_IXOTH : S_IROTH)) {
		leave_out(walk, name, &counts->unreadable);
	} else if (type == S_IFREG &&
		   erofs_blocks_of(status->stx_size) > FILE_BLOCKS_MAX - walk->file_blocks) {
		leave_out(walk, name, &counts->too_large);
	} else {
		return false;
	}
	return true;
}

static int add_symlink(struct walk *walk, const struct place *place, int64_t index,
		       const char *name)
{
	char target[EROFS_SYMLINK_MAX + 1];
	ssize_t length = readlinkat(place->fd, name, target, sizeof(target));

	/* None is as long as the buffer: a target that is cut off would lead elsewhere. */
	if (length <= 0 || (size_t)length == sizeof(target)) {
		walk->tree->node_count--;
		leave_out(walk, name, &walk->counts->vanished);
		return 0;
	}
	target[length] = '\0';
	walk->tree->nodes[index].kind = TREE_SYMLINK;
	walk->tree->nodes[index].mode = S_IRWXU | S_IRWXG | S_IRWXO;
	return set_text(walk, index, target);
}

/* The node of the first name of a file, which is @index if this is that. 0 or -errno. */
static int find_first_name(struct walk *walk, const struct statx *status, uint32_t index,
			   uint32_t *first)
{
	const struct inode_key inode = {
		.device = makedev(status->stx_dev_major, status->stx_dev_minor),
		.number = status->stx_ino,
	};
	uint32_t found = status->stx_nlink > 1 ? inode_set_value(&walk->links, &inode) : 0;

	*first = found ? found - 1 : index;
	return status->stx_nlink > 1 && !found ? inode_set_put(&walk->links, &inode, index + 1) : 0;
}

static int add_file(struct walk *walk, uint32_t index, const struct statx *status)
{
	uint32_t first;
	int error = find_first_name(walk, status, index, &first);

	if (error)
		return error;
	walk->tree->nodes[index].kind = TREE_FILE;
	walk->tree->nodes[index].same_as = first;
	if (first == index)
		walk->file_blocks += erofs_blocks_of(status->stx_size);
	return 0;
}

/* One name of a directory of the host, not yet looked at. @whole: nothing of it stays outside. */
static int add_host_child(struct walk *walk, const struct place *place, const char *name,
			  size_t length, bool whole)
{
	struct statx status;
	int64_t index;

	if (statx(place->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_WANTED, &status)) {
		leave_out(walk, name, &walk->counts->vanished);
		return 0;
	}
	if (stays_outside(walk, place, name, &status))
		return 0;
	/* Only the way to something listed: then it is a directory, or it is not meant. */
	if (!whole && !S_ISDIR(status.stx_mode))
		return 0;
	index = add_child(walk, place, name, length);
	if (index < 0)
		return (int)index;
	copy_attributes(&walk->tree->nodes[index], &status);
	walk->tree->nodes[index].whole = whole;
	if (S_ISLNK(status.stx_mode))
		return add_symlink(walk, place, index, name);
	if (S_ISREG(status.stx_mode))
		return add_file(walk, (uint32_t)index, &status);
	walk->tree->nodes[index].kind = TREE_DIRECTORY;
	return 0;
}

static bool planned_enters(struct walk *walk, const char *name)
{
	char path[CHILD_PATH_BYTES];

	path_of(walk, name, path);
	if (!host_plan_hides(walk->plan, NULL, path))
		return true;
	leave_out(walk, name, &walk->counts->hidden);
	return false;
}

/* Whether a name of the host enters by the lists, which go by its path. */
static bool enters(struct walk *walk, const struct place *place, const char *name, bool *whole)
{
	const struct tree_node *directory = &walk->tree->nodes[place->index];
	const struct plan_source *source = &walk->plan->sources[directory->source];
	char path[CHILD_PATH_BYTES];
	enum path_place where = PATH_INSIDE;

	path_of(walk, name, path);
	if (!directory->whole)
		where = path_rules_place_in_list(source->only, path + strlen(source->path) + 1);
	*whole = where == PATH_INSIDE;
	if (where == PATH_OUTSIDE)
		return false;
	if (!host_plan_hides(walk->plan, source, path))
		return true;
	leave_out(walk, name, &walk->counts->hidden);
	return false;
}

/* A name that the plan has. Where it only leads to something else, the host's own directory is
 * taken if there is one. */
static int add_planned(struct walk *walk, const struct place *place, size_t name_index)
{
	const struct host_name *name = &walk->names.list[name_index];
	const char *text = host_names_text(&walk->names, name_index);
	uint32_t before = walk->tree->node_count;
	bool whole;
	int64_t index;
	int error;

	if (walk->plan->entries[name->plan].kind == PLAN_DIRECTORY && place->fd >= 0 &&
	    enters(walk, place, text, &whole)) {
		error = add_host_child(walk, place, text, name->length, whole);
		if (error)
			return error;
		if (walk->tree->node_count > before &&
		    walk->tree->nodes[before].kind == TREE_DIRECTORY) {
			walk->tree->nodes[before].plan = name->plan;
			return 0;
		}
		walk->tree->node_count = before;
	}
	index = add_child(walk, place, text, name->length);
	return index < 0 ? (int)index : apply_plan(walk, (uint32_t)index, name->plan);
}

/* Opens a directory that was found before: it must still be that one. */
static int open_directory(struct walk *walk, uint32_t index, int *fd)
{
	const struct tree_node *node = &walk->tree->nodes[index];
	const struct plan_source *source;
	struct statx status;

	*fd = -1;
	if (node->source == TREE_NO_SOURCE)
		return 0;
	source = &walk->plan->sources[node->source];
	*fd = host_open(source->fd, host_plan_below(source, walk->path), O_RDONLY | O_DIRECTORY);
	if (*fd < 0)
		return *fd;
	if (statx(*fd, "", AT_EMPTY_PATH, STATX_WANTED, &status) < 0)
		return -errno;
	if (status.stx_ino != node->host_inode)
		return -ESTALE;
	copy_attributes(&walk->tree->nodes[index], &status);
	return 0;
}

static int add_children(struct walk *walk, const struct place *place)
{
	int error = 0;

	for (size_t i = 0; i < walk->names.count && !error; i++) {
		const char *name = host_names_text(&walk->names, i);
		bool whole;

		if (walk->names.list[i].plan)
			error = planned_enters(walk, name) ? add_planned(walk, place, i) : 0;
		else if (enters(walk, place, name, &whole))
			error = add_host_child(walk, place, name, walk->names.list[i].length,
					       whole);
	}
	return error;
}

static int walk_directory(struct walk *walk, uint32_t index)
{
	FD_CLEANUP int fd = -1;
	struct place place = {.index = index};
	uint16_t plan = walk->tree->nodes[index].plan;
	int error = tree_path(walk->tree, index, 0, walk->path);

	if (!error)
		error = open_directory(walk, index, &fd);
	if (!error) {
		place.fd = fd;
		error = host_names_gather(&walk->names, fd, walk->plan, plan, index == 0 || plan);
		if (error == -ENOMEM)
			return error;
	}
	/* What cannot be read stays empty; what was gathered of it is not used. */
	if (error) {
		leave_out(walk, "", &walk->counts->vanished);
		return 0;
	}
	walk->tree->nodes[index].first_child = walk->tree->node_count;
	error = add_children(walk, &place);
	walk->tree->nodes[index].child_count =
		walk->tree->node_count - walk->tree->nodes[index].first_child;
	return error;
}

static void count_nodes(const struct tree *tree, struct host_counts *counts)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		counts->directories += node->kind == TREE_DIRECTORY;
		counts->symlinks += node->kind == TREE_SYMLINK;
		counts->files += node->kind == TREE_FILE || node->kind == TREE_MADE;
		if (node->kind == TREE_FILE && node->same_as == i)
			counts->bytes += node->size;
	}
}

int host_tree_build(const struct host_plan *plan, struct tree *tree, struct host_counts *counts,
		    const struct host_progress *progress)
{
	char path[PATH_MAX];
	struct walk walk = {.plan = plan,
			    .tree = tree,
			    .counts = counts,
			    .progress = progress,
			    .path = path,
			    .links = {.limit = LIMIT_ROOT_NODES}};
	int64_t root;
	int error;

	*counts = (struct host_counts){0};
	*tree = (struct tree){0};
	root = tree_add_node(tree, "", 0);
	error = root < 0 ? (int)root : apply_plan(&walk, 0, 0);
	/* Level by level: the array of nodes is its own queue. */
	for (uint32_t i = 0; i < tree->node_count && !error; i++) {
		if (tree->nodes[i].kind == TREE_DIRECTORY)
			error = walk_directory(&walk, i);
		if (progress && progress->show && i % PROGRESS_NAMES == 0)
			progress->show(progress->context, tree->node_count);
	}
	count_nodes(tree, counts);
	host_names_free(&walk.names);
	inode_set_destroy(&walk.links);
	if (error == -E2BIG)
		log_error("the host's directories have more than %u names: leave some out with "
			  "--root-hide",
			  LIMIT_ROOT_NODES);
	else if (error == -ENOMEM)
		log_errno(error, "cannot read the host's directories");
	return error;
}
