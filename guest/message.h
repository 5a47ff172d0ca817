/* SPDX-License-Identifier: Apache-2.0 */
/* What init has to say, and what it tells the host when a session cannot start. */
#ifndef GUEST_MESSAGE_H
#define GUEST_MESSAGE_H

#include "vmm/wire/session.h"

/* One line in the kernel's log, and so on the console when there is one. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Why a session did not start. Zeroed before use. */
struct failure {
	enum session_stage stage;
	int error; /* a negative errno */
	char text[SESSION_FAILURE_TEXT_BYTES + 1];
};

/* Fills in @failure; @format says what was being done. Returns @error. */
int failure_set(struct failure *failure, enum session_stage stage, int error, const char *format,
		...) __attribute__((format(printf, 4, 5)));

/* Send one message on the control connection. 0 or -errno. */
int message_send_empty(int control, enum session_type type);
int message_send_value(int control, enum session_type type, uint32_t value);
int message_send_failure(int control, const struct failure *failure);

#endif
