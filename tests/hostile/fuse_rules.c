/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest kernel that wants the host to obey it or to tell it a secret: drives a real mvagent-fs
 * with random sequences of well-formed requests over the names that rules are about, and looks at
 * every reply and, from the host's side, at what has come of it. The rules are told here anew, from
 * what git and other tools do, and not from how mvagent-fs decides.
 *
 *   fuse_rules PATH-OF-MVAGENT-FS [SEED [ROUNDS]]
 *
 * Prints one line a test, "ok NAME" or "not ok NAME: why".
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "tests/hostile/fuse_machine.h"
#include "tests/hostile/fuse_tree.h"

#define SECRET           "this-is-the-secret-of-the-host"
#define EVIL             "[core]\n\tfsmonitor = evil\n"
#define UP               "[core]\n\tworktree = ../../../../w\n"
#define REQUESTS_A_ROUND 2000U

static const char *const names[] = {
	"a",
	"b",
	"c",
	".git",
	"x.git",
	"y.git",
	"config",
	"CONFIG",
	"HEAD",
	"objects",
	"refs",
	"hooks",
	"logs",
	"info",
	"modules",
	"m",
	"worktrees",
	"commondir",
	"pre-commit",
	"p.sample",
	"alternates",
	".env",
	".ENV",
	".envrc",
	".vscode",
	".VSCode",
	"index",
	".ssh",
	"id_rsa",
	"link",
	"other",
	"sub",
	"node_modules",
	"bare",
	"gitdir",
	"config.worktree",
	"old",
	".claude",
	".gdbinit",
	"settings.json",
};

static const char *const texts[] = {
	EVIL,
	UP,
	"../..\n",
	"../../a\n",
	"gitdir: ../x.git\n",
	"gitdir: ../a\n",
	"ref: refs/heads/m\n",
	"[core]\n\tbare = false\n",
	"x",
};

static const char *random_name(void)
{
	return names[random_below(ARRAY_SIZE(names))];
}

static struct tree *walked;
static unsigned int secrets; /* files that have it, by names that are hidden */
static const char *walk_why;
static char walk_path[PATH_MAX];

/* --- what must not be, seen from the host --- */

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcasecmp(text + length - end_length, end) == 0;
}

static bool is_there(const char *directory, const char *name)
{
	struct stat status;
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return lstat(path, &status) == 0;
}

static void read_text(const char *path, char text[4096])
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, 4095);

	text[length < 0 ? 0 : length] = '\0';
	if (fd >= 0)
		close(fd);
}

/* setup.c of git, is_git_directory: HEAD, and objects and refs there or where commondir says. */
static bool is_repository(const char *directory)
{
	return is_there(directory, "HEAD") &&
	       (is_there(directory, "commondir") ||
		(is_there(directory, "objects") && is_there(directory, "refs")));
}

/* Whether a directory may be what git takes configuration and hooks from, in whatever way it came
 * to look there. */
static bool is_obeyed(const char *directory)
{
	return is_repository(directory) ||
	       (is_there(directory, "objects") && is_there(directory, "refs"));
}

static void blame(const char *path, const char *why)
{
	if (walk_why)
		return;
	walk_why = why;
	snprintf(walk_path, sizeof(walk_path), "%s", path + strlen(walked->share));
}

/* core.worktree must not lead above the share. */
static bool leads_out(const char *directory, const char *text)
{
	int depth = -1;

	for (const char *at = directory + strlen(walked->share); *at; at++)
		depth += *at == '/';
	depth++;
	text = strstr(text, "worktree = ");
	if (!text)
		return false;
	for (text += 11; strncmp(text, "../", 3) == 0; text += 3)
		depth--;
	return depth < 0;
}

/* Without HEAD, a directory is one that a commondir may lead to, for all but config.worktree. */
static void check_config(const char *path, const char *directory, const char *name)
{
	char text[4096];

	if (!(strcmp(name, "config") == 0 ? is_obeyed(directory) : is_repository(directory)))
		return;
	read_text(path, text);
	if (strstr(text, "fsmonitor"))
		blame(path, "git would run what this configuration names");
	if (is_repository(directory) && leads_out(directory, text))
		blame(path, "the work tree would be outside of the share");
}

