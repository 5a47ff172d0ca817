/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of the lab host, the only program in its initramfs: loads the modules, builds the file
 * tree, runs the one command that the driver names, copies its streams, reports how it ended.
 */
#include "stream.h"
#include "tree.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* For the second measurement of the TSC, which usually is over before. */
#define CLOCK_WAIT_MS 50
#define CLOCK_WAITS   2400

/* The boot has one control port and agent_fail() must reach it from everywhere. */
static int control = -1;

struct job {
	struct lab_start start;
	char *cwd;
	char *modules;
	char **read_only;
	char **read_write;
	char **environment;
	char **arguments;
};

/* The agent's and the command's ends of the standard streams. */
struct streams {
	int ports[LAB_PORT_END];
	int agent[3];
	int command[3];
	int terminal; /* the master side, or -1 */
};

void agent_fail(const char *format, ...)
{
	struct {
		uint32_t type;
		char text[1024];
	} message = {.type = LAB_FAILED};
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(message.text, sizeof(message.text), format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof(message.text))
		length = (int)sizeof(message.text) - 1;
	if (control < 0)
		fprintf(stderr, "lab: %s\n", message.text);
	else
		stream_send(control, &message, (uint32_t)(sizeof(uint32_t) + (size_t)length));
	for (;;)
		pause(); /* the driver ends the machine; PID 1 must not return */
}

static void load_module(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
		agent_fail("the lab host's kernel does not take the module %s: %m", name);
	close(fd);
}

/*
 * KVM keeps the TSC's frequency as it is known when KVM is loaded; the kernel measures it once
 * more, seconds later, on a busy machine much later. KVM takes a difference of more than 250 ppm
 * for a guest's wish of another frequency, which this SVM cannot give (no TSC scaling): then
 * guests' TSC offset is 0, their clocks are ahead by this machine's age and their timers stand
 * still. So wait for the second measurement, after which "tsc" replaces "tsc-early" (Linux
 * arch/x86/kernel/tsc.c, tsc_refine_calibration_work; arch/x86/kvm/x86.c, kvm_set_tsc_khz).
 */
static void wait_for_clock(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char name[16] = "";

	mkdir("/sys", 0755);
	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID, NULL) < 0 && errno != EBUSY)
		agent_fail("cannot mount /sys: %m");
	for (int i = 0; strcmp(name, "tsc\n") != 0; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t length = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

		if (length < 0 || i == CLOCK_WAITS)
			agent_fail("the lab host's TSC was not measured within %d s",
				   CLOCK_WAITS * CLOCK_WAIT_MS / 1000);
		name[length] = '\0';
		close(fd);
		poll(NULL, 0, CLOCK_WAIT_MS);
	}
	umount("/sys");
}

/* /modules/order names the files of /modules, dependencies first. */
static void load_modules(void)
{
	FILE *order = fopen("/modules/order", "re");
	char name[96];

	if (!order)
		agent_fail("the initramfs has no list of modules: %m");
	while (fscanf(order, "%95s", name) == 1)
		load_module(name);
	fclose(order);
}

