/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest is to try, for each line of a review, on this host and under this policy. */
#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/checklist_host.h"
#include "vmm/fs/policy.h"

#define MANY_HIDDEN   8 /* names in the working directory */
#define MANY_PROJECTS 8 /* beside what is worked on */

/* How far a share is searched for repositories: HOST/OWNER/NAME lies three levels down. */
#define SEARCHED_LEVELS      4U
#define SEARCHED_DIRECTORIES 20000U

/* Below the user's home. */
static const char *const places[] = {
	".ssh",
	".ssh/id_rsa",
	".ssh/id_ed25519",
	".gnupg",
	".aws",
	".config/gcloud",
	".azure",
	".kube",
	".docker/config.json",
	".config/gh",
	".git-credentials",
	".netrc",
	".npmrc",
	".pypirc",
	".cargo/credentials.toml",
	".bash_history",
	".zsh_history",
	".python_history",
	".claude",
	".claude.json",
	".codex",
	".mozilla",
	".config/google-chrome",
	".password-store",
	".local/share/keyrings",
	".local/state/mvagent/record.key",
};

static struct policy *make_policy(const struct run_options *options)
{
	static const struct {
		const char *option;
		enum policy_list list;
	} lists[] = {{"--hide", POLICY_HIDE},
		     {"--show", POLICY_SHOW},
		     {"--protect", POLICY_PROTECT},
		     {"--unprotect", POLICY_UNPROTECT}};
	struct policy *policy = policy_create();

	if (!policy || policy_add_defaults(policy) < 0)
		return policy;
	for (unsigned int i = 0; i < options->rule_count; i++) {
		for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
			if (strcmp(lists[list].option, options->rules[i].option) == 0)
				policy_add(policy, lists[list].list, options->rules[i].pattern);
		}
	}
	return policy;
}

static void add_text(cJSON *array, const char *text)
{
	cJSON_AddItemToArray(array, cJSON_CreateString(text));
}

/* One that must not be opened, which is the host's own if it looks like this. @path: in the guest.
 */
static void add_own(struct checklist_host *host, enum checklist_line line, const char *path,
		    const struct stat *status)
{
	struct checklist_outside *outside = &host->outside;
	unsigned int before = outside->item_count;

	checklist_add(outside, line, TRY_REFUSED, "open:%s", path);
	if (outside->item_count > before &&
	    asprintf(&outside->items[before].same, "%lld.%09ld:%lld",
		     (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
		     (long long)status->st_size) < 0)
		outside->items[before].same = NULL;
}

/* The way from the working directory, which is what is worked on or below it, so many directories
 * above that: "../../NAME". */
static void write_relative(const struct checklist_host *host, unsigned int above, const char *name,
			   char *text, size_t size)
{
	const char *below = host->directory + strlen(host->root);
	size_t length = 0;

	for (; *below; below++)
		above += *below == '/' && below[1];
	for (; above && length + 4 < size; above--)
		length += (size_t)snprintf(text + length, size - length, "../");
	snprintf(text + length, size - length, "%s", name);
}

/* Where nothing could be planted, something that is there anyway is asked for. Whether there is
 * any. */
static bool add_existing(struct checklist_host *host, const char *place, unsigned int above)
{
	DIR *directory = opendir(place);
	const struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory))) {
		char path[PATH_MAX + NAME_MAX + 2], relative[PATH_MAX + NAME_MAX];
		struct stat status;
		unsigned int share;

		snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    lstat(path, &status) < 0 || (status.st_mode & S_IFMT) == S_IFLNK ||
		    access(path, R_OK) < 0 || run_shares_below(host->root, path) ||
		    checklist_in_share(host, path, &share))
			continue;
		write_relative(host, above, entry->d_name, relative, sizeof(relative));
		add_own(host, LINE_ABOVE, path, &status);
		add_own(host, LINE_ABOVE, relative, &status);
		found = true;
	}
	if (directory)
		closedir(directory);
	return found;
}

/* The two directories above what is worked on; / is the guest's own in any case. */
static void add_unplanted(struct checklist_host *host)
{
	char path[PATH_MAX];

	host->outside.unplanted = cJSON_CreateArray();
	snprintf(path, sizeof(path), "%s", host->root);
	for (unsigned int above = 1; *host->root && above <= 2; above++) {
		bool planted = false;

		if (strcmp(dirname(path), "/") == 0)
			return;
		for (unsigned int i = 0; i < host->outside.canary_count; i++)
			planted |= host->outside.canaries[i].above == above;
		if (!planted && !add_existing(host, path, above))
			add_text(host->outside.unplanted, path);
	}
}

