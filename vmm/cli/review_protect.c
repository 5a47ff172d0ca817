/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may not be applied without the user's word: as in a share that is written to directly
 * (vmm/fs/guard.c and guard_repository.c), by the same rules.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "vmm/base/fd.h"
#include "vmm/cli/review_policy.h"
#include "vmm/fs/case_fold.h"
#include "vmm/fs/git_config.h"
#include "vmm/fs/git_place.h"
#include "vmm/fs/path.h"
#include "vmm/review/layout.h"
#include "vmm/review/upper.h"

/* A path as the rules see it: an old repository of any name is called ".git" in it. */
struct seen_path {
	char text[LIMIT_REVIEW_PATH_BYTES + 8];
	struct policy_verdict verdict; /* on its last name */
	bool hidden;
};

static bool is_old_repository(const struct share_rules *rules, const char *path)
{
	FD_CLEANUP int fd = -1;
	struct inode_identity identity;
	struct statx status;

	if (!rules->scanned.repositories.inodes.count)
		return false;
	fd = tree_open_directory(rules->share->host_fd, path, O_PATH);
	if (fd < 0 || path_status(fd, &status))
		return false;
	identity = inode_identity_of(&status);
	return identity_set_has(&rules->scanned.repositories, &identity);
}

/* Whether the host's directory that @name is to be in may take it for another: case_fold.h. Where
 * there is none yet, it will be as the share. */
static bool may_be_another(const struct share_rules *rules, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	unsigned int fold = case_fold_of_name(name);
	FD_CLEANUP int proc = -1;
	FD_CLEANUP int fd = -1;
	char above[LIMIT_REVIEW_PATH_BYTES];

	if (!fold)
		return false;
	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 0, path);
	proc = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = tree_open_directory(rules->share->host_fd, above, O_PATH);
	return fold & (case_fold_of_directory(proc, rules->share->host_fd) |
		       (fd < 0 ? 0 : case_fold_of_directory(proc, fd)));
}

static void see_name(const struct share_rules *rules, const char *path, const char *name,
		     struct policy_state *state, struct seen_path *seen)
{
	bool repository = is_old_repository(rules, path);
	size_t at = strlen(seen->text);

	policy_examine(rules->rules, state, name, &seen->verdict);
	seen->hidden |= seen->verdict.hidden;
	if (!seen->verdict.state.shown_below && may_be_another(rules, path, name)) {
		seen->hidden = true;
		seen->verdict.rule = POLICY_RULE_CASE;
	}
	if (repository)
		policy_enter_repository(rules->rules, &seen->verdict.state);
	*state = seen->verdict.state;
	/* ".git" may be longer than the name; what does not fit is nothing that can be applied. */
	snprintf(seen->text + at, sizeof(seen->text) - at, "%s%s", at ? "/" : "",
		 repository ? ".git" : name);
}

static void see_path(const struct share_rules *rules, const char *path, struct seen_path *seen)
{
	struct policy_state state = policy_root_state();
	char name[LIMIT_FS_NAME_BYTES + 1], above[LIMIT_REVIEW_PATH_BYTES];

	seen->text[0] = '\0';
	seen->hidden = false;
	seen->verdict = (struct policy_verdict){.state = state};
	if (is_old_repository(rules, "")) {
		policy_enter_repository(rules->rules, &state);
		snprintf(seen->text, sizeof(seen->text), "%s", ".git");
	}
	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");

		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		at += length;
		snprintf(above, sizeof(above), "%.*s", (int)(at - path), path);
		see_name(rules, above, name, &state, seen);
		at += *at == '/';
	}
}

/* Whether there is something on the host or from the guest. */
static bool is_there(const struct review_share *share, const char *path)
{
	struct review_object object;

	if (tree_look_path(share->host_fd, path, &object) || object.mode)
		return true;
	if (share->upper_fd < 0)
		return false;
	return tree_look_path(share->upper_fd, path, &object) ||
	       (object.mode && !review_is_whiteout(object.mode, object.rdev));
}

