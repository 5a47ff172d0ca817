/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/checklist_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/checklist/page.h"
#include "vmm/cli/arguments.h"
#include "vmm/cli/checklist_host.h"
#include "vmm/cli/checklist_options.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/report_file.h"
#include "vmm/cli/run.h"
#include "vmm/cli/run_record.h"
#include "vmm/record/store.h"
#include "vmm/record/verify.h"

/* One review under way. */
struct review {
	struct checklist_options options;
	struct checklist_host host;
	struct findings findings;
	struct checklist_input input;
	struct record_check check;
	struct record_key key;
	cJSON *record;
	char *text; /* of the record */
	size_t length;
	struct report_file html, json, rows; /* found before the guest runs */
};

/* The lines of a record; NULL: no memory. One that is no object is left out: it does not verify. */
static cJSON *parse_record(const char *text, size_t length)
{
	cJSON *lines = cJSON_CreateArray();
	const char *end = text + length, *newline;

	while (lines && (newline = memchr(text, '\n', (size_t)(end - text)))) {
		cJSON *line = cJSON_ParseWithLength(text, (size_t)(newline - text));

		if (cJSON_IsObject(line))
			cJSON_AddItemToArray(lines, line);
		else
			cJSON_Delete(line);
		text = newline + 1;
	}
	return lines;
}

/* Reads the record and says whether it holds. 0 or -errno with the sentence printed. */
static int take_record(struct review *review, int directory_fd, const char *run)
{
	const bool is_path = strchr(run, '/') || access(run, F_OK) == 0;
	bool running;
	int error =
		review->options.from && is_path
			? record_read_file(AT_FDCWD, run, &review->text, &review->length, &running)
			: record_store_read(directory_fd, run, &review->text, &review->length,
					    &running);

	if (review->options.from && (error == -EINVAL || error == -ENOENT || error == -EBADF)) {
		log_error("--from %s: there is no such record; 'mvagent runs' lists what there is",
			  run);
		return error;
	}
	if (error)
		return log_errno(error, "cannot read the record of the run %s", run);
	error = record_verify(&review->check, review->text, review->length, review->key.public_key);
	review->record = error ? NULL : parse_record(review->text, review->length);
	if (!review->record)
		return log_errno(-ENOMEM, "cannot read the record of the run %s", run);
	review->input.record = review->record;
	review->input.record_holds = review->check.verdict == RECORD_WHOLE;
	review->input.record_sentence = review->check.sentence;
	return 0;
}

static int take_answers(struct review *review, int fd)
{
	off_t length = lseek(fd, 0, SEEK_CUR);
	char *text = length < 0 ? NULL : malloc((size_t)length + 1);
	int error = text ? fd_pread_full(fd, text, (size_t)length, 0) : -ENOMEM;

	if (error) {
		free(text);
		return log_errno(error, "cannot read what the guest answered");
	}
	text[length] = '\0';
	error = findings_read(&review->findings, review->host.outside.item_count,
			      review->host.number, text, (size_t)length);
	if (error)
		return log_errno(error, "cannot read what the guest answered");
	review->input.findings = &review->findings;
	review->input.outside = &review->host.outside;
	return 0;
}

/* A file in memory that cannot grow past what a guest may say. fd or -errno. */
static int make_room(void)
{
	int fd = memfd_create("answers", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, LIMIT_CHECKLIST_BYTES) < 0 ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) < 0))
		fd_close(&fd);
	return fd < 0 ? log_errno(-errno, "cannot make room for answers") : fd;
}

/* Runs the guest and takes in what came of it. 0, -errno with the sentence printed, or an exit
 * status above 0. */
