/* SPDX-License-Identifier: Apache-2.0 */
/* --git-identity: what is taken of the user's git, and what is not. The git is this host's own. */
#include "vmm/cli/git_identity.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cli_capture.h"

struct fixture {
	char home[64];
	char repository[96];
	struct capture capture;
	char text[GIT_IDENTITY_BYTES];
};

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int run(const char *command)
{
	return system(command); /* NOLINT(cert-env33-c): the test's own words */
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char command[512];

	if (!f)
		return -1;
	snprintf(f->home, sizeof(f->home), "/tmp/mvagent-identity-XXXXXX");
	if (!mkdtemp(f->home))
		return -1;
	snprintf(f->repository, sizeof(f->repository), "%s/jobs", f->home);
	setenv("HOME", f->home, 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	unsetenv("XDG_CONFIG_HOME");
	snprintf(command, sizeof(command),
		 "git init -q %s && git -C %s config user.name Repository && "
		 "git -C %s config user.email repository@example.com",
		 f->repository, f->repository, f->repository);
	*state = f;
	return run("git --version >/dev/null") == 0 ? run(command) : 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nftw(f->home, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static int read_in(struct fixture *f, const char *directory)
{
	int error;

	if (access(f->repository, F_OK))
		skip(); /* there is no git */
	capture_begin(&f->capture);
	error = git_identity_read(directory, f->text);
	capture_end(&f->capture);
	return error;
}

#define OTHERS "[credential]\n\thelper = store\n[user]\n\tsigningkey = ABCDEF\n"

/* The user's own, wherever it is asked, and never a repository's. */
static void test_name_and_address_alone(void **state)
{
	struct fixture *f = *state;

	write_file(f->home, ".gitconfig",
		   OTHERS "[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n");
	assert_int_equal(read_in(f, "/"), 0);
	assert_string_equal(f->text, "[user]\n\tname = \"Ada Lovelace\"\n"
				     "\temail = \"ada@example.com\"\n");
	assert_int_equal(read_in(f, f->repository), 0);
	assert_null(strstr(f->text, "epository"));
	assert_non_null(strstr(f->text, "\"ada@example.com\""));
}

/* includeIf of the user's own configuration counts where it applies. */
static void test_conditional_includes(void **state)
{
	struct fixture *f = *state;

	write_file(f->home, ".gitconfig",
		   "[user]\n\tname = Ada\n\temail = ada@example.com\n"
		   "[includeIf \"gitdir:~/jobs/\"]\n\tpath = work.config\n");
	write_file(f->home, "work.config", "[user]\n\temail = ada@work.example.com\n");
	assert_int_equal(read_in(f, f->repository), 0);
	assert_non_null(strstr(f->text, "\"ada@work.example.com\""));
	assert_int_equal(read_in(f, "/"), 0);
	assert_non_null(strstr(f->text, "\"ada@example.com\""));
}

/* A repository that git does not like does not matter. */
static void test_broken_repository(void **state)
{
	struct fixture *f = *state;

	write_file(f->home, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n");
	if (access(f->repository, F_OK) == 0)
		write_file(f->repository, ".git/config",
			   "[core]\n\trepositoryformatversion = 99\n");
	assert_int_equal(read_in(f, f->repository), 0);
	assert_non_null(strstr(f->text, "\"Ada\""));
}

static void test_nothing_to_pass(void **state)
{
	struct fixture *f = *state;

	write_file(f->home, ".gitconfig", "[user]\n\tname = Ada\n");
	assert_true(read_in(f, f->repository) < 0);
	capture_expect_sentence(&f->capture, "--git-identity: your git has no user.email; set it: "
					     "git config --global user.email ...");
}

/* What git reads back from the file is what went in. */
static void test_values_survive(void **state)
{
	static const char *const names[] = {"a \"b\" c", "back\\slash", "#semi;colon", " blanks ",
					    "G\xc3\xb6"
					    "del"};
	struct fixture *f = *state;
	char command[256], seen[300];

	if (access(f->repository, F_OK))
		skip();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		FILE *git;
		size_t length;

		assert_int_equal(git_identity_write(names[i], "a@b", f->text), 0);
		write_file(f->home, "written", f->text);
		snprintf(command, sizeof(command), "git config -f %s/written -z user.name",
			 f->home);
		git = popen(command, "r"); /* NOLINT(cert-env33-c): the test's own words */
		assert_non_null(git);
		length = fread(seen, 1, sizeof(seen) - 1, git);
		seen[length] = '\0';
		assert_int_equal(pclose(git), 0);
		assert_string_equal(seen, names[i]);
	}
}

static void test_values_that_are_refused(void **state)
{
	struct fixture *f = *state;
	char value[258];

	memset(value, 'x', sizeof(value) - 1);
	value[257] = '\0';
	assert_true(git_identity_write(value, "a@b", f->text) < 0);
	assert_true(git_identity_write("a", value, f->text) < 0);
	memset(value, '"', 256);
	value[256] = '\0';
	assert_int_equal(git_identity_write(value, value, f->text), 0);
	assert_true(strlen(f->text) < GIT_IDENTITY_BYTES);
	assert_true(git_identity_write("", "a@b", f->text) < 0);
	assert_true(git_identity_write("a\n[core]\n\tpager = evil", "a@b", f->text) < 0);
	assert_true(git_identity_write("a\x7f", "a@b", f->text) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_name_and_address_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_conditional_includes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken_repository, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_to_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_survive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_that_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests_name("git identity", tests, NULL, NULL);
}
