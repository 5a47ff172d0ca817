/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about records, run as a user would: what they print, and their exit statuses. */
#include "tests/unit/record_fixture.h"

#include <errno.h>
#include <pty.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "vmm/cli/record_commands.h"
#include "vmm/cli/record_lines.h"
#include "vmm/cli/review_commands.h"
#include "vmm/cli/run_record.h"
#include "vmm/record/store.h"

#define NAME "20261130-010203-abcd"

struct fixture {
	char home[32]; /* the state directory */
	int records_fd;
	struct record_key key;
	char output[65536];
	char errors[8192];
	int status;
};

/* A record with a change of a file whose name is not harmless, ended or not. */
static void make_record(struct fixture *f, const char *run, bool ended)
{
	cJSON *start = cJSON_CreateObject(), *policy = cJSON_AddObjectToObject(start, "policy");
	cJSON *share = cJSON_CreateObject(), *change = cJSON_CreateObject(), *end;
	char name[RECORD_NAME_BYTES];
	struct record *record;

	snprintf(name, sizeof(name), "%s" RECORD_SUFFIX, run);
	assert_int_equal(record_create(&record, f->records_fd, name), 0);
	cJSON_AddItemToObject(start, "command", cJSON_Parse("[\"make\",\"a%0Ab\"]"));
	cJSON_AddItemToObject(start, "command_line",
			      cJSON_Parse("[\"run\",\"--\",\"make\",\"\",\"it's\"]"));
	cJSON_AddStringToObject(share, "host", "/home/x/repo");
	cJSON_AddItemToArray(cJSON_AddArrayToObject(policy, "shares"), share);
	record_event(record, RECORD_START, start);
	share = record_detail("share", "/home/x/repo");
	cJSON_AddNumberToObject(share, "hidden", 3);
	cJSON_AddNumberToObject(share, "protected", 2);
	record_event(record, RECORD_SHARE, share);
	cJSON_AddStringToObject(change, "change", "created");
	cJSON_AddStringToObject(change, "path", "evil%1B]0;title%07");
	record_event(record, RECORD_CHANGE, change);
	if (!ended) {
		record_abandon(record);
		return;
	}
	end = cJSON_CreateObject();
	cJSON_AddStringToObject(end, "outcome", "exited");
	cJSON_AddNumberToObject(end, "exit_status", 3);
	record_event(record, RECORD_END, end);
	assert_int_equal(record_finish(record, &f->key), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[PATH_MAX];
	int FD_CLEANUP fd = -1;

	strcpy(f->home, "/tmp/cli-record-XXXXXX");
	assert_non_null(mkdtemp(f->home));
	setenv("XDG_STATE_HOME", f->home, 1);
	setenv("XDG_CACHE_HOME", f->home, 1);
	f->records_fd = record_store_open(NULL, true, path);
	assert_true(f->records_fd >= 0);
	fd = openat(f->records_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(record_key_open(&f->key, fd, RECORD_KEY_NAME, "key"), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[64];

	fd_close(&f->records_fd);
	snprintf(command, sizeof(command), "rm -r %s", f->home);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void take(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	assert_true(length >= 0);
	text[length] = '\0';
}

/* Runs a command with up to six words, the last one NULL. */
static void run(struct fixture *f, int (*command)(int, char **), ...)
{
	int FD_CLEANUP output = memfd_create("output", MFD_CLOEXEC);
	int FD_CLEANUP errors = memfd_create("errors", MFD_CLOEXEC);
	char *words[8];
	int count = 0;
	va_list arguments;
	pid_t child;

	va_start(arguments, command);
	while ((words[count] = va_arg(arguments, char *)))
		assert_true(++count < 8);
	va_end(arguments);
	child = fork();
	if (child == 0) {
		dup2(output, STDOUT_FILENO);
		dup2(errors, STDERR_FILENO);
		count = command(count, words);
		fflush(stdout);
		_exit(count);
	}
	assert_int_equal(waitpid(child, &f->status, 0), child);
	f->status = WEXITSTATUS(f->status);
	take(output, f->output, sizeof(f->output));
	take(errors, f->errors, sizeof(f->errors));
}

static void expect(const struct fixture *f, int status, const char *output, const char *error)
{
	if (f->status != status || (output && !strstr(f->output, output)) ||
	    (error && !strstr(f->errors, error)))
		fail_msg("status %d instead of %d, or without '%s' and '%s':\n%s\n%s", f->status,
			 status, output ? output : "", error ? error : "", f->output, f->errors);
}

static void test_key_is_private(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	uint8_t public_key[KEY_BYTES];
	struct stat status;
	struct record_key key;

	snprintf(path, sizeof(path), "%s/mvagent/record.key", f->home);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(fstat(f->records_fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	/* Its public half is made again, should it be gone, and is another key's no longer. */
	snprintf(path, sizeof(path), "%s/mvagent/record.key.pub", f->home);
	assert_int_equal(record_key_read_public(path, public_key), 0);
	assert_memory_equal(public_key, f->key.public_key, KEY_BYTES);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(record_key_open(&key, f->records_fd, "../record.key", "it"), 0);
	assert_memory_equal(key.public_key, f->key.public_key, KEY_BYTES);
	assert_int_equal(record_key_read_public(path, public_key), 0);
	assert_memory_equal(public_key, key.public_key, KEY_BYTES);
	assert_int_equal(unlinkat(f->records_fd, "../record.key", 0), 0);
	assert_int_equal(record_key_open(&key, f->records_fd, "../record.key", "it"), 0);
	assert_memory_not_equal(key.public_key, f->key.public_key, KEY_BYTES);
	assert_int_equal(record_key_read_public(path, public_key), 0);
	assert_memory_equal(public_key, key.public_key, KEY_BYTES);
	/* One that others can read is none. */
	snprintf(path, sizeof(path), "%s/mvagent/record.key", f->home);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(record_key_open(&key, f->records_fd, "../record.key", "it"), -EPERM);
}

static void test_show(void **state)
{
	struct fixture *f = *state;

	make_record(f, NAME, true);
	run(f, record_command, "record", "show", NULL);
	expect(f, 0, "mvagent run -- make '' 'it'\\''s'\n", NULL);
	expect(f, 0, "created", NULL);
	expect(f, 0, "/home/x/repo: 3 names hidden, 2 protected\n", NULL);
	assert_null(strchr(f->output, '\x1b'));
	assert_null(strchr(f->output, '\a'));
	run(f, record_command, "record", "show", NAME, "--json", NULL);
	expect(f, 0, "{\"command\":[\"make\",\"a%0Ab\"]", NULL);
	run(f, record_command, "record", "show", "20261130-010203-0000", NULL);
	expect(f, 125, NULL, "there is no such record");
	run(f, record_command, "record", "show", "a", "b", NULL);
	expect(f, 125, NULL, "unexpected argument 'b'");
	run(f, record_command, "record", "frame", NULL);
	expect(f, 125, NULL, "it is show or verify");
}

/* --record-key: another, made where it is not there. */
static void test_another_key(void **state)
{
	struct fixture *f = *state;
	char path[64], resolved[PATH_MAX];
	struct record_key made, read;
	struct stat status;

	snprintf(path, sizeof(path), "%s/my.key", f->home);
	assert_int_equal(run_record_open_key(&made, path, resolved), 0);
	assert_string_equal(resolved, path);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_memory_not_equal(made.public_key, f->key.public_key, KEY_BYTES);
	assert_int_equal(run_record_open_key(&read, path, resolved), 0);
	assert_memory_equal(made.seed, read.seed, KEY_BYTES);
	assert_int_equal(run_record_open_key(&read, "/nowhere/my.key", resolved), -ENOENT);
}

/* The lines as they are, for a program; on a terminal they do not act. */
static void test_lines_on_a_terminal(void **state)
{
	static const char line[] = "{\"event\":\"x\",\"path\":\"a\xc2\x9b"
				   "2J\x1b[2Jb\"}\n";
	struct fixture *f = *state;
	char path[64], seen[256] = "";
	int FD_CLEANUP fd = -1, FD_CLEANUP master = -1, terminal, status;
	pid_t child;

	snprintf(path, sizeof(path), "%s/evil", f->home);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_full(fd, line, strlen(line)), 0);
	run(f, record_command, "record", "show", path, "--json", NULL);
	assert_string_equal(f->output, line);
	assert_int_equal(openpty(&master, &terminal, NULL, NULL, NULL), 0);
	child = fork();
	if (child == 0) {
		char *words[] = {(char *)"record", (char *)"show", path, (char *)"--json", NULL};

		dup2(terminal, STDOUT_FILENO);
		_exit(record_command(4, words));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(read(master, seen, sizeof(seen) - 1) > 0);
	close(terminal);
	assert_non_null(strstr(seen, "a??2J?[2Jb"));
}

/* A record may be anybody's: no text in it acts on the terminal, or looks like a line of ours. */
static void test_show_of_others(void **state)
{
	static const char lines[] =
		"{\"event\":\"x\\u001b[2J\",\"time\":\"2026-01-01T\\u001b[2J\",\"path\":\"a%0Ab%"
		"1B\"}\n"
		"{\"event\":\"start\",\"host\":{\"kvm\":\"\\u001b\\nforged\"},\"policy_sha256\":"
		"\"\\u001b\","
		"\"policy\":{\"shares\":[{\"host\":\"/a\",\"mode\":\"\\u001b\"}]}}\n"
		"{\"event\":\"walls\",\"processes\":[{\"process\":\"\\u001b\\nforged\"}]}\n"
		"{\"event\":\"hashes\",\"a\\u001b\":\"\\u001b\\nforged\"}\n"
		"{\"event\":\"change\",\"change\":\"\\u001b\",\"after_sha256\":\"\\nforged\"}\n"
		"{\"event\":\"end\",\"outcome\":\"\\u001b\",\"counts\":"
		"{\"\\u001b\\nforged\":{\"seen\":2,\"written\":1}}}\n"
		"{\"event\":\"signature\",\"key\":\"\\u001b\\nforged\"}\n";
	struct fixture *f = *state;
	char path[64];
	int FD_CLEANUP fd = -1;

	snprintf(path, sizeof(path), "%s/evil", f->home);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_full(fd, lines, strlen(lines)), 0);
	run(f, record_command, "record", "show", path, NULL);
	expect(f, 0, "a b?", NULL);
	expect(f, 0, "of 2 events '? forged' 1 are written out", NULL);
	assert_null(strchr(f->output, '\x1b'));
	assert_null(strstr(f->output, "\nforged"));
}

static void test_show_without_any(void **state)
{
	struct fixture *f = *state;

	run(f, record_command, "record", "show", NULL);
	expect(f, 125, NULL, "no run is on record");
	run(f, runs_command, "runs", NULL);
	expect(f, 0, "", NULL);
	assert_string_equal(f->output, "");
}

static void test_verify(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], key[PATH_MAX];
	int FD_CLEANUP fd = -1;

	make_record(f, NAME, true);
	snprintf(path, sizeof(path), "%s/mvagent/records/" NAME RECORD_SUFFIX, f->home);
	snprintf(key, sizeof(key), "%s/mvagent/record.key.pub", f->home);
	run(f, record_command, "record", "verify", NAME, NULL);
	expect(f, 0, "5 lines, each as it was written, and signed by", NULL);
	run(f, record_command, "record", "verify", path, "--key", key, NULL);
	expect(f, 0, "5 lines", NULL);
	run(f, record_command, "record", "verify", path, "--key", path, NULL);
	expect(f, 125, NULL, "is not a public key");
	run(f, record_command, "record", "verify", path, "--key", "/nowhere", NULL);
	expect(f, 125, NULL, "there is no such file");
	run(f, record_command, "record", "verify", NULL);
	expect(f, 125, NULL, "needs the record");
	setenv("XDG_STATE_HOME", "/nowhere", 1);
	run(f, record_command, "record", "verify", path, NULL);
	expect(f, 125, NULL, "you have no key of your own");
	setenv("XDG_STATE_HOME", f->home, 1);

	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "X", 1, 20), 1);
	run(f, record_command, "record", "verify", path, "--json", NULL);
	expect(f, EXIT_RECORD_ALTERED, "{\"verdict\":\"altered\",\"lines\":5,\"line\":1,", NULL);
}

static void test_verify_cut(void **state)
{
	struct fixture *f = *state;

	make_record(f, NAME, false);
	run(f, record_command, "record", "verify", NAME, NULL);
	expect(f, EXIT_RECORD_CUT, "cut after line 3", NULL);
	run(f, record_command, "record", "show", NAME, NULL);
	expect(f, 0, "created", "was cut");
}

static void test_runs(void **state)
{
	struct fixture *f = *state;
	int FD_CLEANUP fd = -1;

	make_record(f, "20261130-010203-0002", true);
	make_record(f, "20261129-010203-0001", false);
	make_record(f, "20261130-010203-0003", false);
	fd = openat(f->records_fd, "20261130-010203-0003" RECORD_SUFFIX, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	run(f, runs_command, "runs", NULL);
	expect(f, 0, "20261129-010203-0001  ", NULL);
	expect(f, 0, "cut ", NULL);
	expect(f, 0, "exited, status 3", NULL);
	expect(f, 0, "running ", NULL);
	expect(f, 0, "/home/x/repo  -- make 'a b'\n", NULL);
	assert_true(strstr(f->output, "-0001") < strstr(f->output, "-0002"));
	run(f, runs_command, "runs", "--json", NULL);
	expect(f, 0, "\"state\":\t\"ended\"", NULL);
}

static void test_prune(void **state)
{
	struct fixture *f = *state;
	int FD_CLEANUP fd = -1;

	make_record(f, "20200101-000000-0001", true);
	make_record(f, "20200101-000000-0002", true);
	make_record(f, "20990101-000000-0003", true);
	fd = openat(f->records_fd, "20200101-000000-0001" RECORD_SUFFIX, O_RDONLY | O_CLOEXEC);
	run(f, runs_command, "runs", "prune", NULL);
	expect(f, 125, NULL, "needs --keep N or --older AGE");
	run(f, runs_command, "runs", "prune", "--older", "0", NULL);
	expect(f, 125, NULL, "--older 0");
	/* One that goes on is not touched. */
	assert_int_equal(flock(fd, LOCK_EX), 0);
	run(f, runs_command, "runs", "prune", "--older", "30d", NULL);
	expect(f, 0, "1 of 3 runs removed", NULL);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	run(f, runs_command, "runs", "prune", "--keep", "1", NULL);
	expect(f, 0, "1 of 2 runs removed", NULL);
	run(f, runs_command, "runs", NULL);
	expect(f, 0, "20990101-000000-0003", NULL);
}

/* A record that began in each case so long ago stays under one age, and goes under the next. */
static void test_prune_by_age(void **state)
{
	static const struct {
		long seconds;
		const char *stays, *goes;
	} cases[] = {
		{30, "1m", "5s"},     {90, "2m", "1m"},   {5400, "2h", "1h"},
		{129600, "2d", "1d"}, {129600, "2", "1"}, {907200, "2w", "1w"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const time_t begin = time(NULL) - cases[i].seconds;
		char name[REVIEW_RUN_NAME_BYTES];
		struct tm parts;

		gmtime_r(&begin, &parts);
		strftime(name, sizeof(name), "%Y%m%d-%H%M%S-0001", &parts);
		make_record(f, name, true);
		run(f, runs_command, "runs", "prune", "--older", cases[i].stays, NULL);
		expect(f, 0, "0 of 1 runs removed", NULL);
		run(f, runs_command, "runs", "prune", "--older", cases[i].goes, NULL);
		expect(f, 0, "1 of 1 runs removed", NULL);
	}
}

/* log -f goes on as long as the record is held, and shows what comes. */
static void test_follow(void **state)
{
	struct fixture *f = *state;
	static const struct timespec pause = {.tv_nsec = 400000000};
	struct record *record;
	pid_t child;

	assert_int_equal(record_create(&record, f->records_fd, NAME RECORD_SUFFIX), 0);
	record_event(record, RECORD_START, record_detail("run", NAME));
	child = fork();
	if (child == 0) {
		fd_close(&f->records_fd);
		nanosleep(&pause, NULL);
		record_event(record, RECORD_FINDING, record_detail("finding", "something later"));
		record_finish(record, &f->key);
		_exit(0);
	}
	record_abandon(record);
	run(f, log_command, "log", "-f", NAME, NULL);
	expect(f, 0, "something later", NULL);
	expect(f, 0, "signature", NULL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void free_hidden(struct shared_directory *directory)
{
	while (directory->hidden_count)
		free(directory->hidden[--directory->hidden_count]);
}

/* Share and record in each other. */
static void test_hidden_from_shares(void **state)
{
	struct fixture *f = *state;
	struct run_options options = {0};
	struct run_shares shares = {.count = 2};
	struct run_record record;
	char inside[PATH_MAX];

	snprintf(inside, sizeof(inside), "%s/mvagent/records", f->home);
	shares.directories[0].host_path = f->home;
	shares.directories[1].host_path = (char *)"/usr";
	run_record_init(&record);
	assert_int_equal(run_record_prepare(&record, &options, &shares), 0);
	assert_int_equal(shares.directories[0].hidden_count, 3);
	assert_string_equal(shares.directories[0].hidden[0], "/mvagent/hashes");
	assert_string_equal(shares.directories[0].hidden[1], "/mvagent/records");
	assert_string_equal(shares.directories[0].hidden[2], "/mvagent/record.key");
	assert_int_equal(shares.directories[1].hidden_count, 0);
	run_record_destroy(&record);

	shares.directories[1].host_path = inside;
	free_hidden(&shares.directories[0]);
	run_record_init(&record);
	assert_int_equal(run_record_prepare(&record, &options, &shares), -EINVAL);
	run_record_destroy(&record);
	free_hidden(&shares.directories[0]);
}

/* The last word of the command line, on record. */
static void expect_last_word(const char *command_line, const char *command, const char *wanted)
{
	char line[128], own[128], *arguments[16] = {NULL}, *words[16] = {NULL};
	struct run_options options = {.command = words};
	struct run_shares shares = {0};
	const struct run_record_start start = {
		.options = &options, .shares = &shares, .arguments = arguments};
	cJSON *first, *list;
	size_t count = 0, word_count = 0;

	snprintf(line, sizeof(line), "%s", command_line);
	snprintf(own, sizeof(own), "%s", command);
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		arguments[count++] = word;
	for (char *word = strtok(own, " "); word; word = strtok(NULL, " "))
		words[word_count++] = word;
	first = record_line_start(NAME, &start);
	list = cJSON_GetObjectItem(first, "command_line");
	assert_int_equal(cJSON_GetArraySize(list), count);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(list, (int)count - 1)), wanted);
	cJSON_Delete(first);
}

/* Of mvagent's own options it is known which are no secrets; of a command's of the same names it is
 * not. */
static void test_what_is_masked(void **state)
{
	(void)state;
	expect_last_word("run -- agent --auth-clock hunter22", "agent --auth-clock hunter22",
			 "***");
	expect_last_word("run --secret KEY@api.test -- agent", "agent", "agent");
	expect_last_word("review --auth-clock 48h", "probe", "48h"); /* mvagent's own command */
	expect_last_word("review --secret KEY@api.test", "probe", "KEY@api.test");
	expect_last_word("run --root image --secret=KEY@api.test", "sh -c x",
			 "--secret=KEY@api.test");
	expect_last_word("review --secret-file TOKEN=~/.token@api.test", "probe",
			 "TOKEN=~/.token@api.test");
	expect_last_word("review --secret-file=TOKEN=ghp_0123456789abcdefghij@api.test", "probe",
			 "--secret-file=TOKEN=***@api.test");
	expect_last_word("review --secret-cmd TOKEN=get@api.test", "probe", "***");
	expect_last_word("run --root image --env A=hunter22", "sh -c x", "A=***");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_key_is_private, setup, teardown),
		cmocka_unit_test_setup_teardown(test_show, setup, teardown),
		cmocka_unit_test_setup_teardown(test_show_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_on_a_terminal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_show_without_any, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verify, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verify_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prune, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prune_by_age, setup, teardown),
		cmocka_unit_test_setup_teardown(test_follow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hidden_from_shares, setup, teardown),
		cmocka_unit_test(test_what_is_masked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
