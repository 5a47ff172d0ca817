/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/fs/policy.h"
#include "vmm/fs/policy_rules.h"

/* Files that hold credentials, by the names that tools give them. */
static const char *const hidden[] = {
	".env",
	".env.local",
	".env.*.local",
	".envrc",
	".env~", /* copies that editors make */
	".env.sw?",
	"..env.sw?",
	".#.env",
	"#.env#",
	".netrc",
	"_netrc",
	".git-credentials",
	".pgpass",
	".pypirc",
	".ssh",
	".aws",
	".azure",
	".gnupg",
	".kube",
	"**/.docker/config.json",
	"**/.config/gcloud",
	"**/.config/gh/hosts.yml",
	"id_rsa",
	"id_dsa",
	"id_ecdsa",
	"id_ecdsa_sk",
	"id_ed25519",
	"id_ed25519_sk",
};

/*
 * What the host's tools run or obey when the user works in the tree later. Of git: hooks; whatever
 * can name a program (config) or lead to another directory's config and hooks (commondir, gitdir)
 * or objects (alternates), in the repository itself, in its linked worktrees and in its submodules.
 * "*.git" takes in bare repositories.
 */
static const char *const protected[] = {
	"**/*.git/hooks",
	"**/*.git/config",
	"**/*.git/config.worktree",
	"**/*.git/commondir",
	"**/*.git/objects/info/alternates",
	"**/*.git/worktrees/*/commondir",
	"**/*.git/worktrees/*/gitdir",
	"**/*.git/worktrees/*/config.worktree",
	"**/*.git/modules/**/hooks",
	"**/*.git/modules/**/config",
	"**/*.git/modules/**/config.worktree",
	"**/*.git/modules/**/commondir",
	"**/*.git/modules/**/gitdir",
	"**/*.git/modules/**/objects/info/alternates",
	/* other version control */
	"**/.hg/hgrc",
	"**/.hg/hgrc-not-shared",
	"**/.hg/sharedpath", /* leads to another's hgrc */
	"**/.jj/repo/config.toml",
	"**/.sl/config",
	/* editors */
	".vscode",
	".idea",
	".zed",
	".fleet",
	".helix",
	".devcontainer", /* its initializeCommand runs on the host */
	".devcontainer.json",
	".exrc",
	".vimrc",
	".nvimrc",
	".nvim.lua",
	".lvimrc",
	".dir-locals.el",
	".dir-locals-2.el",
	/* debuggers and interpreters that look into the directory where they start */
	".gdbinit",
	".lldbinit",
	".pdbrc",
	".perldb",
	".byebugrc",
	".rdbgrc",
	".irbrc",
	".pryrc",
	".ghci",
	".ocamlinit",
	".octaverc",
	".Rprofile",
	/* shells' directory hooks; .direnv has what .envrc takes in */
	".envrc",
	".direnv",
	".autoenv.zsh",
	".autoenv_leave.zsh",
	".env.leave",
	/* agents */
	".claude",
	".cursor",
	".codex",
	".gemini",
	".qwen",
	".windsurf",
	".kiro",
	".roo",
	".continue",
	".amazonq",
	".opencode",
	"opencode.json",
	"opencode.jsonc",
	".crush.json",
	"crush.json",
	".aider.conf.yml",
	".mcp.json",
};

/*
 * What package managers fill. Packages bring editor settings and sample credentials along, which
 * nobody obeys there, and which must come and go with them.
 */
static const char *const packages[] = {"node_modules", "site-packages"};

int policy_add_option(struct policy *policy, enum policy_list list, const char *option,
		      const char *pattern)
{
	int error = policy_add(policy, list, pattern);

	if (error == -EINVAL)
		log_error("%s '%s': a pattern is a name or a path within the share, without '.', "
			  "'..' and empty names",
			  option, pattern);
	else if (error)
		log_errno(error, "%s '%s'", option, pattern);
	return error;
}

int policy_check(enum policy_list list, const char *option, const char *pattern)
{
	struct policy *policy = policy_create();
	int error = policy ? policy_add_option(policy, list, option, pattern)
			   : log_errno(-ENOMEM, "%s '%s'", option, pattern);

	policy_destroy(policy);
	return error;
}

int policy_add_defaults(struct policy *policy)
{
	int error = 0;

	for (unsigned int i = 0; !error && i < ARRAY_SIZE(hidden); i++)
		error = policy_add(policy, POLICY_HIDE, hidden[i]);
	for (unsigned int i = 0; !error && i < ARRAY_SIZE(protected); i++)
		error = policy_add_rule(policy, POLICY_PROTECT, protected[i], RULE_OLD_PLACES);
	for (unsigned int i = 0; !error && i < ARRAY_SIZE(packages); i++) {
		error = policy_add(policy, POLICY_SHOW, packages[i]);
		if (!error)
			error = policy_add_rule(policy, POLICY_UNPROTECT, packages[i],
						RULE_PACKAGES);
	}
	/* The file .git of a linked worktree or a submodule says where its repository is. */
	return error ? error : policy_add_rule(policy, POLICY_PROTECT, ".git", RULE_OLD_FILES);
}

const char *policy_default(enum policy_list list, unsigned int index)
{
	switch (list) {
	case POLICY_HIDE:
		return index < ARRAY_SIZE(hidden) ? hidden[index] : NULL;
	case POLICY_PROTECT:
		if (index == ARRAY_SIZE(protected))
			return ".git";
		return index < ARRAY_SIZE(protected) ? protected[index] : NULL;
	default:
		return index < ARRAY_SIZE(packages) ? packages[index] : NULL;
	}
}
