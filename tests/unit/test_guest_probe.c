/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest tells of what it tried is what is read of it outside. */
#include "guest/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/checklist/findings.h"

#define NUMBER "0011"
#define ODD    "a %\n\x01\xff"

enum { OPEN, LIST, CREATE, UNIX, IDENTITY, OTHER, ITEMS };

/* Runs the probes, as the agent 1000 and as root, and reads what they say. */
static void try_all(struct findings *findings, const char *place, const char *number)
{
	char open_item[64], list_item[64], create_item[64];
	char *words[] = {
		(char *)"probe",
		(char *)NUMBER,
		(char *)"1000",
		(char *)"1000",
		[4 + OPEN] = open_item,
		[4 + LIST] = list_item,
		[4 + CREATE] = create_item,
		[4 + UNIX] = (char *)"unix:/nonexistent",
		[4 + IDENTITY] = (char *)"identity:",
		[4 + OTHER] = (char *)"opens:/",
		[4 + ITEMS] = NULL,
	};
	int output = memfd_create("answers", MFD_CLOEXEC), status;
	struct stat size;
	char *text;
	pid_t child;

	snprintf(open_item, sizeof(open_item), "open:%s", place);
	snprintf(list_item, sizeof(list_item), "list:%s", place);
	snprintf(create_item, sizeof(create_item), "create:%s/new", place);
	child = fork();
	if (child == 0) {
		dup2(output, STDOUT_FILENO);
		_exit(probe_main(4 + ITEMS, words));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(fstat(output, &size), 0);
	text = calloc(1, (size_t)size.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(output, text, (size_t)size.st_size, 0), size.st_size);
	close(output);
	assert_int_equal(findings_read(findings, ITEMS, number, text, (size_t)size.st_size), 0);
}

static void expect(const struct findings *findings, enum findings_role role, unsigned int item,
		   long result)
{
	const struct finding *finding = findings_of(findings, role, item);

	assert_true(finding->told);
	assert_int_equal(finding->result, result);
}

static void test_answers_are_read(void **state)
{
	char place[] = "/tmp/mvagent-probe-XXXXXX", path[64];
	struct findings findings;
	const struct finding *list;

	(void)state;
	if (geteuid() != 0)
		skip();                  /* init is root, and becomes the agent */
	assert_non_null(mkdtemp(place)); /* root's alone */
	snprintf(path, sizeof(path), "%s/%s", place, ODD);
	assert_int_equal(mkdir(path, 0700), 0);
	try_all(&findings, place, NUMBER);
	assert_true(findings.complete[FINDINGS_AGENT] && findings.complete[FINDINGS_ROOT]);
	expect(&findings, FINDINGS_AGENT, OPEN, -EACCES);
	expect(&findings, FINDINGS_AGENT, LIST, -EACCES);
	expect(&findings, FINDINGS_AGENT, CREATE, -EACCES);
	expect(&findings, FINDINGS_ROOT, OPEN, 0);
	assert_true(findings_of(&findings, FINDINGS_ROOT, OPEN)->length > 0);
	expect(&findings, FINDINGS_ROOT, LIST, 1);
	list = findings_of(&findings, FINDINGS_ROOT, LIST);
	assert_int_equal(list->length, sizeof(ODD));
	assert_string_equal(list->data, ODD);
	expect(&findings, FINDINGS_ROOT, CREATE, 0);
	assert_string_equal(findings_of(&findings, FINDINGS_AGENT, IDENTITY)->data, "1000:1000");
	assert_string_equal(findings_of(&findings, FINDINGS_ROOT, IDENTITY)->data, "0:0");
	for (int role = 0; role < FINDINGS_ROLES; role++) {
		expect(&findings, (enum findings_role)role, UNIX, -ENOENT);
		expect(&findings, (enum findings_role)role, OTHER, -ENOSYS);
	}
	assert_true(findings_contain(&findings, ODD, strlen(ODD)));
	findings_destroy(&findings);
	try_all(&findings, place, "0012"); /* an account of another run is none */
	assert_false(findings.complete[FINDINGS_AGENT] || findings.complete[FINDINGS_ROOT]);
	findings_destroy(&findings);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(place), 0); /* what was created is gone again */
}

/* What there is no room for is left out. */
static void test_room(void **state)
{
	static char data[PROBE_DATA_BYTES + 1];
	struct probe_answer answer = {.data = data};
	char bytes[1000];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	data[PROBE_DATA_BYTES] = 'y';
	for (size_t i = 0; i < PROBE_DATA_BYTES / sizeof(bytes) + 2; i++)
		probe_add(&answer, bytes, sizeof(bytes));
	assert_int_equal(answer.length, PROBE_DATA_BYTES);
	assert_int_equal(data[PROBE_DATA_BYTES - 1], 'x');
	assert_int_equal(data[PROBE_DATA_BYTES], 'y');
}

/* What this process's environment comes to: 0 it is told, 1 it is too large to be told whole. */
static int try_environment(void)
{
	static char data[PROBE_DATA_BYTES];
	struct probe_answer answer = {.data = data};

	for (const struct probe_kind *kind = probe_file_kinds; kind->name; kind++) {
		if (strcmp(kind->name, "environ") == 0)
			kind->try("", &answer);
	}
	if (answer.result == -EMSGSIZE)
		return 1;
	return answer.result > 0 && (size_t)answer.result == answer.length ? 0 : 2;
}

/* One that has no room is not told as if it were whole. The kernel has it from execve(2). */
static void test_environment(void **state)
{
	(void)state;
	for (int large = 0; large < 2; large++) {
		char *words[] = {(char *)"test", (char *)"environment", NULL};
		char *variables[] = {calloc(1, PROBE_DATA_BYTES + 2), NULL};
		int status;
		pid_t child;

		assert_non_null(variables[0]);
		memset(variables[0], 'x', large ? PROBE_DATA_BYTES + 1 : 100);
		variables[0][1] = '=';
		child = fork();
		if (child == 0) {
			execve("/proc/self/exe", words, variables);
			_exit(3);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, large << 8);
		free(variables[0]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_are_read),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_environment),
	};

	if (argc == 2 && strcmp(argv[1], "environment") == 0)
		return try_environment();
	return cmocka_run_group_tests_name("guest probe", tests, NULL, NULL);
}
