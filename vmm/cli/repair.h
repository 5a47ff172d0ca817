/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mvagent runs --repair`: finds what runs have left whose processes were killed, says it, and
 * brings it to order. What a run holds while it lives is locked (flock(2)), so that no lock means
 * that its process is gone, and nothing that is locked is touched.
 */
#ifndef MVAGENT_CLI_REPAIR_H
#define MVAGENT_CLI_REPAIR_H

#include <cjson/cJSON.h>
#include <stdbool.h>

struct repair {
	int record_fd; /* of the directories of records and of runs; -1: there is none */
	int review_fd;
	unsigned int running; /* runs that go on */
	unsigned int cut;     /* that did not come to their end */
	unsigned int waiting; /* of those, with changes that wait for review */
	unsigned int removed; /* things that nobody needs */
	cJSON *told;          /* with --json, an array: what was told */
	bool failed; /* something could not be looked at or removed; the sentence is printed */
};

/* Prints a line, or keeps it: what it is about, and what was found or done. */
void repair_tell(struct repair *repair, const char *about, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The record of a run (repair_record.c). */
void repair_record(struct repair *repair, const char *run);

/* Its changes, if it is under review (repair_review.c). */
void repair_review(struct repair *repair, const char *run);

/* A directory of runs in which no run has begun. */
void repair_unborn(struct repair *repair, const char *run);

/* --- repair_files.c: what lies elsewhere --- */

/* Files in the making in a directory that was shared. */
void repair_share(struct repair *repair, int directory_fd, const char *path);

/* What `mvagent review` planted in a directory, and in all above it if @above is set. */
void repair_planted(struct repair *repair, const char *path, bool above);

/* What lies where all runs leave such things: home, state directory, directory for temporary
 * files, control groups. */
void repair_common(struct repair *repair);

/* argv is that of `mvagent runs`. Returns the exit status. */
int runs_repair_command(int argc, char **argv);

#endif