/* Files that were planted, by their paths and from the working directory up. */
static void add_canaries(struct checklist_host *host)
{
	struct checklist_outside *outside = &host->outside;

	for (unsigned int i = 0; i < outside->canary_count; i++) {
		const char *path = outside->canaries[i].path;
		char relative[PATH_MAX + NAME_MAX];

		checklist_add(outside, LINE_ABOVE, TRY_REFUSED, "read:%s", path);
		checklist_add(outside, LINE_KEYS, TRY_REFUSED, "read:%s", path);
		checklist_add(outside, LINE_PROJECTS, TRY_REFUSED, "read:%s", path);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "link:%s", path);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "symlink:%s", path);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "read:/proc/1/root%s", path);
		if (!outside->canaries[i].above)
			continue;
		write_relative(host, outside->canaries[i].above, strrchr(path, '/') + 1, relative,
			       sizeof(relative));
		checklist_add(outside, LINE_ABOVE, TRY_REFUSED, "read:%s", relative);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "read:/proc/self/cwd/%s",
			      relative);
	}
	checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "write:/dev/vda");
}

/* Whether a path of this host is one that a share shows, by the rules alone. */
static bool is_exposed(const struct checklist_host *host, const struct policy *policy,
		       const char *path)
{
	unsigned int share;
	const char *below = checklist_in_share(host, path, &share);
	struct policy_verdict verdict = {0};

	if (!below)
		return false;
	if (policy && *below)
		policy_examine_path(policy, below, &verdict);
	return !verdict.hidden;
}

static void add_place(struct checklist_host *host, const char *path, const struct stat *status)
{
	char guest[2 * PATH_MAX];

	checklist_guest_path(host, path, guest, sizeof(guest));
	add_own(host, LINE_KEYS, guest, status);
}

static void add_places(struct checklist_host *host, const struct policy *policy)
{
	struct checklist_outside *outside = &host->outside;
	struct stat status;

	outside->exposed = cJSON_CreateArray();
	for (size_t i = 0; *host->home && i < ARRAY_SIZE(places); i++) {
		char path[PATH_MAX + 64];

		outside->places_known++;
		snprintf(path, sizeof(path), "%s/%s", host->home, places[i]);
		if (stat(path, &status) < 0)
			continue;
		outside->places_here++;
		if (is_exposed(host, policy, path))
			add_text(outside->exposed, path);
		add_place(host, path, &status);
	}
}

/* Names in the working directory that the rules hide. */
static void add_hidden(struct checklist_host *host, const struct policy *policy)
{
	const cJSON *name;
	int count = 0;

	cJSON_ArrayForEach(name, host->outside.names)
	{
		char path[PATH_MAX + NAME_MAX + 2];
		unsigned int share;
		struct stat status;
		const char *below;

		snprintf(path, sizeof(path), "%s/%s", host->directory, name->valuestring);
		below = checklist_in_share(host, path, &share);
		if (below && !is_exposed(host, policy, path) && stat(path, &status) == 0 &&
		    count++ < MANY_HIDDEN)
			add_place(host, path, &status);
	}
}

/* A directory, or with @files also a worktree, whose .git is a file (gitrepository-layout(5)). */
static bool is_repository(const char *path, bool files)
{
	char git[2 * PATH_MAX];
	struct stat status;

	snprintf(git, sizeof(git), "%s/.git", path);
	return lstat(git, &status) == 0 &&
	       (S_ISDIR(status.st_mode) || (files && S_ISREG(status.st_mode)));
}

/* What is looked at when a share is searched. */
struct search {
	cJSON *found;
	const char *own; /* the one that is worked on */
	bool files;
	unsigned int directories; /* so far */
};

/* Repositories below a directory, at most @levels down; what is in one is its own. */
static void search_share(struct search *search, const char *place, unsigned int levels)
{
	DIR *directory = opendir(place);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		char path[2 * PATH_MAX];
		struct stat status;

		if (entry->d_name[0] == '.' || search->directories == SEARCHED_DIRECTORIES)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", place, entry->d_name) >= PATH_MAX ||
		    lstat(path, &status) < 0 || !S_ISDIR(status.st_mode))
			continue;
		search->directories++;
		if (is_repository(path, search->files)) {
			if (strcmp(path, search->own) != 0)
				add_text(search->found, path);
		} else if (levels > 1) {
			search_share(search, path, levels - 1);
		}
	}
	if (directory)
		closedir(directory);
}

/* Repositories in a directory, one level down, that are in no share: they are to be tried. */
static void find_projects(struct checklist_host *host, const char *place)
{
	struct checklist_outside *outside = &host->outside;
	DIR *directory = *place ? opendir(place) : NULL;
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		char path[PATH_MAX + NAME_MAX + 16];
		unsigned int share;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
		if (!is_repository(path, true) || checklist_in_share(host, path, &share) ||
		    cJSON_GetArraySize(outside->projects) >= MANY_PROJECTS)
			continue;
		add_text(outside->projects, path);
		checklist_add(outside, LINE_PROJECTS, TRY_REFUSED, "%s:%s/.git",
			      is_repository(path, false) ? "list" : "open", path);
	}
	if (directory)
		closedir(directory);
}

