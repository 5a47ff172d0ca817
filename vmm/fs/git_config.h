/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a git configuration can do no harm on the host. Git runs programs that its configuration
 * names (core.fsmonitor at each "git status"), or takes more configuration from elsewhere, so what
 * a guest writes may hold keys of a list only: those that repositories have by themselves and that
 * name nothing to run. Read more strictly than git reads it (git-config(1), "Syntax"): what is not
 * plainly one of the allowed lines is refused.
 */
#ifndef MVAGENT_FS_GIT_CONFIG_H
#define MVAGENT_FS_GIT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define GIT_CONFIG_BYTES     65536U
#define GIT_CONFIG_KEY_BYTES 64

/* @depth: how many directories up core.worktree has to lead; 0: it may not be there. False: *@key
 * (empty: the syntax) is what is not allowed. */
bool git_config_is_harmless(const char *text, size_t size, unsigned int depth,
			    char key[GIT_CONFIG_KEY_BYTES]);

/* Whether a file is one that has git look elsewhere for its configuration: commondir. */
bool git_config_is_commondir(const char *name);

/* Whether that leads to nowhere but the repository that the directory called @directory_name is a
 * linked worktree of, or to the beginning of that way. */
bool git_commondir_is_harmless(const char *directory_name, const char *text, size_t size);

#endif