/* Names that the host's tools obey wherever they are, but below node_modules. */
static bool is_old(const char *path)
{
	static const char *const old[] = {"/.vscode", "/.vscode/settings.json", "/.git/config",
					  "/.git/hooks", "/.git/hooks/pre-commit"};

	for (unsigned int i = 0; i < ARRAY_SIZE(old); i++)
		if (strcmp(path, old[i]) == 0)
			return true;
	return false;
}

static void check_name(const char *path, const char *name)
{
	static const char *const obeyed[] = {".vscode", ".envrc", ".claude", ".gdbinit"};
	static const char *const hidden[] = {".env", ".ssh", "id_rsa", ".envrc"};
	const char *below = path + strlen(walked->share);
	char text[4096];

	if (strcasestr(below, "/node_modules"))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(obeyed); i++)
		if (strcasecmp(name, obeyed[i]) == 0 && !is_old(below))
			blame(path, "the host's tools would obey this name");
	for (unsigned int i = 0; i < ARRAY_SIZE(hidden); i++) {
		if (strcasecmp(name, hidden[i]) != 0 || strcmp(below, "/.ssh") == 0)
			continue;
		/* It may have come there with the directory that it is in. */
		read_text(path, text);
		if (strcmp(text, SECRET) != 0)
			blame(path, "this name is hidden from the guest, which has made it");
		secrets++;
	}
}

static int check_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	char directory[PATH_MAX];
	const char *name = path + walk->base;

	(void)flag;
	if (walk->level == 0 || walk_why)
		return 0;
	snprintf(directory, sizeof(directory), "%.*s", walk->base - 1, path);
	check_name(path, name);
	if (strcmp(name, "config") == 0 || strcmp(name, "config.worktree") == 0)
		check_config(path, directory, name);
	if (ends_with(directory, "/hooks") && !is_old(path + strlen(walked->share)) &&
	    !(S_ISREG(status->st_mode) && ends_with(name, ".sample"))) {
		*strrchr(directory, '/') = '\0';
		if (is_obeyed(directory))
			blame(path, "git would run this hook");
	}
	if (S_ISLNK(status->st_mode) && strcasestr(path + strlen(walked->share), ".git/") &&
	    strcasestr(path + strlen(walked->share), "/.git/"))
		blame(path, "git would write where this link leads");
	return 0;
}

