/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/git_config.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "vmm/fs/git_place.h"

/* "section.key", or "section.*.key" with a subsection. None of them names a program, a file to read
 * or a transport helper. */
static const char *const harmless[] = {
	"core.abbrev",
	"core.autocrlf",
	"core.bare",
	"core.bigfilethreshold",
	"core.checkstat",
	"core.commentchar",
	"core.commitgraph",
	"core.compression",
	"core.eol",
	"core.filemode",
	"core.ignorecase",
	"core.logallrefupdates",
	"core.longpaths",
	"core.multipackindex",
	"core.precomposeunicode",
	"core.preloadindex",
	"core.quotepath",
	"core.repositoryformatversion",
	"core.safecrlf",
	"core.sharedrepository",
	"core.sparsecheckout",
	"core.sparsecheckoutcone",
	"core.splitindex",
	"core.symlinks",
	"core.trustctime",
	"core.untrackedcache",
	"core.whitespace",
	"core.worktree", /* its value is looked at */
	"extensions.compatobjectformat",
	"extensions.objectformat",
	"extensions.preciousobjects",
	"extensions.refstorage",
	"extensions.worktreeconfig",
	"remote.*.fetch",
	"remote.*.mirror",
	"remote.*.prune",
	"remote.*.prunetags",
	"remote.*.push",
	"remote.*.pushurl",
	"remote.*.tagopt",
	"remote.*.url",
	"remote.pushdefault",
	"branch.*.description",
	"branch.*.merge",
	"branch.*.pushremote",
	"branch.*.rebase",
	"branch.*.remote",
	"branch.autosetupmerge",
	"branch.autosetuprebase",
	"branch.sort",
	"submodule.*.active",
	"submodule.*.branch",
	"submodule.*.ignore",
	"submodule.*.path",
	"submodule.*.url",
	"submodule.active",
	"user.email",
	"user.name",
	"author.email",
	"author.name",
	"committer.email",
	"committer.name",
	"commit.gpgsign",
	"commit.verbose",
	"tag.gpgsign",
	"tag.sort",
	"advice.detachedhead",
	"checkout.defaultremote",
	"color.ui",
	"diff.algorithm",
	"diff.mnemonicprefix",
	"diff.renames",
	"feature.manyfiles",
	"fetch.prune",
	"fetch.prunetags",
	"gc.auto",
	"gc.autodetach",
	"index.threads",
	"index.version",
	"init.defaultbranch",
	"lfs.repositoryformatversion",
	"maintenance.auto",
	"maintenance.strategy",
	"merge.conflictstyle",
	"merge.ff",
	"merge.renames",
	"protocol.version",
	"pull.ff",
	"pull.rebase",
	"push.autosetupremote",
	"push.default",
	"push.followtags",
	"rebase.autosquash",
	"rebase.autostash",
	"receive.denycurrentbranch",
	"receive.denynonfastforwards",
	"rerere.autoupdate",
	"rerere.enabled",
	"status.showuntrackedfiles",
	"uploadpack.allowanysha1inwant",
	"uploadpack.allowfilter",
	"uploadpack.allowreachablesha1inwant",
	"uploadpack.allowtipsha1inwant",
	NULL,
};

struct config_reader {
	char section[GIT_CONFIG_KEY_BYTES]; /* with ".*" when there is a subsection */
	unsigned int depth;
	char *key;
};

static bool is_harmless_key(const char *key)
{
	for (const char *const *known = harmless; *known; known++)
		if (strcasecmp(key, *known) == 0)
			return true;
	return false;
}

static size_t skip_space(const char *line, size_t at, size_t length)
{
	while (at < length && (line[at] == ' ' || line[at] == '\t'))
		at++;
	return at;
}

static size_t skip_word(const char *line, size_t at, size_t length)
{
	while (at < length && (isalnum((unsigned char)line[at]) || line[at] == '-'))
		at++;
	return at;
}

/* [section] or [section "subsection"], and nothing after it but space. */
static bool read_section(struct config_reader *reader, const char *line, size_t length)
{
	size_t at = skip_word(line, 1, length);
	bool quoted = false;
	size_t name = at - 1;

	if (name == 0 || name + 3 > sizeof(reader->section))
		return false;
	if (at + 1 < length && line[at] == ' ' && line[at + 1] == '"') {
		for (at += 2; at < length && line[at] != '"'; at++)
			if (line[at] == '\\' && ++at >= length)
				return false;
		quoted = true;
		at++;
	}
	if (at >= length || line[at] != ']' || skip_space(line, at + 1, length) != length)
		return false;
	memcpy(reader->section, line + 1, name);
	memcpy(reader->section + name, quoted ? ".*" : "", quoted ? 3 : 1);
	return true;
}