/* Find the port's node: /dev/vportIpN, where I is the number of the virtio device. */
static int try_port(enum lab_port number)
{
	char path[32];
	int fd = -1;

	for (int device = 0; device < 64 && fd < 0; device++) {
		snprintf(path, sizeof(path), "/dev/vport%dp%d", device, (int)number);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	return fd;
}

/* Ports appear some time after their device: wait for the node, then for the other end. */
static int open_port(enum lab_port number)
{
	struct pollfd ready = {.fd = -1, .events = POLLOUT};

	for (int i = 0; i < 10000 && ready.fd < 0; i++) {
		ready.fd = try_port(number);
		if (ready.fd < 0)
			usleep(1000);
	}
	if (ready.fd < 0)
		agent_fail("the virtio-serial port %d did not appear: %m", (int)number);
	while (poll(&ready, 1, -1) < 1 || (ready.revents & POLLHUP))
		usleep(1000);
	return ready.fd;
}

static char *next_string(char **next, const char *end)
{
	char *string = *next;
	char *zero = memchr(string, '\0', (size_t)(end - string));

	if (!zero)
		agent_fail("the start message is cut short");
	*next = zero + 1;
	return string;
}

static char **next_list(char **next, const char *end, uint32_t count)
{
	char **list = calloc((size_t)count + 1, sizeof(*list));

	if (!list)
		agent_fail("no memory for the start message");
	for (uint32_t i = 0; i < count; i++)
		list[i] = next_string(next, end);
	return list;
}

static void receive_job(struct job *job)
{
	const uint32_t ready = LAB_READY;
	char *message, *next, *end;
	struct timespec now;
	uint32_t length;
	int ret;

	stream_send(control, &ready, sizeof(ready));
	ret = stream_receive(control, LAB_CONTROL_MAX, &message, &length);
	if (ret < 0 || length < sizeof(job->start))
		agent_fail("no start message came: %s", strerror(-ret));
	memcpy(&job->start, message, sizeof(job->start));
	now = (struct timespec){.tv_sec = job->start.seconds, .tv_nsec = job->start.nanoseconds};
	clock_settime(CLOCK_REALTIME, &now);
	next = message + sizeof(job->start);
	end = message + length;
	job->cwd = next_string(&next, end);
	job->modules = next_string(&next, end);
	job->read_only = next_list(&next, end, job->start.read_only_count);
	job->read_write = next_list(&next, end, job->start.read_write_count);
	job->environment = next_list(&next, end, job->start.environment_count);
	job->arguments = next_list(&next, end, job->start.argument_count);
}

static void set_up_machine(void)
{
	/* The hard limit for open files that systemd gives its services. */
	const struct rlimit files = {.rlim_cur = 1024, .rlim_max = 524288};
	struct ifreq loopback = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &loopback) < 0)
		agent_fail("cannot find the loopback interface: %m");
	loopback.ifr_flags = (short)(loopback.ifr_flags | IFF_UP);
	if (ioctl(fd, SIOCSIFFLAGS, &loopback) < 0)
		agent_fail("cannot bring the loopback interface up: %m");
	close(fd);
	if (sethostname("lab", 3) < 0)
		agent_fail("cannot set the host name: %m");
	setrlimit(RLIMIT_NOFILE, &files);
}

static void set_window(int terminal, uint16_t rows, uint16_t columns)
{
	const struct winsize size = {.ws_row = rows, .ws_col = columns};

	ioctl(terminal, TIOCSWINSZ, &size);
}

static void make_terminal(struct streams *streams, const struct job *job)
{
	int number, unlocked = 0;
	char path[32];

	streams->terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (streams->terminal < 0 || ioctl(streams->terminal, TIOCSPTLCK, &unlocked) < 0 ||
	    ioctl(streams->terminal, TIOCGPTN, &number) < 0)
		agent_fail("cannot make a terminal: %m");
	set_window(streams->terminal, job->start.rows, job->start.columns);
	snprintf(path, sizeof(path), "/dev/pts/%d", number);
	for (int i = 0; i < 3; i++) {
		streams->command[i] = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
		streams->agent[i] = fcntl(streams->terminal, F_DUPFD_CLOEXEC, 0);
		if (streams->command[i] < 0 || streams->agent[i] < 0)
			agent_fail("cannot open the terminal: %m");
	}
	if (job->start.as_user && chown(path, LAB_UID, 5) < 0)
		agent_fail("cannot give the terminal to its user: %m");
}

static void make_pipes(struct streams *streams)
{
	streams->terminal = -1;
	for (int i = 0; i < 3; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			agent_fail("cannot make a pipe: %m");
		streams->command[i] = i == 0 ? ends[0] : ends[1];
		streams->agent[i] = i == 0 ? ends[1] : ends[0];
	}
}

static void *copy_stdin(void *argument)
{
	const struct streams *streams = argument;

	stream_copy_from_port(streams->ports[LAB_PORT_STDIN], streams->agent[0]);
	return NULL;
}

static void *copy_stdout(void *argument)
{
	const struct streams *streams = argument;

	stream_copy_to_port(streams->agent[1], streams->ports[LAB_PORT_STDOUT]);
	return NULL;
}

static void *copy_stderr(void *argument)
{
	const struct streams *streams = argument;

	if (streams->terminal >= 0) {
		close(streams->agent[2]);
		stream_send(streams->ports[LAB_PORT_STDERR], NULL, 0);
	} else {
		stream_copy_to_port(streams->agent[2], streams->ports[LAB_PORT_STDERR]);
	}
	return NULL;
}

/* After the start message, the driver sends window sizes only. */
static void *follow_window(void *argument)
{
	const struct streams *streams = argument;
	struct lab_resize resize;
	uint32_t length;
	char *message;

	while (stream_receive(control, LAB_CONTROL_MAX, &message, &length) == 0) {
		if (length == sizeof(resize) && streams->terminal >= 0) {
			memcpy(&resize, message, sizeof(resize));
			set_window(streams->terminal, resize.rows, resize.columns);
		}
		free(message);
	}
	return NULL;
}

