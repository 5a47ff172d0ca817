/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended: its exit status, and the JSON that --json writes to whatever file it names. */
#include "tests/unit/cli_capture.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/cli/report.h"

/* A directory for the test's files, which is also the working directory. */
static char scratch[] = "/tmp/cli-outcome-XXXXXX";

static int make_scratch(void **state)
{
	(void)state;
	umask(022);
	return mkdtemp(scratch) && chdir(scratch) == 0 ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return chdir("/") == 0 ? system(command) : -1;
}

static unsigned int count_files(void)
{
	DIR *directory = opendir(".");
	unsigned int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2;
}

/* What is in the file, parsed; one line and nothing after it. */
static cJSON *read_json(const char *path)
{
	static char text[16384];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;
	cJSON *root;

	assert_true(fd >= 0);
	length = read(fd, text, sizeof(text) - 1);
	fd_close(&fd);
	assert_true(length > 1);
	text[length] = '\0';
	assert_ptr_equal(strchr(text, '\n'), text + length - 1);
	root = cJSON_Parse(text);
	assert_non_null(root);
	return root;
}

static const char *text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static double number_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	assert_true(cJSON_IsNumber(item));
	return item->valuedouble;
}

static bool is_null(const cJSON *object, const char *name)
{
	return cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, name));
}

static int write_report(const struct report *report, const char *path)
{
	struct report_file file;
	int error = report_file_open(&file, "--json", path);

	error = error ? error : report_write_json(report, &file);
	report_file_close(&file);
	return error;
}