static int try_all(struct review *review, int argc, char **argv)
{
	struct run_probe probe = {.number = review->host.number, .items = review->host.texts};
	FD_CLEANUP int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	FD_CLEANUP int answers = make_room();
	FD_CLEANUP int store = -1;
	int status, error;

	if (nothing < 0 || answers < 0)
		return -EIO;
	probe.user_fds[STREAM_STDIN] = probe.user_fds[STREAM_STDERR] = nothing;
	probe.user_fds[STREAM_STDOUT] = answers;
	status = run_probe(&probe, &review->options.run, argc, argv);
	review->host.outside.variables = probe.variables;
	review->host.outside.placeholders = probe.placeholders;
	/* Then its sentence was printed: a signal ended it, the machine failed, or the guest said
	 * more than it may. */
	if (status >= EXIT_TIME_LIMIT || !probe.record_name[0])
		return status ? status : EXIT_MVAGENT;
	error = take_answers(review, answers);
	if (error)
		return error;
	checklist_host_look(&review->host, &review->findings);
	store = open(probe.store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return take_record(review, store, probe.record_name);
}

static int read_run(struct review *review)
{
	char path[PATH_MAX];
	FD_CLEANUP int store = record_store_open(review->options.run.record, false, path);

	if (store < 0 && store != -ENOENT)
		return store;
	return take_record(review, store, review->options.from);
}

static int write_one(const struct report_file *file, char *text, const char *path)
{
	int error = text ? report_file_write(file, text) : -ENOMEM;

	free(text);
	return error ? log_errno(error, "cannot write %s", path) : 0;
}

static int write_all(struct review *review, const cJSON *page)
{
	const struct checklist_options *options = &review->options;
	const bool to_output = options->json && strcmp(options->json, "-") == 0;
	const char *rows = options->rows;
	int error = 0;

	if (to_output) {
		char *text = page_json(page);

		if (!text)
			return log_errno(-ENOMEM, "cannot write the page");
		/* Of a record from elsewhere anything may be in it. */
		if (isatty(STDOUT_FILENO))
			text_make_printable(text, strlen(text));
		fputs(text, stdout);
		free(text);
	} else {
		page_print(page, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
	}
	if (options->json && !to_output)
		error = write_one(&review->json, page_json(page), options->json);
	if (!error && options->html)
		error = write_one(&review->html, page_html(page), options->html);
	if (!error && rows)
		error = write_one(&review->rows,
				  strcmp(rows + strlen(rows) - 4, ".csv") == 0
					  ? page_register_csv(page)
					  : page_register_json(page),
				  rows);
	return error;
}

/* Makes the page, signs and writes it. Returns the exit status. */
static int finish(struct review *review, const char *const *words)
{
	struct timespec now;
	struct tm parts;
	char text[32];
	cJSON *page;
	int status = EXIT_MVAGENT;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	page = page_make(&review->input, review->text, review->length, text, words);
	if (!page || page_sign(page, &review->key) < 0)
		log_errno(-ENOMEM, "cannot make the page");
	else if (write_all(review, page) == 0)
		status = page_is_good(page) ? 0 : EXIT_REVIEW_OPEN;
	cJSON_Delete(page);
	return status;
}

/* Where the files go is found before the guest could put links in the way. */
static int open_files(struct review *review)
{
	const struct checklist_options *options = &review->options;
	int error = 0;

	if (options->html)
		error = report_file_open(&review->html, "--html", options->html);
	if (!error && options->rows)
		error = report_file_open(&review->rows, "--register", options->rows);
	if (!error && options->json && strcmp(options->json, "-") != 0)
		error = report_file_open(&review->json, "--json", options->json);
	return error;
}

static void review_destroy(struct review *review)
{
	checklist_host_destroy(&review->host);
	checklist_options_free(&review->options);
	findings_destroy(&review->findings);
	record_key_clear(&review->key);
	report_file_close(&review->html);
	report_file_close(&review->json);
	report_file_close(&review->rows);
	cJSON_Delete(review->record);
	free(review->text);
}

static int make_review(struct review *review, int argc, char **argv)
{
	char path[PATH_MAX];
	int result = open_files(review);

	result = result ? result
			: run_record_open_key(&review->key, review->options.run.record_key, path);
	if (result)
		return EXIT_MVAGENT;
	review->input.given = review->options.given;
	if (review->options.from) {
		const char *words[] = {"review", "--from", review->options.from, NULL};

		return read_run(review) ? EXIT_MVAGENT : finish(review, words);
	}
	/* From here on files of the review's own lie about: no signal may leave them. */
	supervisor_block_signals();
	result = checklist_host_prepare(&review->host, &review->options.run);
	result = result ? result : try_all(review, argc, argv);
	if (result)
		return result > 128 ? result : EXIT_MVAGENT;
	return finish(review, NULL);
}

int checklist_command(int argc, char **argv)
{
	struct review *review = calloc(1, sizeof(*review));
	char **words = arguments_copy(argc, argv);
	int status = EXIT_MVAGENT;

	if (argc > 1 && strcmp(argv[1], "verify") == 0) {
		status = checklist_verify_command(argc - 1, argv + 1);
	} else if (!review || !words) {
		log_errno(-ENOMEM, "cannot begin");
	} else {
		review->host.listener = -1;
		review->html = review->json = review->rows = REPORT_FILE_NONE;
		switch (checklist_options_parse(&review->options, argc, argv)) {
		case RUN_OPTIONS_DONE:
			status = 0;
			break;
		case RUN_OPTIONS_ERROR:
			break;
		case RUN_OPTIONS_RUN:
			status = make_review(review, argc, words);
			break;
		}
		review_destroy(review);
	}
	free(review);
	arguments_free(words);
	return status;
}
