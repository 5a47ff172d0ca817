/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that --json names. It is found before the guest runs, since it may lie in a share, where
 * the guest could later put a link in its way.
 */
#ifndef MVAGENT_CLI_REPORT_FILE_H
#define MVAGENT_CLI_REPORT_FILE_H

struct report_file {
	int fd;           /* a pipe, device or standard stream to write to; -1: */
	int directory_fd; /* replace the file @name in this directory */
	char *name;       /* allocated */
};

/* Nothing is open. */
#define REPORT_FILE_NONE ((struct report_file){.fd = -1, .directory_fd = -1})

/* Finds the place for @path ("-": standard error), which is the value of @option. 0 or -errno with
 * the sentence printed. */
int report_file_open(struct report_file *file, const char *option, const char *path);

/* Writes @text, its whole content; a regular file is replaced whole or not at all. 0 or -errno. */
int report_file_write(const struct report_file *file, const char *text);

void report_file_close(struct report_file *file);

#endif