static void test_exit_statuses(void **state)
{
	static const struct {
		enum outcome_kind kind;
		int value, status;
		const char *name;
	} cases[] = {
		{OUTCOME_EXITED, 0, 0, "exited"},
		{OUTCOME_EXITED, 255, 255, "exited"},
		{OUTCOME_EXITED, 125, 125, "exited"},
		{OUTCOME_SIGNALED, 9, 137, "signaled"},
		{OUTCOME_INTERRUPTED, 2, 130, "interrupted"},
		{OUTCOME_TIME_LIMIT, 0, 124, "time-limit"},
		{OUTCOME_NOT_EXECUTABLE, 0, 126, "not-executable"},
		{OUTCOME_NOT_FOUND, 0, 127, "not-found"},
		{OUTCOME_SETUP_FAILED, 0, 125, "setup-failed"},
		{OUTCOME_GUEST_FAILED, 0, 125, "guest-failed"},
		{OUTCOME_MACHINE_FAILED, 0, 125, "machine-failed"},
		{OUTCOME_OUTPUT_LOST, 0, 125, "output-lost"},
		{OUTCOME_NONE, 0, 125, "none"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct outcome outcome = {.kind = cases[i].kind, .value = cases[i].value};

		assert_int_equal(outcome_exit_status(&outcome), cases[i].status);
		assert_string_equal(outcome_name(cases[i].kind), cases[i].name);
	}
}

/* The first word counts: what follows is its consequence. */
static void test_first_outcome_stays(void **state)
{
	struct outcome outcome = {0};

	(void)state;
	outcome_give(&outcome, OUTCOME_MACHINE_FAILED, 0, "%s ended", "mvagent-fs");
	outcome_give(&outcome, OUTCOME_EXITED, 3, "%s", "");
	assert_int_equal(outcome.kind, OUTCOME_MACHINE_FAILED);
	assert_string_equal(outcome.sentence, "mvagent-fs ended");
}

/* What mvagent-vmm told of frames: good ones are there in order, others are not. */
static void add_frames(struct report *report)
{
	struct frame_summary frame = {.frame_class = FRAME_NAME,
				      .version = 4,
				      .protocol = 17,
				      .ethertype = 0x0800,
				      .source_port = 4000,
				      .destination_port = 53,
				      .source = {10, 0, 0, 2},
				      .destination = {10, 0, 0, 1},
				      .name = "example.\x1b.org"};
	char text[NETWORK_SENTENCE_BYTES];

	network_report_add_frame(&report->network, &frame, sizeof(frame) - 1);
	network_report_add_frame(&report->network, &frame, sizeof(frame));
	network_report_describe(&report->network.frames[0], text);
	assert_string_equal(text, "dns question to 10.0.0.1 for example.?.org");
	frame.frame_class = FRAME_CLASSES;
	network_report_add_frame(&report->network, &frame, sizeof(frame));
	frame.frame_class = FRAME_OTHER;
	frame.version = 0;
	frame.source_port = frame.destination_port = 0;
	memset(frame.name, 0, sizeof(frame.name));
	for (unsigned int i = 0; i < 2 * NETWORK_REPORT_FRAMES; i++)
		network_report_add_frame(&report->network, &frame, sizeof(frame));
	assert_int_equal(report->network.frame_count, NETWORK_REPORT_FRAMES);
	report->network.frame_count = 2;
}

static struct report example_report(void)
{
	struct report report = {
		.machine_ended = true,
		.machine_reason = MONITOR_REASON_STOPPED,
		.machine_text = "stopped",
		.has_boot_counters = true,
		.boot_counters = {.exits = 50, .port_io = 9, .mmio_reads = 1, .mmio_writes = 40},
		.counters = {.exits = 90,
			     .frames_dropped = 5,
			     .bytes_dropped = 300,
			     .frames_untold = 7},
		.moments = {1000000, 3000000, 13000000, 14500000, 20000000, 21000000},
	};

	add_frames(&report);
	outcome_give(&report.outcome, OUTCOME_EXITED, 125, "%s", "");
	return report;
}

static void assert_network(const cJSON *network)
{
	const cJSON *frames = cJSON_GetObjectItemCaseSensitive(network, "first_frames");
	const cJSON *first = cJSON_GetArrayItem(frames, 0), *second = cJSON_GetArrayItem(frames, 1);

	assert_int_equal(number_of(network, "frames_dropped"), 5);
	assert_int_equal(number_of(network, "frames_untold"), 7);
	assert_int_equal(cJSON_GetArraySize(frames), 2);
	assert_string_equal(text_of(first, "kind"), "dns");
	assert_string_equal(text_of(first, "ethertype"), "0x0800");
	assert_string_equal(text_of(first, "source"), "10.0.0.2");
	assert_string_equal(text_of(first, "destination"), "10.0.0.1");
	assert_int_equal(number_of(first, "destination_port"), 53);
	assert_string_equal(text_of(first, "name"), "example.?.org");
	assert_string_equal(text_of(second, "kind"), "other");
	assert_null(cJSON_GetObjectItemCaseSensitive(second, "destination"));
	assert_null(cJSON_GetObjectItemCaseSensitive(second, "name"));
}

static void test_json_of_a_run(void **state)
{
	struct report report = example_report();
	const cJSON *machine, *part, *times;
	cJSON *root;

	(void)state;
	assert_int_equal(write_report(&report, "run.json"), 0);
	root = read_json("run.json");
	assert_string_equal(text_of(root, "outcome"), "exited");
	assert_int_equal(number_of(root, "exit_status"), 125);
	/* The command's own 125 is told apart from mvagent's. */
	assert_int_equal(number_of(root, "command_status"), 125);
	assert_true(is_null(root, "command_signal") && is_null(root, "message"));
	machine = cJSON_GetObjectItemCaseSensitive(root, "machine");
	assert_string_equal(text_of(machine, "end"), "stopped");
	part = cJSON_GetObjectItemCaseSensitive(machine, "until_start");
	assert_int_equal(number_of(part, "exits"), 50);
	assert_int_equal(number_of(part, "port_io"), 9);
	assert_int_equal(number_of(part, "mmio_reads"), 1);
	assert_int_equal(number_of(part, "mmio_writes"), 40);
	part = cJSON_GetObjectItemCaseSensitive(machine, "total");
	assert_int_equal(number_of(part, "exits"), 90);
	assert_int_equal(number_of(part, "frames_dropped"), 5);
	assert_int_equal(number_of(part, "bytes_dropped"), 300);
	assert_network(cJSON_GetObjectItemCaseSensitive(root, "network"));
	times = cJSON_GetObjectItemCaseSensitive(root, "milliseconds");
	assert_true(number_of(times, "prepare") == 2 && number_of(times, "boot") == 10 &&
		    number_of(times, "session") == 1.5 && number_of(times, "command") == 5.5 &&
		    number_of(times, "leave") == 1 && number_of(times, "total") == 20);
	cJSON_Delete(root);
}

/* A run that failed early: what was not reached is null, not zero. */
static void test_json_of_a_failure(void **state)
{
	struct report report = {.moments = {[MOMENT_BEGIN] = 5, [MOMENT_END] = 1000005}};
	const cJSON *machine, *times;
	cJSON *root;

	(void)state;
	outcome_give(&report.outcome, OUTCOME_SETUP_FAILED, 0, "%s", "no \"disk\"");
	assert_int_equal(write_report(&report, "failure.json"), 0);
	root = read_json("failure.json");
	assert_string_equal(text_of(root, "outcome"), "setup-failed");
	assert_int_equal(number_of(root, "exit_status"), 125);
	assert_true(is_null(root, "command_status") && is_null(root, "command_signal"));
	assert_string_equal(text_of(root, "message"), "no \"disk\"");
	machine = cJSON_GetObjectItemCaseSensitive(root, "machine");
	assert_true(is_null(machine, "end") && is_null(machine, "text"));
	assert_false(cJSON_HasObjectItem(machine, "until_start"));
	times = cJSON_GetObjectItemCaseSensitive(root, "milliseconds");
	assert_true(is_null(times, "prepare") && is_null(times, "command"));
	assert_true(number_of(times, "total") == 1);
	cJSON_Delete(root);
}

/* A command's name, and a guest's words, can be any bytes; JSON cannot. */
/* --verbose: a phase that was not reached is not named. */
static void test_phases_that_were_reached(void **state)
{
	struct report report = {
		.moments = {
			[MOMENT_BEGIN] = 1, [MOMENT_RUNNING] = 2000001, [MOMENT_END] = 3000001}};
	struct capture capture;

	(void)state;
	log_set_level(LOG_VERBOSE);
	capture_begin(&capture);
	report_log(&report);
	capture_end(&capture);
	log_set_level(LOG_NORMAL);
	assert_non_null(strstr(capture.text, ": prepare 2.0, total 3.0\n"));
	assert_null(strstr(capture.text, "-1"));
}

static void test_json_is_utf8(void **state)
{
	struct report report = {.machine_ended = true, .machine_text = "k\xc3"};
	cJSON *root;

	(void)state;
	outcome_give(&report.outcome, OUTCOME_NOT_FOUND, 0, "%s", "K\xc3\xa4se\xff\x1b[2J");
	assert_int_equal(write_report(&report, "bytes.json"), 0);
	root = read_json("bytes.json");
	assert_string_equal(text_of(root, "message"), "K\xc3\xa4se\xef\xbf\xbd\x1b[2J");
	assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(root, "machine"), "text"),
			    "k\xef\xbf\xbd");
	cJSON_Delete(root);
}

