/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/guard.h"

#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/operation.h"

#define GUARD_PATH_BYTES 512
#define GUARD_TOLD_MADE  8U /* repositories that are named */

void guard_create(struct guard *guard, struct policy *policy)
{
	*guard = (struct guard){.policy = policy};
}

void guard_destroy(struct guard *guard)
{
	policy_destroy(guard->policy);
	identity_set_destroy(&guard->made);
	identity_set_destroy(&guard->hidden_links);
	*guard = (struct guard){0};
}

/* Writes the path of @name below the root before @end; returns where it begins. */
static const char *guard_path(struct fs_server *server, const struct inode *directory,
			      const char *name, char *start, char *end)
{
	char *at = end - 1;

	*at = '\0';
	while (name) {
		size_t length = strlen(name);

		if ((size_t)(at - start) < length + 5) {
			at -= 4;
			memcpy(at, ".../", 4);
			break;
		}
		if (*at)
			*--at = '/';
		at -= length;
		memcpy(at, name, length);
		name = directory ? directory->name : NULL;
		directory = directory ? inode_find(&server->inodes, directory->parent) : NULL;
	}
	return at;
}

/* Refuses, and says so the first time that the rule does. */
static int guard_refuse(struct fs_server *server, const struct inode *directory, const char *name,
			uint16_t rule, bool hidden)
{
	struct guard *guard = &server->guard;
	char buffer[GUARD_PATH_BYTES];
	const char *path;

	guard->refusals++;
	if (guard->told[rule / 64] >> (rule % 64) & 1)
		return -EACCES;
	guard->told[rule / 64] |= 1ULL << (rule % 64);
	path = guard_path(server, directory, name, buffer, buffer + sizeof(buffer));
	if (hidden)
		log_warning("refused the guest a file named %s: that name is hidden by the rule "
			    "'%s' (--show '%s' allows it)",
			    path, policy_rule(guard->policy, rule), path);
	else
		log_warning("refused the guest a change of %s: it is protected by the rule '%s' "
			    "(--unprotect '%s' allows it)",
			    path, policy_rule(guard->policy, rule), path);
	return -EACCES;
}

static void guard_examine(struct fs_server *server, const struct inode *directory, const char *name,
			  struct policy_verdict *verdict)
{
	policy_examine(server->guard.policy, &directory->policy.state, name, verdict);
}

bool guard_hides(struct fs_server *server, const struct inode *directory, const char *name)
{
	struct policy_verdict verdict;

	guard_examine(server, directory, name, &verdict);
	return verdict.hidden;
}

static bool guard_was_made(const struct guard *guard, const struct statx *status)
{
	struct inode_identity identity = inode_identity_of(status);

	return identity_set_has(&guard->made, &identity);
}

bool guard_hides_number(const struct fs_server *server, uint64_t device, uint64_t number)
{
	const struct inode_identity identity = {.device = device, .number = number};

	return identity_set_has(&server->guard.hidden_links, &identity);
}

/* The verdict, with what the host's file itself decides: how old it is. */
static void guard_judge(struct fs_server *server, const struct inode *directory, const char *name,
			const struct statx *status, struct policy_verdict *verdict)
{
	bool is_directory = S_ISDIR(status->stx_mode);

	guard_examine(server, directory, name, verdict);
	if (verdict->protected_if_old && !is_directory && !guard_was_made(&server->guard, status))
		verdict->protected = true;
	if (is_directory && policy_state_has_begun(&verdict->state) &&
	    guard_was_made(&server->guard, status))
		memcpy(verdict->state.matched, verdict->matched_if_new,
		       sizeof(verdict->state.matched));
}

int guard_enter(struct fs_server *server, const struct inode *directory, const char *name,
		const struct statx *status, struct inode *inode)
{
	struct inode_identity identity;
	struct policy_verdict verdict;

	if (inode->id == FUSE_ROOT_ID)
		return 0;
	guard_judge(server, directory, name, status, &verdict);
	identity = inode_identity_of(status);
	if (verdict.hidden || guard_hides_number(server, identity.device, identity.number))
		return -ENOENT;
	inode->policy = (struct inode_policy){
		.state = verdict.state,
		.protected = verdict.protected,
		.rule = verdict.rule,
	};
	return 0;
}

