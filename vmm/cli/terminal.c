/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

/* Ends what a program may leave when it is cut off: half a string, bracketed paste, mouse reports,
 * focus events, application keys, hidden cursor, colours. */
static const char reset_modes[] = "\033\\\033[?2004l\033[?1000l\033[?1002l\033[?1003l\033[?1006l"
				  "\033[?1004l\033[?1l\033>\033[?25h\033[0m";

bool terminal_present(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

void terminal_size(uint32_t *rows, uint32_t *columns)
{
	struct winsize size;

	*rows = 24;
	*columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	if (size.ws_row && size.ws_col) {
		*rows = size.ws_row;
		*columns = size.ws_col;
	}
}

static void terminal_restore(const struct termios *saved)
{
	struct pollfd pollfd = {.fd = STDOUT_FILENO, .events = POLLOUT};
	ssize_t ignored;

	/* Without waiting for a terminal that is stopped or stuck, and it may be gone. */
	while (tcsetattr(STDIN_FILENO, TCSANOW, saved) < 0 && errno == EINTR)
		;
	if (poll(&pollfd, 1, 1000) > 0) {
		ignored = write(STDOUT_FILENO, reset_modes, sizeof(reset_modes) - 1);
		(void)ignored;
	}
}

/* The guard: waits until the other end of its pipe is closed; a byte before that means "all is
 * well". */
static void terminal_guard(int fd, const struct termios *saved)
{
	char byte;
	ssize_t count;

	/* Signals typed at the terminal or sent to our group are not meant for the guard; SIGTTOU
	 * would stop it. */
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		signal(signal_number, SIG_IGN);
	do {
		count = read(fd, &byte, 1);
	} while (count < 0 && errno == EINTR);
	if (count == 0)
		terminal_restore(saved);
	_exit(0);
}

static int terminal_start_guard(struct terminal *terminal)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	terminal->guard = fork();
	if (terminal->guard < 0) {
		int error = -errno;

		close(pair[0]);
		close(pair[1]);
		return error;
	}
	if (terminal->guard == 0) {
		/* Only the pipe and the terminal stay open. */
		dup2(pair[0], STDERR_FILENO);
		close_range(STDERR_FILENO + 1, ~0U, 0);
		terminal_guard(STDERR_FILENO, &terminal->saved);
	}
	close(pair[0]);
	terminal->guard_fd = pair[1];
	return 0;
}

int terminal_enter(struct terminal *terminal)
{
	struct termios raw;
	int error;

	*terminal = (struct terminal){.guard_fd = -1};
	if (tcgetattr(STDIN_FILENO, &terminal->saved) < 0)
		return log_errno(-errno, "cannot read the terminal's settings");
	error = terminal_start_guard(terminal);
	if (error)
		return log_errno(error, "cannot start the process that guards the terminal");
	terminal->active = true;
	raw = terminal->saved;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0) {
		error = log_errno(-errno, "cannot set the terminal");
		terminal_leave(terminal);
		return error;
	}
	return 0;
}

void terminal_leave(struct terminal *terminal)
{
	if (!terminal->active)
		return;
	terminal_restore(&terminal->saved);
	fd_write_full(terminal->guard_fd, "", 1);
	fd_close(&terminal->guard_fd);
	while (waitpid(terminal->guard, NULL, 0) < 0 && errno == EINTR)
		;
	terminal->active = false;
}