/* Who reads the file while it is replaced sees one whole report or another. */
static void test_json_is_replaced_whole(void **state)
{
	struct report report = example_report();
	unsigned int before;
	int status;
	pid_t reader;

	(void)state;
	assert_int_equal(write_report(&report, "whole.json"), 0);
	before = count_files();
	reader = fork();
	assert_true(reader >= 0);
	if (reader == 0) {
		for (int i = 0; i < 2000; i++)
			cJSON_Delete(read_json("whole.json"));
		_exit(0);
	}
	while (waitpid(reader, &status, WNOHANG) == 0)
		assert_int_equal(write_report(&report, "whole.json"), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(count_files(), before);
}

static void test_json_file_mode(void **state)
{
	struct report report = example_report();
	struct stat status;

	(void)state;
	umask(027);
	assert_int_equal(write_report(&report, "mode.json"), 0);
	umask(022);
	assert_int_equal(stat("mode.json", &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
}

/* A link that is there from the start is followed; one that a guest puts in the way is not. */
static void test_json_and_links(void **state)
{
	struct report report = example_report();
	struct report_file file;
	struct stat status;

	(void)state;
	assert_int_equal(mkdir("real", 0755), 0);
	assert_int_equal(write_report(&report, "real/target"), 0);
	assert_int_equal(truncate("real/target", 0), 0);
	assert_int_equal(symlink("real/target", "link.json"), 0);
	assert_int_equal(write_report(&report, "link.json"), 0);
	assert_int_equal(lstat("link.json", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	cJSON_Delete(read_json("real/target"));

	assert_int_equal(mkdir("share", 0755), 0);
	assert_int_equal(mkdir("victim", 0755), 0);
	assert_int_equal(report_file_open(&file, "--json", "share/out.json"), 0);
	assert_int_equal(symlink("../victim/precious", "share/out.json"), 0);
	assert_int_equal(report_write_json(&report, &file), 0);
	report_file_close(&file);
	assert_int_equal(access("victim/precious", F_OK), -1);
	cJSON_Delete(read_json("share/out.json"));

	assert_int_equal(report_file_open(&file, "--json", "share/other.json"), 0);
	assert_int_equal(rename("share", "moved"), 0);
	assert_int_equal(symlink("victim", "share"), 0);
	assert_int_equal(report_write_json(&report, &file), 0);
	report_file_close(&file);
	assert_int_equal(access("victim/other.json", F_OK), -1);
	cJSON_Delete(read_json("moved/other.json"));
}

static void test_json_to_a_pipe(void **state)
{
	struct report report = example_report();
	char name[32], text[4096];
	int pair[2];
	ssize_t length;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", pair[1]);
	assert_int_equal(write_report(&report, name), 0);
	length = read(pair[0], text, sizeof(text));
	assert_true(length > 2);
	assert_int_equal(text[0], '{');
	assert_int_equal(text[length - 1], '\n');
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	assert_int_equal(write_report(&report, "/dev/null"), 0);
}

/* "-", and standard error by its name though it is a regular file: written to, never replaced. */
static void test_json_to_standard_error(void **state)
{
	static const char *const names[] = {"-", "/dev/stderr", "log"};
	struct report report = example_report();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int saved = dup(STDERR_FILENO);
		int fd = open("log", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		struct stat before, after;

		assert_true(saved >= 0 && fd >= 0);
		assert_int_equal(fstat(fd, &before), 0);
		assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
		fd_close(&fd);
		assert_int_equal(write_report(&report, names[i]), 0);
		dup2(saved, STDERR_FILENO);
		fd_close(&saved);
		assert_int_equal(stat("log", &after), 0);
		assert_int_equal(after.st_ino, before.st_ino);
		cJSON_Delete(read_json("log"));
	}
}

static void test_json_to_nowhere(void **state)
{
	static const struct {
		const char *path, *reason;
	} cases[] = {
		{"absent/out.json", "No such file"},
		{"log/out.json", "Not a directory"},
		{"", "No such file"},
		{"real", "Is a directory"},
		{"absent/", "No such file"},
		{"real/", "Is a directory"},
	};
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report_file file;
		int error;

		capture_begin(&capture);
		error = report_file_open(&file, "--json", cases[i].path);
		capture_end(&capture);
		assert_true(error < 0);
		assert_int_equal(file.fd, -1);
		assert_int_equal(file.directory_fd, -1);
		capture_expect_sentence(&capture, "--json");
		capture_expect_sentence(&capture, cases[i].path);
		capture_expect_sentence(&capture, cases[i].reason);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_first_outcome_stays),
		cmocka_unit_test(test_json_of_a_run),
		cmocka_unit_test(test_json_of_a_failure),
		cmocka_unit_test(test_phases_that_were_reached),
		cmocka_unit_test(test_json_is_utf8),
		cmocka_unit_test(test_json_is_replaced_whole),
		cmocka_unit_test(test_json_file_mode),
		cmocka_unit_test(test_json_and_links),
		cmocka_unit_test(test_json_to_a_pipe),
		cmocka_unit_test(test_json_to_standard_error),
		cmocka_unit_test(test_json_to_nowhere),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