static void run_command(const struct job *job, const struct streams *streams)
{
	int error;

	setsid();
	for (int i = 0; i < 3; i++)
		dup2(streams->command[i], i);
	if (streams->terminal >= 0)
		ioctl(0, TIOCSCTTY, 0);
	if (job->start.as_user && (syscall(SYS_setgroups, 0, NULL) < 0 ||
				   syscall(SYS_setresgid, LAB_GID, LAB_GID, LAB_GID) < 0 ||
				   syscall(SYS_setresuid, LAB_UID, LAB_UID, LAB_UID) < 0)) {
		dprintf(2, "lab: cannot become the user lab: %m\n");
		_exit(125);
	}
	if (chdir(job->cwd) < 0) {
		dprintf(2, "lab: the directory %s cannot be entered in the lab: %m\n", job->cwd);
		_exit(125);
	}
	signal(SIGPIPE, SIG_DFL);
	environ = job->environment;
	if (job->start.as_user) {
		setenv("HOME", LAB_HOME, 1);
		setenv("USER", "lab", 1);
		setenv("LOGNAME", "lab", 1);
	}
	setenv("MVAGENT_LAB", "1", 1);
	if (access("/usr/lib/modules/.", F_OK) < 0)
		setenv("MODPROBE_OPTIONS", "-d /run/lab", 0); /* see provide_modules() */
	execvp(job->arguments[0], job->arguments);
	error = errno;
	dprintf(2, "lab: cannot run %s: %s\n", job->arguments[0], strerror(error));
	_exit(error == ENOENT ? 127 : 126); /* as env, timeout and the shells do */
}

/* Reap everything until the command itself ends, then end what it left running. */
static int wait_for_command(pid_t command)
{
	int status = 0, other;
	pid_t pid;

	while ((pid = waitpid(-1, &other, 0)) != command) {
		if (pid < 0 && errno != EINTR)
			agent_fail("the command was lost: %m");
	}
	status = other;
	kill(-1, SIGKILL);
	while (waitpid(-1, &other, 0) > 0 || errno == EINTR)
		;
	return status;
}

/* What the command wrote to the real host's directories is there before its status is. */
static void sync_read_write(char **paths)
{
	for (; *paths; paths++) {
		int fd = open(*paths, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (syncfs(fd) < 0)
			agent_fail("cannot bring %s up to date on the real host: %m", *paths);
		close(fd);
	}
}

static void start_thread(pthread_t *thread, void *(*run)(void *), struct streams *streams)
{
	if (pthread_create(thread, NULL, run, streams) != 0)
		agent_fail("cannot start a thread");
}

int main(void)
{
	struct lab_exit ended = {.type = LAB_EXIT};
	struct streams streams;
	struct job job;
	pthread_t threads[4];
	pid_t command;

	signal(SIGPIPE, SIG_IGN);
	mkdir("/dev", 0755);
	if (mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, NULL) < 0 && errno != EBUSY)
		agent_fail("cannot mount /dev: %m");
	control = open_port(LAB_PORT_CONTROL);
	wait_for_clock();
	load_modules();
	receive_job(&job);
	for (int port = LAB_PORT_STDIN; port < LAB_PORT_END; port++)
		streams.ports[port] = open_port((enum lab_port)port);
	tree_enter(&(struct tree_wishes){.modules = job.modules,
					 .cwd = job.cwd,
					 .read_only = job.read_only,
					 .read_write = job.read_write,
					 .as_user = job.start.as_user});
	set_up_machine();
	if (job.start.pty)
		make_terminal(&streams, &job);
	else
		make_pipes(&streams);
	command = fork();
	if (command < 0)
		agent_fail("cannot start a process: %m");
	if (command == 0)
		run_command(&job, &streams);
	start_thread(&threads[0], copy_stdin, &streams);
	start_thread(&threads[1], copy_stdout, &streams);
	start_thread(&threads[2], copy_stderr, &streams);
	start_thread(&threads[3], follow_window, &streams);
	if (!job.start.pty)
		for (int i = 0; i < 3; i++)
			close(streams.command[i]);
	ended.wait_status = (uint32_t)wait_for_command(command);
	if (job.start.pty)
		for (int i = 0; i < 3; i++)
			close(streams.command[i]);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	sync_read_write(job.read_write);
	stream_send(control, &ended, sizeof(ended));
	for (;;)
		pause();
}