static bool holds(const char *directory, const char *name, const char *text)
{
	char path[PATH_MAX], found[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	read_text(path, found);
	return strcmp(found, text) == 0;
}

/* Why the share is not as it has to be, or NULL. */
static const char *check_share(struct tree *tree)
{
	walked = tree;
	walk_why = NULL;
	secrets = 0;
	nftw(tree->share, check_one, 32, FTW_PHYS);
	if (walk_why)
		return walk_why;
	snprintf(walk_path, sizeof(walk_path), "a file that was there");
	if (!holds(tree->share, ".git/config", "[core]\n") ||
	    !holds(tree->share, ".git/hooks/pre-commit", "good") ||
	    !holds(tree->share, ".vscode/settings.json", "good"))
		return "what is protected has changed";
	if (!holds(tree->share, ".env", SECRET) || !holds(tree->share, ".ssh/id_rsa", SECRET) ||
	    secrets != 3)
		return "what is hidden has changed";
	return holds(tree->outside, "canary", CANARY) && holds(tree->outside, "linked", "outside")
		       ? NULL
		       : "what is outside has changed";
}

/* --- the guest --- */

static size_t put_text(uint8_t *at, const char *text)
{
	memcpy(at, text, strlen(text) + 1);
	return strlen(text) + 1;
}

/* Those of a request about what the guest knows already. */
static size_t make_known_request(struct machine *machine, uint32_t opcode, uint8_t *at)
{
	uint64_t handle = machine_handle(machine);
	size_t size;

	switch (opcode) {
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		memcpy(at,
		       &(struct fuse_open_in){
			       .flags = opcode == FUSE_OPEN && random_below(2) ? O_RDWR : O_RDONLY},
		       8);
		return 8;
	case FUSE_READ:
	case FUSE_READDIRPLUS:
		memcpy(at, &(struct fuse_read_in){.fh = handle, .size = 4096}, 40);
		return 40;
	case FUSE_SETATTR:
		memcpy(at,
		       &(struct fuse_setattr_in){.valid = random_below(2) ? FATTR_SIZE : FATTR_MODE,
						 .size = random_below(40),
						 .mode = 0755},
		       88);
		return 88;
	case FUSE_FORGET:
		memcpy(at, &(uint64_t){1 + random_below(3)}, 8);
		return 8;
	case FUSE_COPY_FILE_RANGE:
		memcpy(at,
		       &(struct fuse_copy_file_range_in){
			       .fh_in = machine_handle(machine), .fh_out = handle, .len = 100},
		       56);
		return 56;
	case FUSE_SETXATTR:
		memcpy(at, &(uint64_t){4}, 8);
		size = 8 + put_text(at + 8, "user.a");
		return size + put_text(at + size, "val");
	case FUSE_GETXATTR:
		memcpy(at, &(uint64_t){100}, 8);
		return 8 + put_text(at + 8, "user.a");
	default:
		return put_text(at, random_name());
	}
}

/* Arguments for a random request, mostly good ones. */
static size_t make_request(struct machine *machine, uint32_t *opcode, uint8_t *at)
{
	static const uint8_t opcodes[] = {
		FUSE_LOOKUP,          FUSE_LOOKUP,   FUSE_LOOKUP,      FUSE_LOOKUP,  FUSE_MKDIR,
		FUSE_MKDIR,           FUSE_MKDIR,    FUSE_CREATE,      FUSE_CREATE,  FUSE_CREATE,
		FUSE_WRITE,           FUSE_WRITE,    FUSE_WRITE,       FUSE_RENAME2, FUSE_RENAME2,
		FUSE_RENAME2,         FUSE_LINK,     FUSE_LINK,        FUSE_SYMLINK, FUSE_UNLINK,
		FUSE_RMDIR,           FUSE_OPEN,     FUSE_OPEN,        FUSE_READ,    FUSE_SETATTR,
		FUSE_FORGET,          FUSE_OPENDIR,  FUSE_READDIRPLUS, FUSE_MKNOD,   FUSE_TMPFILE,
		FUSE_COPY_FILE_RANGE, FUSE_SETXATTR, FUSE_GETXATTR,
	};
	const char *text = texts[random_below(ARRAY_SIZE(texts))];
	uint64_t node = machine_node(machine), handle = machine_handle(machine);
	size_t size;

	*opcode = opcodes[random_below(ARRAY_SIZE(opcodes))];
	memset(at, 0, 128);
	switch (*opcode) {
	case FUSE_MKDIR:
		memcpy(at, &(struct fuse_mkdir_in){.mode = 0755}, 8);
		return 8 + put_text(at + 8, random_name());
	case FUSE_MKNOD:
		memcpy(at, &(struct fuse_mknod_in){.mode = S_IFREG | 0644}, 16);
		return 16 + put_text(at + 16, random_name());
	case FUSE_CREATE:
	case FUSE_TMPFILE:
		memcpy(at,
		       &(struct fuse_create_in){.flags = O_RDWR | (random_below(4) ? 0 : O_TRUNC),
						.mode = 0644},
		       16);
		return 16 + put_text(at + 16, random_name());
	case FUSE_SYMLINK:
		size = put_text(at, random_name());
		return size + put_text(at + size, random_below(2) ? "../../outside/linked" : "a");
	case FUSE_WRITE:
		size = random_below(8) ? strlen(text) : random_below((uint32_t)strlen(text) + 1);
		memcpy(at,
		       &(struct fuse_write_in){.fh = handle,
					       .size = (uint32_t)size,
					       .offset = random_below(4) ? 0 : random_below(20),
					       .flags = random_below(4) ? 0 : O_APPEND},
		       40);
		memcpy(at + 40, text, size);
		return 40 + size;
	case FUSE_RENAME2:
		memcpy(at,
		       &(struct fuse_rename2_in){.newdir = node, .flags = random_below(4) ? 0 : 2},
		       16);
		size = 16 + put_text(at + 16, random_name());
		return size + put_text(at + size, random_name());
	case FUSE_LINK:
		memcpy(at, &node, 8);
		return 8 + put_text(at + 8, random_name());
	default:
		return make_known_request(machine, *opcode, at);
	}
}

/* Sends one request and looks for the secret in the reply. */
static bool send_one(struct machine *machine)
{
	uint8_t arguments[1024];
	uint32_t opcode;
	size_t size = make_request(machine, &opcode, arguments);
	uint64_t node = machine_node(machine);
	uint8_t *reply = machine->host + SLOT_GPA(0) + SLOT_BYTES / 2;

	if (opcode == FUSE_FORGET && random_below(4))
		return true;
	memset(reply, 0, 8192);
	machine_add(machine, 0, opcode == FUSE_FORGET ? 0 : 1, opcode, node, arguments, size, 8192,
		    0);
	machine_collect(machine);
	return !memmem(reply, 8192, SECRET, strlen(SECRET));
}

/* --- the host --- */

static void make_share(struct tree *tree)
{
	static const char *const directories[] = {
		".git", ".git/objects", ".git/refs", ".git/hooks",   ".git/logs", ".vscode", ".ssh",
		"a",    "node_modules", "bare",      "bare/objects", "bare/refs"};
	char path[PATH_MAX], other[PATH_MAX];

	for (unsigned int i = 0; i < ARRAY_SIZE(directories); i++) {
		snprintf(path, sizeof(path), "%s/%s", tree->share, directories[i]);
		need(mkdir(path, 0755) == 0, path);
	}
	tree_write(tree->share, ".git/config", "[core]\n");
	tree_write(tree->share, ".git/HEAD", "ref: refs/heads/m\n");
	tree_write(tree->share, ".git/hooks/pre-commit", "good");
	tree_write(tree->share, ".vscode/settings.json", "good");
	tree_write(tree->share, ".env", SECRET);
	tree_write(tree->share, "a/.env", SECRET);
	tree_write(tree->share, ".ssh/id_rsa", SECRET);
	tree_write(tree->share, "bare/HEAD", "ref: refs/heads/m\n");
	tree_write(tree->outside, "linked", "outside");
	snprintf(path, sizeof(path), "%s/.env", tree->share);
	snprintf(other, sizeof(other), "%s/other", tree->share);
	need(link(path, other) == 0, other);
	snprintf(path, sizeof(path), "%s/linked", tree->outside);
	snprintf(other, sizeof(other), "%s/link", tree->share);
	need(link(path, other) == 0, other);
}

static int test_rules(const char *name, bool review, const char *server, unsigned int rounds)
{
	unsigned long requests = 0;
	const char *why = NULL;
	struct machine machine;
	struct tree tree;

	tree_create(&tree);
	make_share(&tree);
	machine_create(
		&machine, server, tree.share,
		(const char *const[]){"--quiet", review ? "--upper" : NULL, tree.upper, NULL});
	machine_activate(&machine);
	machine_init(&machine);
	for (unsigned int round = 0; !why && round < rounds; round++) {
		for (unsigned int i = 0; !why && i < REQUESTS_A_ROUND; i++, requests++)
			if (!send_one(&machine))
				why = "a reply has the secret";
		if (!why)
			why = check_share(&tree);
	}
	if (machine_destroy(&machine) && !why)
		why = "the server did not end in order";
	printf("# %lu requests, seed %llu\n", requests, (unsigned long long)first_seed);
	if (why)
		printf("not ok %s: %s: %s (left in %s)\n", name, walk_path, why, tree.base);
	else
		printf("ok %s\n", name);
	if (!why)
		tree_destroy(&tree);
	return why ? 1 : 0;
}

int main(int argc, char **argv)
{
	unsigned int rounds;
	int failures;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: %s PATH-OF-MVAGENT-FS [SEED [ROUNDS]]\n", argv[0]);
		return 2;
	}
	first_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (unsigned long long)time(NULL);
	random_state = first_seed;
	rounds = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 0) : 50;
	failures = test_rules("fuse_rules", false, argv[1], rounds);
	failures += test_rules("fuse_rules_review", true, argv[1], rounds);
	return failures ? 1 : 0;
}