/* A directory that a pattern has been matched with in part: its name matters to what it holds. */
static int guard_refuse_begun(struct fs_server *server, const struct inode *directory,
			      const char *name, const struct policy_verdict *verdict)
{
	return guard_refuse(server, directory, name,
			    policy_begun_rule(server->guard.policy, &verdict->state), false);
}

/* What git takes a directory for a repository by, whatever its name is. */
static const char *const repository_parts[] = {"HEAD", "objects", "refs"};

/* Whether the directory is named as the rules expect of a repository, or lies in one. */
static bool guard_is_known_repository(struct fs_server *server, const struct inode *directory)
{
	for (unsigned int depth = 0; directory && depth < LIMIT_FS_DEPTH; depth++) {
		size_t length = directory->name ? strlen(directory->name) : 0;

		if (length >= 4 && strcasecmp(directory->name + length - 4, ".git") == 0)
			return true;
		directory = directory->id == FUSE_ROOT_ID
				    ? NULL
				    : inode_find(&server->inodes, directory->parent);
	}
	return false;
}

/*
 * Whether @name would make @directory a repository under a name by which the rules do not know it:
 * git on the host would obey its configuration and hooks when the user works there.
 */
static bool guard_makes_repository(struct fs_server *server, const struct inode *directory,
				   int directory_fd, const char *name)
{
	unsigned int present = 0;
	bool is_part = false;
	struct statx status;

	for (unsigned int i = 0; i < ARRAY_SIZE(repository_parts); i++)
		is_part |= strcasecmp(name, repository_parts[i]) == 0;
	if (!is_part || directory->policy.state.unprotected_below)
		return false;
	for (unsigned int i = 0; i < ARRAY_SIZE(repository_parts); i++)
		present += strcasecmp(name, repository_parts[i]) == 0 ||
			   layer_look(server, directory, directory_fd, repository_parts[i],
				      &status) == 0;
	return present == ARRAY_SIZE(repository_parts) &&
	       !guard_is_known_repository(server, directory);
}

static int guard_refuse_repository(struct fs_server *server, const struct inode *directory,
				   const char *name)
{
	char buffer[GUARD_PATH_BYTES];

	server->guard.refusals++;
	if (!server->guard.told_repository)
		log_warning("refused the guest %s: it would make that directory a git repository "
			    "that no rule knows; name it something.git",
			    guard_path(server, directory, name, buffer, buffer + sizeof(buffer)));
	server->guard.told_repository = true;
	return -EACCES;
}

int guard_make(struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, mode_t type)
{
	struct policy_verdict verdict;

	guard_examine(server, directory, name, &verdict);
	if (verdict.hidden)
		return guard_refuse(server, directory, name, verdict.rule, true);
	if (server->guard.hide_only)
		return 0;
	if (verdict.protected)
		return guard_refuse(server, directory, name, verdict.rule, false);
	/* Where a rule goes on below, a symbolic link would lead it to where it does not hold. */
	if (type == S_IFLNK && policy_state_has_begun(&verdict.state))
		return guard_refuse_begun(server, directory, name, &verdict);
	if (guard_makes_repository(server, directory, directory_fd, name))
		return guard_refuse_repository(server, directory, name);
	return 0;
}

/* Says of the first few repositories that the guest makes that they are the guest's. */
static void guard_tell_made(struct fs_server *server, const struct inode *directory,
			    const char *name)
{
	char buffer[GUARD_PATH_BYTES];

	if (server->guard.hide_only || server->guard.told_made >= GUARD_TOLD_MADE)
		return;
	server->guard.told_made++;
	log_warning("the guest has made a git repository, %s: its hooks and configuration are the "
		    "guest's, and git obeys them there and, for a submodule, above; look at it "
		    "before you use git",
		    guard_path(server, directory, name, buffer, buffer + sizeof(buffer)));
}

void guard_note_made(struct fs_server *server, const struct inode *directory, int directory_fd,
		     const char *name)
{
	struct policy_verdict verdict;
	struct inode_identity identity;
	struct statx status;

	guard_examine(server, directory, name, &verdict);
	if (!verdict.protected_if_old && !policy_state_has_begun(&verdict.state))
		return;
	if (layer_look(server, directory, directory_fd, name, &status))
		return;
	identity = inode_identity_of(&status);
	if (verdict.protected_if_old && !identity_set_has(&server->guard.made, &identity))
		guard_tell_made(server, directory, name);
	/* When there are too many to remember, the rule holds for this one too. */
	identity_set_add(&server->guard.made, &identity);
}

