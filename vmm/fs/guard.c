/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/guard.h"

#include <errno.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/fs/case_fold.h"
#include "vmm/fs/guard_internal.h"
#include "vmm/fs/operation.h"
#include "vmm/review/layout.h"

void guard_create(struct guard *guard, struct policy *policy)
{
	*guard = (struct guard){.policy = policy};
}

void guard_destroy(struct guard *guard)
{
	policy_destroy(guard->policy);
	identity_set_destroy(&guard->made);
	scan_result_destroy(&guard->scanned);
	*guard = (struct guard){0};
}

const char *guard_path(struct fs_server *server, const struct inode *directory, const char *name,
		       struct guard_path *path)
{
	char *start = path->text, *at = start + sizeof(path->text) - 1;

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
	struct guard_path buffer = {.text = ""};
	const char *path;

	guard->refusals++;
	guard->refused[rule]++;
	if (guard->told[rule / 64] >> (rule % 64) & 1)
		return -EACCES;
	guard->told[rule / 64] |= 1ULL << (rule % 64);
	path = guard_path(server, directory, name, &buffer);
	if (hidden)
		guard->refused_hidden[rule / 64] |= 1ULL << (rule % 64);
	journal_refusal(server, path, policy_rule(guard->policy, rule), hidden, 1);
	if (hidden)
		log_warning("refused the guest to make %s: that name is hidden by the rule '%s' "
			    "(--show '%s' allows it)",
			    path, policy_rule(guard->policy, rule), path);
	else
		log_warning("refused the guest to change %s: it is protected by the rule '%s' "
			    "(--unprotect '%s' allows it)",
			    path, policy_rule(guard->policy, rule), path);
	return -EACCES;
}

/* How @directory, or one of its two layers, may take names for others. */
static unsigned int guard_case_fold(struct fs_server *server, const struct inode *directory)
{
	struct inode *inode = inode_find(&server->inodes, directory->id);
	int fd = inode ? path_inode_fd(&server->inodes, inode) : -1;
	unsigned int fold = case_fold_of_directory(server->proc_fd, fd);

	if (inode && inode->lower_fd >= 0)
		fold |= case_fold_of_directory(server->proc_fd, inode->lower_fd);
	return fold;
}

bool guard_may_fold(struct fs_server *server, const struct inode *directory)
{
	return guard_case_fold(server, directory) != 0;
}

static void guard_examine(struct fs_server *server, const struct inode *directory, const char *name,
			  struct policy_verdict *verdict)
{
	unsigned int fold = case_fold_of_name(name);

	policy_examine(server->guard.policy, directory->policy.state, name, verdict);
	/* Few names are so, and for these the directory is looked at. */
	if (fold && !verdict->state.shown_below && (fold & guard_case_fold(server, directory))) {
		verdict->hidden = true;
		verdict->rule = POLICY_RULE_CASE;
	}
}

bool guard_hides(struct fs_server *server, const struct inode *directory, const char *name)
{
	struct policy_verdict verdict;

	guard_examine(server, directory, name, &verdict);
	return verdict.hidden || review_is_temporary(name);
}

static bool guard_was_made(const struct guard *guard, const struct statx *status)
{
	struct inode_identity identity = inode_identity_of(status);

	return identity_set_has(&guard->made, &identity);
}

bool guard_hides_number(const struct fs_server *server, uint64_t device, uint64_t number)
{
	const struct inode_identity identity = {.device = device, .number = number};

	return identity_set_has(&server->guard.scanned.links, &identity);
}

/* The verdict, with what the host's file itself decides: how old it is. */
static void guard_judge(struct fs_server *server, const struct inode *directory, const char *name,
			const struct statx *status, struct policy_verdict *verdict)
{
	const struct inode_identity identity = inode_identity_of(status);
	bool is_directory = S_ISDIR(status->stx_mode);

	guard_examine(server, directory, name, verdict);
	if (verdict->protected_if_old && !is_directory && !guard_was_made(&server->guard, status))
		verdict->protected = true;
	if (is_directory && policy_state_has_begun(&verdict->state) &&
	    guard_was_made(&server->guard, status))
		memcpy(verdict->state.matched, verdict->matched_if_new,
		       sizeof(verdict->state.matched));
	if (is_directory && identity_set_has(&server->guard.scanned.repositories, &identity))
		policy_enter_repository(server->guard.policy, &verdict->state);
}