/* A value that git reads as it stands: no quotes, escapes or comment, and not on over the line. */
static bool is_plain(const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (strchr("\"\\#;", value[i]))
			return false;
	return true;
}

/* core.worktree as "git submodule" writes it: up to the work tree above, and down from there. */
static bool stays_within(const char *value, size_t length, unsigned int depth)
{
	unsigned int up = 0;

	if (!is_plain(value, length) || length == 0 || value[0] == '/')
		return false;
	for (; length >= 3 && memcmp(value, "../", 3) == 0; up++) {
		value += 3;
		length -= 3;
	}
	for (size_t i = 0; i + 1 < length; i++)
		if (value[i] == '.' && value[i + 1] == '.')
			return false;
	return depth > 0 && up == depth && length > 0;
}

/* A transport helper ("ext::COMMAND") is a program; so may an address be that begins as an option.
 * Quotes may stand anywhere in a value, also between two colons. */
static bool is_harmless_value(const struct config_reader *reader, const char *value, size_t length)
{
	char last = '\0';

	if (strcasecmp(reader->key, "core.worktree") == 0)
		return stays_within(value, length, reader->depth);
	for (size_t i = 0; i < length; i++) {
		if (value[i] == '"' || value[i] == '\\')
			continue;
		if ((!last && value[i] == '-') || (last == ':' && value[i] == ':'))
			return false;
		last = value[i];
	}
	return true;
}

/* "key = value" or "key" alone. A value that goes on in the next line is refused. */
static bool read_entry(struct config_reader *reader, const char *line, size_t length)
{
	size_t end = skip_word(line, 0, length), at = skip_space(line, end, length);
	size_t section = strlen(reader->section);

	if (section + end + 2 > GIT_CONFIG_KEY_BYTES)
		return false;
	memcpy(reader->key, reader->section, section);
	reader->key[section] = '.';
	memcpy(reader->key + section + 1, line, end);
	reader->key[section + 1 + end] = '\0';
	if (end == 0 || !isalpha((unsigned char)line[0]) || !is_harmless_key(reader->key))
		return false;
	if (at == length)
		return true;
	if (line[at] != '=' || line[length - 1] == '\\')
		return false;
	at = skip_space(line, at + 1, length);
	return is_harmless_value(reader, line + at, length - at);
}

static bool read_line(struct config_reader *reader, const char *line, size_t length)
{
	size_t start = skip_space(line, 0, length);

	reader->key[0] = '\0';
	for (size_t i = 0; i < length; i++)
		if (iscntrl((unsigned char)line[i]) && line[i] != '\t')
			return false;
	line += start;
	length -= start;
	if (length == 0 || line[0] == '#' || line[0] == ';')
		return true;
	return line[0] == '[' ? read_section(reader, line, length)
			      : read_entry(reader, line, length);
}

bool git_config_is_harmless(const char *text, size_t size, unsigned int depth,
			    char key[GIT_CONFIG_KEY_BYTES])
{
	struct config_reader reader = {.depth = depth, .key = key};

	key[0] = '\0';
	if (size > GIT_CONFIG_BYTES)
		return false;
	while (size) {
		const char *newline = memchr(text, '\n', size);
		size_t length = newline ? (size_t)(newline - text) : size;

		if (!read_line(&reader, text, length))
			return false;
		length += newline ? 1 : 0;
		text += length;
		size -= length;
	}
	return true;
}

bool git_config_is_commondir(const char *name)
{
	return strcasecmp(name, "commondir") == 0;
}

/* As "git worktree" writes it. X.git itself has none; in whatever else may be a repository (below
 * its modules and worktrees) it leads to one that is looked at, too. */
bool git_commondir_is_harmless(const char *directory_name, const char *text, size_t size)
{
	static const char up[] = "../..\n";

	return size == 0 || (!git_is_repository_name(directory_name) && size < sizeof(up) &&
			     memcmp(text, up, size) == 0);
}