bool guard_protects(struct fs_server *server, const struct inode *directory, const char *name)
{
	struct policy_verdict verdict;

	guard_examine(server, directory, name, &verdict);
	return verdict.protected && !verdict.hidden && !server->guard.hide_only;
}

/* Before the name goes; @removes: a directory of that name with it. */
static int guard_take_away(struct fs_server *server, const struct inode *directory,
			   int directory_fd, const char *name, bool removes)
{
	struct policy_verdict verdict;
	struct statx status;

	guard_examine(server, directory, name, &verdict);
	if (verdict.hidden)
		return -ENOENT;
	if (server->guard.hide_only)
		return 0;
	if ((verdict.protected_if_old || policy_state_has_begun(&verdict.state)) &&
	    layer_look(server, directory, directory_fd, name, &status) == 0) {
		guard_judge(server, directory, name, &status, &verdict);
		/* Made anew, a directory would not be bound by what binds an old one. Programs try
		 * to remove directories that may be empty, though, and expect to hear that they are
		 * not. */
		if (removes && S_ISDIR(status.stx_mode) &&
		    memcmp(verdict.state.matched, verdict.matched_if_new,
			   sizeof(verdict.matched_if_new)) != 0)
			return path_is_empty(server->proc_fd, directory_fd, name)
				       ? guard_refuse_begun(server, directory, name, &verdict)
				       : -ENOTEMPTY;
	}
	return verdict.protected ? guard_refuse(server, directory, name, verdict.rule, false) : 0;
}

int guard_remove(struct fs_server *server, const struct inode *directory, int directory_fd,
		 const char *name)
{
	return guard_take_away(server, directory, directory_fd, name, true);
}

/* What a directory holds must not come under a rule, or leave one, with its name. */
static int guard_move_directory(struct fs_server *server, const struct inode *directory,
				const char *name, const struct statx *status,
				const struct inode *new_directory, const char *new_name)
{
	struct policy_verdict from, to;

	guard_judge(server, directory, name, status, &from);
	guard_examine(server, new_directory, new_name, &to);
	if (policy_state_has_begun(&from.state))
		return guard_refuse_begun(server, directory, name, &from);
	if (policy_state_has_begun(&to.state))
		return guard_refuse_begun(server, new_directory, new_name, &to);
	/* As from one file system to another: mv(1) then copies, file by file. */
	if (from.state.shown_below != to.state.shown_below ||
	    from.state.unprotected_below != to.state.unprotected_below)
		return -EXDEV;
	return 0;
}

/* Whether a repository would lose the name by which the rules know it. */
static bool guard_hides_repository(struct fs_server *server, int directory_fd, const char *name,
				   const struct inode *new_directory, const char *new_name)
{
	FD_CLEANUP int fd = path_open_name(directory_fd, name);
	size_t length = strlen(new_name);
	struct statx status;

	if (fd < 0 || (length >= 4 && strcasecmp(new_name + length - 4, ".git") == 0) ||
	    guard_is_known_repository(server, new_directory))
		return false;
	for (unsigned int i = 0; i < ARRAY_SIZE(repository_parts); i++)
		if (statx(fd, repository_parts[i], AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			  STATX_TYPE, &status))
			return false;
	return true;
}

int guard_move(struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, const struct inode *new_directory, int new_directory_fd,
	       const char *new_name)
{
	int error = guard_take_away(server, directory, directory_fd, name, false);
	struct statx status;

	if (error)
		return error;
	if (layer_look(server, directory, directory_fd, name, &status))
		return 0; /* the rename itself will say so */
	error = guard_make(server, new_directory, new_directory_fd, new_name,
			   status.stx_mode & S_IFMT);
	if (error || !S_ISDIR(status.stx_mode))
		return error;
	if (!server->guard.hide_only &&
	    guard_hides_repository(server, directory_fd, name, new_directory, new_name))
		return guard_refuse_repository(server, new_directory, new_name);
	return guard_move_directory(server, directory, name, &status, new_directory, new_name);
}

int guard_change(struct fs_server *server, const struct inode *inode)
{
	if (!inode->policy.protected || server->guard.hide_only)
		return 0;
	return guard_refuse(server, inode_find(&server->inodes, inode->parent),
			    inode->name ? inode->name : "(a file)", inode->policy.rule, false);
}
