/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest is to try, for each line of a review, on this host and under this policy. */
#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/checklist_host.h"
#include "vmm/fs/policy.h"
#include "vmm/relay/policy.h"

#define MANY_HIDDEN   8 /* names in the working directory */
#define MANY_PROJECTS 8 /* beside what is worked on */

/* How far a share is searched for repositories: HOST/OWNER/NAME lies three levels down. */
#define SEARCHED_LEVELS      4U
#define SEARCHED_DIRECTORIES 20000U

#define MANY_HOSTS 4
#define RAW_FRAMES 8

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

/* Files that were planted, by their paths and from the working directory up. */
static void add_canaries(struct checklist_host *host)
{
	struct checklist_outside *outside = &host->outside;

	for (unsigned int i = 0; i < outside->canary_count; i++) {
		const char *path = outside->canaries[i].path;
		const char *name = strrchr(path, '/') + 1;

		checklist_add(outside, LINE_ABOVE, TRY_REFUSED, "read:%s", path);
		checklist_add(outside, LINE_KEYS, TRY_REFUSED, "read:%s", path);
		checklist_add(outside, LINE_PROJECTS, TRY_REFUSED, "read:%s", path);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "link:%s", path);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "symlink:%s", path);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "read:/proc/1/root%s", path);
		/* The first lies above what is worked on, if there is such a place. */
		if (i || !*host->root || strcmp(host->root, host->directory) != 0)
			continue;
		checklist_add(outside, LINE_ABOVE, TRY_REFUSED, "read:../%s", name);
		checklist_add(outside, LINE_ABOVE, TRY_REFUSED, "read:../../%s", name);
		checklist_add(outside, LINE_ROUTES, TRY_REFUSED, "read:/proc/self/cwd/../%s", name);
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

/* One that must not be opened, which is the host's own if it looks like this. */
static void add_place(struct checklist_host *host, const char *path, const struct stat *status)
{
	struct checklist_outside *outside = &host->outside;
	char guest[2 * PATH_MAX];
	unsigned int before = outside->item_count;

	checklist_guest_path(host, path, guest, sizeof(guest));
	checklist_add(outside, LINE_KEYS, TRY_REFUSED, "open:%s", guest);
	if (outside->item_count > before &&
	    asprintf(&outside->items[before].same, "%lld.%09ld:%lld",
		     (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
		     (long long)status->st_size) < 0)
		outside->items[before].same = NULL;
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

/* Unless the user has allowed just this. */
static void add_address(struct checklist_host *host, const struct run_options *options,
			enum checklist_line line, const char *address, unsigned int port)
{
	const struct route_decision decision = route_policy_decide(
		&options->network.settings.policy, address, strlen(address), (uint16_t)port);

	if (decision.verdict != ROUTE_ALLOWED)
		checklist_add(&host->outside, line, TRY_REFUSED, "tcp:%s/%u", address, port);
}

/* This host's own addresses, at the port of a socket that listens on all of them. */
static void add_own_addresses(struct checklist_host *host, const struct run_options *options)
{
	struct ifaddrs *list = NULL;
	int count = 0;

	if (getifaddrs(&list) < 0)
		list = NULL;
	for (const struct ifaddrs *one = list; one && count < 6; one = one->ifa_next) {
		char text[INET6_ADDRSTRLEN] = "";
		const struct sockaddr *address = one->ifa_addr;

		if (!address || one->ifa_flags & IFF_LOOPBACK)
			continue;
		if (address->sa_family == AF_INET)
			inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
				  sizeof(text));
		else if (address->sa_family == AF_INET6 &&
			 !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr))
			inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr,
				  text, sizeof(text));
		if (!*text)
			continue;
		count++;
		add_address(host, options, LINE_INSIDE, text, host->port);
	}
	if (list)
		freeifaddrs(list);
}

/* The ways that are open, a few of them. */
static void add_allowed(struct checklist_host *host, const struct run_options *options)
{
	const struct route_policy *policy = &options->network.settings.policy;
	int count = 0;

	for (unsigned int i = 0; i < policy->count && count < MANY_HOSTS; i++) {
		const struct route_rule *rule = &policy->rules[i];

		if (rule->deny || rule->target != ROUTE_HOST)
			continue;
		checklist_add(&host->outside, LINE_OUTSIDE, TRY_ALLOWED, "way:%s/%u", rule->name,
			      rule->port ? rule->port : ROUTE_PORT_TLS);
		count++;
	}
}

static void add_network(struct checklist_host *host, const struct run_options *options)
{
	static const char *const public_addresses[] = {"1.1.1.1", "8.8.8.8",
						       "2606:4700:4700::1111"};
	static const char *const inside[] = {"127.0.0.1",  "10.0.2.2",    "10.0.0.1", "172.16.0.1",
					     "172.17.0.1", "192.168.1.1", "fd00::1"};
	static const char *const cloud[] = {"169.254.169.254", "169.254.170.2", "fd00:ec2::254",
					    "100.100.100.200"};
	struct checklist_outside *outside = &host->outside;

	for (size_t i = 0; i < ARRAY_SIZE(public_addresses); i++)
		add_address(host, options, LINE_OUTSIDE, public_addresses[i], 443);
	checklist_add(outside, LINE_OUTSIDE, TRY_REFUSED, "way:%.8s.example.com/80", host->number);
	add_allowed(host, options);
	checklist_add(outside, LINE_LOG, TRY_DENIED, "name:%.8s.review.invalid", host->number);
	add_own_addresses(host, options);
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
		add_address(host, options, LINE_INSIDE, inside[i],
			    host->listener >= 0 ? host->port : 80);
	for (size_t i = 0; i < ARRAY_SIZE(cloud); i++)
		add_address(host, options, LINE_CLOUD, cloud[i], 80);
	checklist_add(outside, LINE_CLOUD, TRY_REFUSED, "name:metadata.google.internal");
	checklist_add(outside, LINE_RAW, TRY_IDENTITY, "identity:");
	checklist_add(outside, LINE_RAW, TRY_FRAMES, "frames:%d", RAW_FRAMES);
	checklist_add(outside, LINE_RAW, TRY_REFUSED, "udp:1.1.1.1/53");
	checklist_add(outside, LINE_RAW, TRY_REFUSED, "udp:2606:4700:4700::1111/53");
	checklist_add(outside, LINE_RAW, TRY_REFUSED, "icmp:1.1.1.1/0");
	for (unsigned int port = 22; port <= 1000; port += 326)
		checklist_add(outside, LINE_RAW, TRY_REFUSED, "vsock:%u", port);
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
	add_places(host, policy);
	add_hidden(host, policy);
	add_projects(host);
	add_changes(host, policy);
	add_network(host, options);
	checklist_add(outside, LINE_ENVIRONMENT, TRY_ENVIRON, "environ:");
	add_sockets(host);
	checklist_add(outside, LINE_MACHINE, TRY_BOOT, "read:/proc/sys/kernel/random/boot_id");
	checklist_add(outside, LINE_TERMINAL, TRY_TERMINAL, "terminal:%.8s", host->number);
	policy_destroy(policy);
}
