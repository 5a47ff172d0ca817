/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* The defaults of the kernel, plus erasing whole UTF-8 characters in line editing. */
static int set_modes(int slave)
{
	struct termios modes;

	if (tcgetattr(slave, &modes) < 0)
		return -errno;
	modes.c_iflag |= IUTF8;
	return tcsetattr(slave, TCSANOW, &modes) < 0 ? -errno : 0;
}

int terminal_open(struct terminal *terminal, unsigned int rows, unsigned int columns, uid_t uid)
{
	const int unlocked = 0;
	int error;

	terminal->slave = -1;
	terminal->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (terminal->master < 0)
		return -errno;
	error = ioctl(terminal->master, TIOCSPTLCK, &unlocked) < 0 ? -errno : 0;
	if (!error) {
		/* Not by its path, which depends on what is mounted where. */
		terminal->slave =
			ioctl(terminal->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		error = terminal->slave < 0 ? -errno : set_modes(terminal->slave);
	}
	if (!error && fchown(terminal->slave, uid, (gid_t)-1) < 0)
		error = -errno;
	if (error)
		terminal_close(terminal);
	else
		terminal_resize(terminal, rows, columns);
	return error;
}

void terminal_close(struct terminal *terminal)
{
	fd_close(&terminal->slave);
	fd_close(&terminal->master);
}

void terminal_resize(const struct terminal *terminal, unsigned int rows, unsigned int columns)
{
	const struct winsize size = {
		.ws_row = (unsigned short)rows,
		.ws_col = (unsigned short)columns,
	};

	/* Cannot fail on a terminal that is open. */
	ioctl(terminal->master, TIOCSWINSZ, &size);
}

pid_t terminal_foreground(const struct terminal *terminal)
{
	return tcgetpgrp(terminal->master);
}
