/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real host's half of the lab, started by the script `lab`: starts QEMU, tells the agent what
 * to run, copies the standard streams, and exits as the command did. It owns no file: QEMU gets
 * socket pairs, and dies with this process.
 */
#include "stream.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define EXIT_TIME_LIMIT 124
#define EXIT_LAB_FAILED 125

/* Socket pairs: the console is number 0, the ports have their own numbers. */
#define CONSOLE 0

#define LINE_MAX_KEPT 2048

struct list {
	char **items;
	uint32_t count;
};

struct driver {
	/* what was asked for */
	struct lab_start start;
	unsigned int time_limit;
	bool show_console;
	const char *modules;
	struct list read_only, read_write, environment, arguments, qemu;
	/* what is running */
	int ours[LAB_PORT_END];
	int theirs[LAB_PORT_END];
	pid_t qemu_pid;
	int output_done; /* an eventfd, as is error_done */
	int error_done;
	bool raw;
	struct termios cooked;
	char console[LINE_MAX_KEPT];
	size_t console_length;
};

/* End the lab, if it runs, give the terminal back, and leave with `status`. */
static void leave(struct driver *driver, int status) __attribute__((noreturn));

static void leave(struct driver *driver, int status)
{
	if (driver->qemu_pid > 0) {
		kill(driver->qemu_pid, SIGKILL);
		while (waitpid(driver->qemu_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (driver->raw)
		tcsetattr(0, TCSAFLUSH, &driver->cooked);
	_exit(status);
}

static void fail(struct driver *driver, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

static void fail(struct driver *driver, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("lab: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs(driver->raw ? "\r\n" : "\n", stderr);
	va_end(arguments);
	leave(driver, EXIT_LAB_FAILED);
}

static void list_add(struct driver *driver, struct list *list, char *item)
{
	char **items = reallocarray(list->items, (size_t)list->count + 2, sizeof(*items));

	if (!items)
		fail(driver, "no memory for the arguments");
	items[list->count++] = item;
	items[list->count] = NULL;
	list->items = items;
}

static void list_addf(struct driver *driver, struct list *list, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void list_addf(struct driver *driver, struct list *list, const char *format, ...)
{
	va_list arguments;
	char *item;

	va_start(arguments, format);
	if (vasprintf(&item, format, arguments) < 0)
		fail(driver, "no memory for the arguments");
	va_end(arguments);
	list_add(driver, list, item);
}

static void parse_options(struct driver *driver, int argc, char **argv)
{
	static const struct option options[] = {
		{"time-limit", required_argument, NULL, 't'},
		{"user", no_argument, NULL, 'u'},
		{"show-console", no_argument, NULL, 'c'},
		{"modules", required_argument, NULL, 'm'},
		{"ro", required_argument, NULL, 'r'},
		{"rw", required_argument, NULL, 'w'},
		{"env", required_argument, NULL, 'e'},
		{"qemu", required_argument, NULL, 'q'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (option) {
		case 't':
			driver->time_limit = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'u':
			driver->start.as_user = 1;
			break;
		case 'c':
			driver->show_console = true;
			break;
		case 'm':
			driver->modules = optarg;
			break;
		case 'r':
			list_add(driver, &driver->read_only, optarg);
			break;
		case 'w':
			list_add(driver, &driver->read_write, optarg);
			break;
		case 'e':
			list_add(driver, &driver->environment, optarg);
			break;
		case 'q':
			list_add(driver, &driver->qemu, optarg);
			break;
		default:
			leave(driver, EXIT_LAB_FAILED);
		}
	}
	for (; optind < argc; optind++)
		list_add(driver, &driver->arguments, argv[optind]);
	if (!driver->modules || !driver->arguments.count || !driver->qemu.count)
		fail(driver, "the driver is started by the script lab, not by hand");
}

static void add_devices(struct driver *driver)
{
	struct list *qemu = &driver->qemu;

	for (int i = 0; i < LAB_PORT_END; i++) {
		list_addf(driver, qemu, "-chardev");
		list_addf(driver, qemu, "socket,id=lab%d,fd=%d", i, driver->theirs[i]);
	}
	list_addf(driver, qemu, "-serial");
	list_addf(driver, qemu, "chardev:lab%d", CONSOLE);
	list_addf(driver, qemu, "-device");
	list_addf(driver, qemu, "virtio-serial-pci,disable-legacy=on,max_ports=%d", LAB_PORT_END);
	for (int i = LAB_PORT_CONTROL; i < LAB_PORT_END; i++) {
		list_addf(driver, qemu, "-device");
		list_addf(driver, qemu, "virtserialport,nr=%d,chardev=lab%d,name=lab%d", i, i, i);
	}
}

static void start_qemu(struct driver *driver)
{
	pid_t parent = getpid();
	sigset_t none;

	for (int i = 0; i < LAB_PORT_END; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			fail(driver, "cannot make a socket pair: %m");
		driver->ours[i] = ends[0];
		driver->theirs[i] = ends[1];
	}
	add_devices(driver);
	driver->qemu_pid = fork();
	if (driver->qemu_pid < 0)
		fail(driver, "cannot start a process: %m");
	if (driver->qemu_pid > 0) {
		for (int i = 0; i < LAB_PORT_END; i++)
			close(driver->theirs[i]);
		return;
	}
	/* Its own process group: ^C is for this process to act on. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_LAB_FAILED);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < LAB_PORT_END; i++)
		fcntl(driver->theirs[i], F_SETFD, 0);
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	dup2(driver->theirs[CONSOLE], 1);
	dup2(driver->theirs[CONSOLE], 2);
	execvp(driver->qemu.items[0], driver->qemu.items);
	dprintf(2, "cannot run %s: %m", driver->qemu.items[0]);
	_exit(EXIT_LAB_FAILED);
}

static void put(FILE *out, const struct list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		fwrite(list->items[i], 1, strlen(list->items[i]) + 1, out);
}

static void send_start(struct driver *driver)
{
	char *message, *cwd;
	struct timespec now;
	size_t length;
	FILE *out;

	clock_gettime(CLOCK_REALTIME, &now);
	driver->start.type = LAB_START;
	driver->start.seconds = now.tv_sec;
	driver->start.nanoseconds = now.tv_nsec;
	driver->start.read_only_count = driver->read_only.count;
	driver->start.read_write_count = driver->read_write.count;
	driver->start.environment_count = driver->environment.count;
	driver->start.argument_count = driver->arguments.count;
	cwd = getcwd(NULL, 0);
	if (!cwd)
		fail(driver, "the current directory has no name: %m");
	out = open_memstream(&message, &length);
	if (!out)
		fail(driver, "no memory for the arguments");
	fwrite(&driver->start, sizeof(driver->start), 1, out);
	fwrite(cwd, 1, strlen(cwd) + 1, out);
	fwrite(driver->modules, 1, strlen(driver->modules) + 1, out);
	put(out, &driver->read_only);
	put(out, &driver->read_write);
	put(out, &driver->environment);
	put(out, &driver->arguments);
	if (fclose(out) != 0 || length > LAB_CONTROL_MAX)
		fail(driver, "the arguments and the environment are longer than %u bytes",
		     LAB_CONTROL_MAX);
	stream_send(driver->ours[LAB_PORT_CONTROL], message, (uint32_t)length);
	free(message);
	free(cwd);
}

static void *copy_input(void *argument)
{
	const struct driver *driver = argument;

	stream_copy_to_port(0, driver->ours[LAB_PORT_STDIN]);
	return NULL;
}

static void *copy_output(void *argument)
{
	const struct driver *driver = argument;

	stream_copy_from_port(driver->ours[LAB_PORT_STDOUT], 1);
	eventfd_write(driver->output_done, 1);
	return NULL;
}

static void *copy_error(void *argument)
{
	const struct driver *driver = argument;
	int error = fcntl(2, F_DUPFD_CLOEXEC, 3); /* 2 stays open for our own sentences */

	stream_copy_from_port(driver->ours[LAB_PORT_STDERR], error);
	eventfd_write(driver->error_done, 1);
	return NULL;
}

static void start_thread(struct driver *driver, void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, driver) != 0)
		fail(driver, "cannot start a thread");
	pthread_detach(thread);
}

/* When the caller is at a terminal, so is the command. */
static void take_terminal(struct driver *driver)
{
	struct winsize size;
	struct termios raw;

	if (!isatty(0) || !isatty(1) || ioctl(0, TIOCGWINSZ, &size) < 0 ||
	    tcgetattr(0, &driver->cooked) < 0 || tcgetpgrp(0) != getpgrp())
		return;
	driver->start.pty = 1;
	driver->start.rows = size.ws_row;
	driver->start.columns = size.ws_col;
	raw = driver->cooked;
	cfmakeraw(&raw);
	driver->raw = tcsetattr(0, TCSAFLUSH, &raw) == 0;
}

static void send_window(struct driver *driver)
{
	struct lab_resize resize = {.type = LAB_RESIZE};
	struct winsize size;

	if (!driver->start.pty || !driver->start.type || ioctl(0, TIOCGWINSZ, &size) < 0)
		return;
	resize.rows = size.ws_row;
	resize.columns = size.ws_col;
	stream_send(driver->ours[LAB_PORT_CONTROL], &resize, sizeof(resize));
}

static void on_signal(struct driver *driver, int signals)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		send_window(driver);
	else
		leave(driver, 128 + (int)info.ssi_signo);
}

/* Keep the end of what the lab host's kernel and QEMU say, to explain a failure. */
static void on_console(struct driver *driver)
{
	char data[512];
	ssize_t n = read(driver->ours[CONSOLE], data, sizeof(data));
	size_t keep;

	if (n <= 0) {
		close(driver->ours[CONSOLE]);
		driver->ours[CONSOLE] = -1;
		return;
	}
	if (driver->show_console)
		stream_write_all(2, data, (size_t)n);
	keep = sizeof(driver->console) - (size_t)n;
	if (driver->console_length > keep) {
		memmove(driver->console, driver->console + driver->console_length - keep, keep);
		driver->console_length = keep;
	}
	memcpy(driver->console + driver->console_length, data, (size_t)n);
	driver->console_length += (size_t)n;
}

static void fail_lost(struct driver *driver)
{
	while (driver->ours[CONSOLE] >= 0)
		on_console(driver);
	if (!driver->show_console)
		stream_write_all(2, driver->console, driver->console_length);
	fail(driver,
	     "the emulated host stopped before the command ended; its last messages, if any, "
	     "are above");
}

/* Returns the command's exit status, as a shell would give it, or -1 when it is not known yet. */
static int on_control(struct driver *driver)
{
	struct lab_exit ended;
	uint32_t length, type;
	char *message;
	int ret, status;

	ret = stream_receive(driver->ours[LAB_PORT_CONTROL], LAB_CONTROL_MAX, &message, &length);
	if (ret == -EPIPE || ret == -ECONNRESET)
		fail_lost(driver);
	if (ret < 0 || length < sizeof(type))
		fail(driver, "the emulated host sent a broken message");
	memcpy(&type, message, sizeof(type));
	if (type == LAB_READY) {
		free(message);
		send_start(driver);
		return -1;
	}
	if (type == LAB_FAILED)
		fail(driver, "%.*s", (int)(length - sizeof(type)), message + sizeof(type));
	if (type != LAB_EXIT || length != sizeof(ended))
		fail(driver, "the emulated host sent a message of unknown type %u", type);
	memcpy(&ended, message, sizeof(ended));
	free(message);
	status = (int)ended.wait_status;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Wait for the exit status and for both output streams to be written; then leave. */
static void run(struct driver *driver, int signals, int timer) __attribute__((noreturn));

static void run(struct driver *driver, int signals, int timer)
{
	int status = -1;
	struct pollfd ready[] = {
		{.fd = driver->ours[LAB_PORT_CONTROL], .events = POLLIN},
		{.fd = driver->output_done, .events = POLLIN},
		{.fd = driver->error_done, .events = POLLIN},
		{.fd = driver->ours[CONSOLE], .events = POLLIN},
		{.fd = signals, .events = POLLIN},
		{.fd = timer, .events = POLLIN},
	};

	while (ready[0].fd >= 0 || ready[1].fd >= 0 || ready[2].fd >= 0) {
		if (poll(ready, sizeof(ready) / sizeof(ready[0]), -1) < 0)
			continue;
		if (ready[4].revents)
			on_signal(driver, signals);
		if (ready[5].revents) {
			fprintf(stderr,
				"lab: the time limit of %u s is over; the command was ended%s",
				driver->time_limit, driver->raw ? "\r\n" : "\n");
			leave(driver, EXIT_TIME_LIMIT);
		}
		if (ready[3].revents) {
			on_console(driver);
			ready[3].fd = driver->ours[CONSOLE];
		}
		if (ready[0].revents) {
			status = on_control(driver);
			if (status >= 0)
				ready[0].fd = -1;
		}
		for (int i = 1; i <= 2; i++) {
			if (ready[i].revents)
				ready[i].fd = -1;
		}
	}
	leave(driver, status);
}

static int open_signals(struct driver *driver)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		fail(driver, "cannot receive signals: %m");
	return fd;
}

static int open_timer(struct driver *driver)
{
	const struct itimerspec limit = {.it_value.tv_sec = (time_t)driver->time_limit};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, 0, &limit, NULL) < 0)
		fail(driver, "cannot set the time limit: %m");
	return fd;
}

int main(int argc, char **argv)
{
	struct driver driver = {.time_limit = 600};
	int signals, timer;

	parse_options(&driver, argc, argv);
	signals = open_signals(&driver);
	timer = open_timer(&driver);
	driver.output_done = eventfd(0, EFD_CLOEXEC);
	driver.error_done = eventfd(0, EFD_CLOEXEC);
	if (driver.output_done < 0 || driver.error_done < 0)
		fail(&driver, "cannot make an eventfd: %m");
	start_qemu(&driver);
	take_terminal(&driver);
	start_thread(&driver, copy_input);
	start_thread(&driver, copy_output);
	start_thread(&driver, copy_error);
	run(&driver, signals, timer);
}
