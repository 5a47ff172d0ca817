/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's process 1: makes a Linux system of the kernel and the root image, runs one command in
 * it, and hands the machine back. What happens, and when, is main(). Signals cannot reach it: the
 * kernel gives process 1 none that it has no handler for, and it has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files.h"
#include "guest/message.h"
#include "guest/mounts.h"
#include "guest/names.h"
#include "guest/network.h"
#include "guest/notify.h"
#include "guest/probe.h"
#include "guest/session.h"
#include "guest/shares.h"
#include "guest/trust.h"
#include "guest/vsock.h"
#include "vmm/base/fd.h"

/* What all files in memory may take together. The kernel turns mvagent_memory=SIZE on its command
 * line into a variable of this program. */
#define MEMORY_VARIABLE "mvagent_memory"
#define MEMORY_DEFAULT  "50%"

/* What a login gets elsewhere; the kernel's own hard limit of 4096 is too low for many a build. The
 * kernel's other limits are right as they are: a process count that fits the memory, no core files.
 */
static const struct rlimit open_files = {.rlim_cur = 1024, .rlim_max = 1048576};

static noreturn void end_machine(void)
{
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

/* Everything below relies on descriptors 0 to 2 being taken. */
static void fill_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	fd_close(&fd);
}

/* 0, or -errno when there is no host to talk to. */
static int say_hello(int control)
{
	int error = vsock_connect_finish(control);

	if (!error)
		error = fd_set_nonblocking(control, 0);
	if (!error)
		error = message_send_value(control, SESSION_HELLO, SESSION_VERSION);
	if (error)
		message("cannot connect to the host: errno %d", -error);
	return error;
}

/* Waits for START. Ends the machine when the host left or says something else. */
static struct session_start *receive_start(int control)
{
	struct session_start *start = NULL;
	struct session_message received;
	int result = session_receive(control, &received);

	if (result == 1 && received.type == SESSION_START)
		result = session_decode_start(received.payload, received.length, &start);
	if (!start) {
		message("the host did not start a session: %d", result);
		end_machine();
	}
	free(received.payload);
	return start;
}

/* Starts to connect the streams, so that the host answers while other things are set up. */
static int begin_streams(const struct session_start *start, int streams[3], struct failure *failure)
{
	int count = start->flags & SESSION_FLAG_TERMINAL ? 2 : 3;

	for (int index = 0; index < count; index++) {
		streams[index] = vsock_connect_begin(SESSION_PORT_STDIN + (unsigned int)index);
		if (streams[index] < 0)
			return failure_set(failure, SESSION_STAGE_SETUP, streams[index],
					   "connecting stream %d", index);
	}
	return 0;
}

static int finish_streams(const int streams[3], struct failure *failure)
{
	for (int index = 0; index < 3; index++) {
		int error = streams[index] < 0 ? 0 : vsock_connect_finish(streams[index]);

		if (error)
			return failure_set(failure, SESSION_STAGE_SETUP, error,
					   "connecting stream %d", index);
	}
	return 0;
}

/* To a file of the guest's; "": nothing. */
static int add_lines(const char *path, const char *lines, struct failure *failure)
{
	int error = *lines ? files_append(path, lines) : 0;

	return error ? failure_set(failure, SESSION_STAGE_SETUP, error, "writing %s", path) : 0;
}

/* What the command finds: its user and home, the machine's name, the shares. */
static int prepare(const struct session_start *start, struct shares *shares,
		   struct failure *failure)
{
	const struct directory_owner owner = {
		.home = start->home,
		.uid = start->uid,
		.gid = start->gid,
	};
	int error = names_set_host(start->host_name, failure);

	if (!error)
		error = names_add_user(start, failure);
	if (!error && start->authority[0])
		error = trust_add(start->authority, failure);
	if (!error)
		error = add_lines(SESSION_GIT_CONFIG_FILE, start->git_config, failure);
	if (!error && start->known_hosts[0] && mkdir("/etc/ssh", 0755) < 0 && errno != EEXIST)
		error = failure_set(failure, SESSION_STAGE_SETUP, -errno, "making /etc/ssh");
	if (!error)
		error = add_lines(SESSION_KNOWN_HOSTS_FILE, start->known_hosts, failure);
	if (error)
		return error;
	error = directories_make_home(&owner);
	if (error)
		return failure_set(failure, SESSION_STAGE_SETUP, error, "making the home %s",
				   start->home);
	return shares_mount(start, &owner, shares, failure);
}

static int run(int control, const struct session_start *start, struct failure *failure)
{
	struct shares shares = {0};
	int streams[3] = {-1, -1, -1};
	int error = network_raise(failure), network = -1;

	if (!error)
		error = network_start(control, &network, failure);
	if (!error)
		error = begin_streams(start, streams, failure);
	if (!error)
		error = prepare(start, &shares, failure);
	if (!error)
		notify_start(&shares);
	if (!error)
		error = finish_streams(streams, failure);
	if (setrlimit(RLIMIT_NOFILE, &open_files) < 0)
		message("cannot set the limit of open files: errno %d", errno);
	network_wait(&network);
	if (!error)
		error = session_run(control, streams, start, &shares, failure);
	return error;
}

/* The host ends the machine when it has what it wants; should it just leave, init does. */
static void wait_for_host(int control)
{
	char byte;
	ssize_t count;

	do {
		count = read(control, &byte, sizeof(byte));
	} while (count > 0 || (count < 0 && errno == EINTR));
}

int main(int argc, char **argv)
{
	const char *memory = getenv(MEMORY_VARIABLE);
	struct failure failure = {0};
	struct session_start *start;
	sigset_t all;
	int control, error;

	if (argc > 0 && strcmp(argv[0], SESSION_PROBE_NAME) == 0)
		return probe_main(argc, argv);
	if (getpid() != 1) {
		fputs("init: this program is the first process of an mvagent guest\n", stderr);
		return 1;
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	umask(0);
	error = mounts_open_devices();
	fill_standard_descriptors();
	if (error)
		message("cannot mount /dev: errno %d", -error);
	control = vsock_connect_begin(SESSION_PORT_CONTROL);
	error = mounts_open_image(&failure);
	if (control < 0 || say_hello(control))
		end_machine();
	if (!error)
		error = mounts_enter_root(memory ? memory : MEMORY_DEFAULT, &failure);
	start = receive_start(control);
	if (!error)
		error = run(control, start, &failure);
	if (error && failure.stage)
		error = message_send_failure(control, &failure);
	if (!error)
		wait_for_host(control);
	end_machine();
}
