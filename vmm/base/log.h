/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for people, one sentence a line on standard error: "mvagent-fs: cannot open ...:
 * reason". The prefix is the program's own name. A process that the guest can talk to must not let
 * the guest flood this stream: log what the host did wrong, count what the guest did wrong.
 */
#ifndef MVAGENT_BASE_LOG_H
#define MVAGENT_BASE_LOG_H

#include <stdnoreturn.h>

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE };

/* Sets what is printed from now on; called once, by main. LOG_NORMAL until then. */
void log_set_level(enum log_level level);

/* An error or a warning: printed unless the level is LOG_QUIET (errors are printed always). */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What log_error or log_errno printed last, without the program's name; empty when nothing was. */
const char *log_last_error(void);

/* Progress and figures: printed at LOG_VERBOSE only. */
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As log_error, followed by ": " and the text of -@error (a negative errno); returns @error. */
int log_errno(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A broken invariant of this process: prints the sentence and aborts. Never reachable by guest
 * input. */
noreturn void log_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