/* A share may be a place of projects: one of them is the agent's, and the others are others. */
static void add_projects(struct checklist_host *host)
{
	struct checklist_outside *outside = &host->outside;
	char parent[PATH_MAX];

	outside->projects = cJSON_CreateArray();
	outside->shared_projects = cJSON_CreateArray();
	for (unsigned int i = 0; i < host->shares.count; i++) {
		const char *root = host->shares.directories[i].host_path;
		const bool alone = strcmp(root, host->root) == 0;
		struct search search = {
			.found = cJSON_CreateArray(),
			.own = host->root,
			/* In a repository they are its submodules. */
			.files = !is_repository(root, true),
		};
		const cJSON *project;

		search_share(&search, root, SEARCHED_LEVELS);
		cJSON_ArrayForEach(project, search.found)
		{
			/* The only one in the directory that it works in is its own. */
			if (!alone || cJSON_GetArraySize(search.found) > 1)
				add_text(outside->shared_projects, project->valuestring);
		}
		cJSON_Delete(search.found);
	}
	snprintf(parent, sizeof(parent), "%s", host->root);
	if (*parent)
		find_projects(host, dirname(parent));
	if (*host->home && (!*host->root || strcmp(parent, host->home) != 0))
		find_projects(host, host->home);
}

/* A name that a rule protects, and is not there: a repository may well have the first few. */
static void add_protected(struct checklist_host *host, const struct policy *policy,
			  const struct shared_directory *share)
{
	static const char *const names[] = {".vscode", ".husky", ".devcontainer", ".idea",
					    ".fleet",  ".helix", ".octaverc"};

	for (size_t i = 0; policy && i < ARRAY_SIZE(names); i++) {
		struct policy_verdict verdict;
		char path[PATH_MAX + 32];

		policy_examine_path(policy, names[i], &verdict);
		snprintf(path, sizeof(path), "%s/%s", share->host_path, names[i]);
		if (!verdict.protected || verdict.hidden || access(path, F_OK) == 0)
			continue;
		checklist_add(&host->outside, LINE_CHANGES, TRY_PROTECTED, "mkdir:%s/%s",
			      share->path, names[i]);
		return;
	}
}

static void add_changes(struct checklist_host *host, const struct policy *policy)
{
	for (unsigned int i = 0; i < host->shares.count; i++) {
		const struct shared_directory *share = &host->shares.directories[i];

		if (share->read_only)
			checklist_add(&host->outside, LINE_CHANGES, TRY_REFUSED,
				      "create:%s/.mvagent-review", share->path);
		else if (!share->review)
			add_protected(host, policy, share);
	}
}

static void add_sockets(struct checklist_host *host)
{
	struct checklist_outside *outside = &host->outside;
	const char *agent = getenv("SSH_AUTH_SOCK");
	const unsigned int uid = geteuid();

	if (agent && agent[0] == '/')
		checklist_add(outside, LINE_SOCKETS, TRY_REFUSED, "unix:%s", agent);
	checklist_add(outside, LINE_SOCKETS, TRY_REFUSED, "unix:/run/docker.sock");
	checklist_add(outside, LINE_SOCKETS, TRY_REFUSED, "unix:/run/user/%u/bus", uid);
	checklist_add(outside, LINE_SOCKETS, TRY_REFUSED, "unix:/run/user/%u/gnupg/S.gpg-agent",
		      uid);
	checklist_add(outside, LINE_SOCKETS, TRY_REFUSED, "unix:/run/user/%u/keyring/control", uid);
	checklist_add(outside, LINE_SOCKETS, TRY_REFUSED, "unix:/tmp/.X11-unix/X0");
}

void checklist_items_make(struct checklist_host *host, const struct run_options *options)
{
	struct checklist_outside *outside = &host->outside;
	struct policy *policy = make_policy(options);

	if (outside->names)
		checklist_add(outside, LINE_ROOT, TRY_LIST, "list:.");
	add_canaries(host);
	add_unplanted(host);
	add_places(host, policy);
	add_hidden(host, policy);
	add_projects(host);
	add_changes(host, policy);
	checklist_items_network(host, options);
	checklist_add(outside, LINE_ENVIRONMENT, TRY_ENVIRON, "environ:");
	add_sockets(host);
	checklist_add(outside, LINE_MACHINE, TRY_BOOT, "read:/proc/sys/kernel/random/boot_id");
	checklist_add(outside, LINE_TERMINAL, TRY_TERMINAL, "terminal:%.8s", host->number);
	policy_destroy(policy);
}