/* Whether a name completes what git takes for a repository, in a directory that is none by name. */
static bool makes_repository(const struct share_rules *rules, const char *path,
			     const struct seen_path *seen)
{
	const char *slash = strrchr(path, '/'), *seen_slash = strrchr(seen->text, '/');
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;
	unsigned int parts = git_part_of(path + length);
	char part[LIMIT_REVIEW_PATH_BYTES + 16];

	if (!parts || git_directory_at(seen->text, seen_slash ? (size_t)(seen_slash - seen->text)
							      : 0) == GIT_DIRECTORY_REPOSITORY)
		return false;
	for (unsigned int i = 0; git_part_names[i]; i++) {
		snprintf(part, sizeof(part), "%.*s%s", (int)length, path, git_part_names[i]);
		if (is_there(rules->share, part))
			parts |= git_part_of(git_part_names[i]);
	}
	return git_parts_are_repository(parts);
}

/* Of a commondir: @directory is the name of the directory that it is in. */
static bool is_harmless_config(const struct share_rules *rules, const struct review_change *change,
			       const char *directory)
{
	const char *slash = strrchr(change->path, '/');
	FD_CLEANUP int fd = upper_open_file(rules->share->upper_fd, change->path);
	char text[GIT_CONFIG_BYTES], key[GIT_CONFIG_KEY_BYTES];

	if (fd < 0 || !S_ISREG(change->wanted.mode) || change->wanted.size > sizeof(text) ||
	    fd_pread_full(fd, text, change->wanted.size, 0))
		return false;
	if (git_config_is_commondir(slash ? slash + 1 : change->path))
		return git_commondir_is_harmless(directory, text, change->wanted.size);
	return git_config_is_harmless(text, change->wanted.size, git_submodule_depth(change->path),
				      key);
}

/* The name of the directory that the last name of @path is in; "" without one. */
static const char *directory_name(const char *path, char name[LIMIT_FS_NAME_BYTES + 1])
{
	const char *end = strrchr(path, '/'), *start = end;

	while (start && start > path && start[-1] != '/')
		start--;
	snprintf(name, LIMIT_FS_NAME_BYTES + 1, "%.*s", start ? (int)(end - start) : 0,
		 start ? start : "");
	return name;
}

/* Whether git on the host would obey what the change puts there. */
static bool git_obeys(const struct share_rules *rules, const struct review_change *change,
		      const struct seen_path *seen)
{
	const char *slash = strrchr(change->path, '/'), *seen_slash = strrchr(seen->text, '/');
	char name[LIMIT_FS_NAME_BYTES + 1];

	/* What git on the host writes by that name would go where the link leads. */
	if (S_ISLNK(change->wanted.mode) && seen_slash &&
	    git_keeps_at(seen->text, (size_t)(seen_slash - seen->text)))
		return true;
	switch (git_place_at(seen->text)) {
	case GIT_PLACE_CONFIG:
		return !is_harmless_config(rules, change, directory_name(seen->text, name));
	case GIT_PLACE_HOOK:
		return !S_ISREG(change->wanted.mode) ||
		       !git_is_sample(slash ? slash + 1 : change->path);
	case GIT_PLACE_HOOKS:
		return !S_ISDIR(change->wanted.mode);
	case GIT_PLACE_NONE:
		break;
	}
	return makes_repository(rules, change->path, seen);
}

enum review_problem share_rules_judge(const struct share_rules *rules,
				      const struct review_change *change, const char **rule)
{
	const struct policy_verdict *verdict;
	struct seen_path seen;

	*rule = "";
	if (rules->failed)
		return REVIEW_REPOSITORY;
	see_path(rules, change->path, &seen);
	verdict = &seen.verdict;
	*rule = policy_rule(rules->rules, verdict->rule);
	if (seen.hidden)
		return REVIEW_HIDDEN;
	if (verdict->state.unprotected_below)
		return REVIEW_GOOD;
	if (verdict->protected ||
	    (verdict->protected_if_old && change->host.mode && !S_ISDIR(change->host.mode)))
		return REVIEW_PROTECTED;
	/* Where a rule goes on below, a symbolic link would lead it elsewhere. */
	if (S_ISLNK(change->wanted.mode) && policy_state_has_begun(&verdict->state)) {
		*rule = policy_rule(rules->rules, policy_begun_rule(rules->rules, &verdict->state));
		return REVIEW_PROTECTED;
	}
	if (change->wanted.mode && change->kind != REVIEW_MODE && git_obeys(rules, change, &seen))
		return REVIEW_REPOSITORY;
	return REVIEW_GOOD;
}
