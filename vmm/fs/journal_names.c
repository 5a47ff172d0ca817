/* SPDX-License-Identifier: Apache-2.0 */
/* Names that make a change worth a look: what other machines and later builds run or obey. */
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/journal_internal.h"

/* The last names of paths. */
static const char *const build_files[] = {
	".gitlab-ci.yml",
	".travis.yml",
	"appveyor.yml",
	".appveyor.yml",
	"azure-pipelines.y*ml",
	"bitbucket-pipelines.yml",
	".drone.yml",
	".woodpecker.y*ml",
	"Jenkinsfile*",
	".cirrus.yml",
	"cloudbuild.y*ml",
	".pre-commit-config.yaml",
	".gitattributes",
	".gitmodules",
	"[Mm]akefile",
	"GNUmakefile",
	"*.mk",
	"CMakeLists.txt",
	"*.cmake",
	"meson.build",
	"configure",
	"configure.ac",
	"BUILD",
	"BUILD.bazel",
	"WORKSPACE",
	"justfile",
	"Justfile",
	"Taskfile.y*ml",
	"package.json",
	".npmrc",
	".yarnrc*",
	"setup.py",
	"setup.cfg",
	"pyproject.toml",
	"conftest.py",
	"tox.ini",
	"noxfile.py",
	"sitecustomize.py",
	"*.pth",
	"build.rs",
	"Cargo.toml",
	"build.gradle*",
	"settings.gradle*",
	"pom.xml",
	"build.sbt",
	"Rakefile",
	"Gemfile",
	"*.gemspec",
	"composer.json",
	"Dockerfile*",
	"Containerfile*",
	"docker-compose*.y*ml",
	"compose*.y*ml",
	"flake.nix",
	"default.nix",
	"shell.nix",
	"*.sln",
	"*.csproj",
	"Directory.Build.*",
	"go.mod",
};

/* Directories all of whose contents count. */
static const char *const build_directories[] = {
	".github/workflows", ".github/actions",  ".circleci",
	".buildkite",        ".husky",           ".cargo",
	".devcontainer",     ".gitea/workflows", ".forgejo/workflows",
};

static const char *const package_directories[] = {"node_modules", "site-packages", ".git", ".venv"};

/* Whether the names of @directory come one after the other among those above the last of @path. */
static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	for (const char *at = path; at; at = strchr(at, '/'), at = at ? at + 1 : NULL) {
		if (*at == *directory && strncmp(at, directory, length) == 0 && at[length] == '/')
			return true;
	}
	return false;
}

bool journal_is_package_file(const char *path)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(package_directories); i++) {
		if (is_below(path, package_directories[i]))
			return true;
	}
	return false;
}

/* Whether it is worth asking fnmatch: by the first and the last character. */
static bool may_match(const char *pattern, const char *name, size_t length)
{
	char last;

	if (*pattern != *name && *pattern != '*' && *pattern != '[')
		return false;
	last = pattern[strlen(pattern) - 1];
	return last == name[length - 1] || last == '*';
}

bool journal_is_build_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const size_t length = strlen(name);

	if (!length || journal_is_package_file(path))
		return false;
	for (unsigned int i = 0; i < ARRAY_SIZE(build_files); i++) {
		if (may_match(build_files[i], name, length) &&
		    fnmatch(build_files[i], name, 0) == 0)
			return true;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(build_directories); i++) {
		if (is_below(path, build_directories[i]))
			return true;
	}
	return false;
}