int guard_enter_root(struct fs_server *server)
{
	struct inode *root = inode_find(&server->inodes, FUSE_ROOT_ID);
	struct policy_state state = policy_root_state();

	if (identity_set_has(&server->guard.scanned.repositories, &root->identity))
		policy_enter_repository(server->guard.policy, &state);
	root->policy.state = policy_keep_state(server->guard.policy, &state);
	return root->policy.state ? 0 : -ENOMEM;
}

int guard_enter(struct fs_server *server, const struct inode *directory, const char *name,
		const struct statx *status, struct inode *inode)
{
	const struct policy_state *state = NULL;
	struct inode_identity identity;
	struct policy_verdict verdict;

	if (inode->id == FUSE_ROOT_ID)
		return 0;
	guard_judge(server, directory, name, status, &verdict);
	identity = inode_identity_of(status);
	if (verdict.hidden || guard_hides_number(server, identity.device, identity.number))
		return -ENOENT;
	if (identity_set_has(&server->guard.scanned.closed, &identity))
		return -EACCES;
	if (S_ISDIR(status->stx_mode))
		state = policy_keep_state(server->guard.policy, &verdict.state);
	if (S_ISDIR(status->stx_mode) && !state)
		return -ENFILE;
	if (!verdict.protected && S_ISREG(status->stx_mode) &&
	    guard_repository_protects(server, directory, name, &verdict.state)) {
		verdict.protected = true;
		verdict.rule = POLICY_RULE_HOOK;
	}
	inode->policy = (struct inode_policy){
		.state = state,
		.protected = verdict.protected,
		.checked = !verdict.protected &&
			   guard_repository_checks(server, directory, name, &verdict.state),
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

int guard_make(struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, mode_t type)
{
	struct policy_verdict verdict;

	if (review_is_temporary(name))
		return -EACCES;
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
	return guard_repository_make(server, directory, directory_fd, name, type, &verdict.state);
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
		guard_repository_tell(server, directory, name);
	/* When there are too many to remember, the rule holds for this one too. */
	identity_set_add(&server->guard.made, &identity);
}

bool guard_protects(struct fs_server *server, const struct inode *directory, const char *name)
{
	struct policy_verdict verdict;

	guard_examine(server, directory, name, &verdict);
	return verdict.protected && !verdict.hidden && !server->guard.hide_only;
}

/* Whether an entry is a hidden file by another name. */
static bool guard_hides_entry(const struct fs_server *server, const struct inode *directory,
			      int directory_fd, const char *name)
{
	struct statx status;

	return server->guard.scanned.links.inodes.count &&
	       layer_look(server, directory, directory_fd, name, &status) == 0 &&
	       guard_hides_number(server, inode_number_of(&status).device, status.stx_ino);
}

/* Before the name goes; @removes: a directory of that name with it. */
static int guard_take_away(struct fs_server *server, const struct inode *directory,
			   int directory_fd, const char *name, bool removes)
{
	struct policy_verdict verdict;
	struct statx status;

	guard_examine(server, directory, name, &verdict);
	if (verdict.hidden || review_is_temporary(name) ||
	    guard_hides_entry(server, directory, directory_fd, name))
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
	    from.state.unprotected_below != to.state.unprotected_below ||
	    from.state.packages_below != to.state.packages_below)
		return -EXDEV;
	return 0;
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
	if (!error && !server->guard.hide_only)
		error = guard_repository_move(server, directory, directory_fd, name, &status,
					      new_directory, new_name);
	if (error || !S_ISDIR(status.stx_mode))
		return error;
	return guard_move_directory(server, directory, name, &status, new_directory, new_name);
}

int guard_change(struct fs_server *server, const struct inode *inode)
{
	if (!inode->policy.protected || server->guard.hide_only)
		return 0;
	return guard_refuse(server, inode_find(&server->inodes, inode->parent),
			    inode->name ? inode->name : "(a file)", inode->policy.rule, false);
}
