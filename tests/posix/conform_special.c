/* SPDX-License-Identifier: Apache-2.0 */
/* FIFOs and sockets that are used, device nodes, programs that run from here. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/subject.h"

static void check_fifo(struct suite *suite)
{
	char got[8] = "";
	int reader, writer;

	must(suite, mkfifo("p", 0600), "mkfifo");
	check_result(suite, open("p", O_WRONLY | O_NONBLOCK), ENXIO, "open a FIFO nobody reads");
	reader = open("p", O_RDONLY | O_NONBLOCK);
	check_result(suite, reader, 0, "open a FIFO to read");
	check_equal(suite, read(reader, got, 8), 0, "read from a FIFO nobody writes");
	writer = open("p", O_WRONLY | O_NONBLOCK);
	check_result(suite, writer, 0, "open a FIFO to write");
	check_result(suite, read(reader, got, 8), EAGAIN, "read from an empty FIFO");
	check_equal(suite, write(writer, "through", 7), 7, "write to a FIFO");
	check_equal(suite, read(reader, got, 8), 7, "read from a FIFO");
	check_bytes(suite, got, "through", 7, "what came through");
	check_result(suite, lseek(reader, 0, SEEK_CUR), ESPIPE, "lseek of a FIFO");
	check_result(suite, pread(reader, got, 1, 0), ESPIPE, "pread of a FIFO");
	check_result(suite, ftruncate(writer, 0), EINVAL, "ftruncate of a FIFO");
	check_result(suite, fallocate(writer, 0, 0, 10), ESPIPE, "fallocate of a FIFO");
	check_result(suite, unlink("p"), 0, "unlink of a FIFO in use");
	check_equal(suite, write(writer, "still", 5), 5, "write to a FIFO without a name");
	check_equal(suite, read(reader, got, 8), 5, "read from a FIFO without a name");
	close(writer);
	close(reader);
}

static long bind_to(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	return bind(fd, (const struct sockaddr *)&address, sizeof(address));
}

static long connect_to(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	return connect(fd, (const struct sockaddr *)&address, sizeof(address));
}

static int expect_connect(enum subject subject)
{
	int error = subject_follow_error(subject);

	return error ? error : ECONNREFUSED;
}

/* bind and connect on every kind of file. */
static void check_addresses(struct suite *suite)
{
	for (int i = 0; i < SUBJECT_LONG_NAME; i++) {
		enum subject subject = (enum subject)i;
		int fd = must(suite, socket(AF_UNIX, SOCK_STREAM, 0), "socket");
		int wanted = subject_path_error(subject);
		char path[PATH_MAX + 2];

		subject_make(suite, subject, "s");
		subject_path(subject, "s", path);
		check_result(suite, connect_to(fd, path), expect_connect(subject), "connect to %s",
			     subject_name(subject));
		if (!wanted && subject_type(subject))
			wanted = EADDRINUSE;
		check_result(suite, bind_to(fd, path), wanted, "bind to %s", subject_name(subject));
		close(fd);
		subject_remove(suite, subject, "s");
	}
}

static void check_socket(struct suite *suite)
{
	int server = must(suite, socket(AF_UNIX, SOCK_STREAM, 0), "socket"), client, served;
	struct stat status;
	char got[8] = "";

	check_result(suite, bind_to(server, "s"), 0, "bind");
	check_result(suite, lstat("s", &status), 0, "lstat of a socket");
	check_equal(suite, status.st_mode & S_IFMT, S_IFSOCK, "type of a socket");
	check_equal(suite, status.st_mode & 0777, 0755, "mode of a socket");
	client = must(suite, socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	check_result(suite, connect_to(client, "s"), ECONNREFUSED, "connect before listen");
	check_result(suite, listen(server, 1), 0, "listen");
	check_result(suite, rename("s", "t"), 0, "rename of a socket");
	check_result(suite, connect_to(client, "t"), 0, "connect");
	served = accept(server, NULL, NULL);
	check_result(suite, served, 0, "accept");
	check_equal(suite, write(client, "through", 7), 7, "write to a socket");
	check_equal(suite, read(served, got, 8), 7, "read from a socket");
	check_result(suite, open("t", O_RDWR), ENXIO, "open a socket");
	check_result(suite, unlink("t"), 0, "unlink of a socket");
	close(served);
	close(client);
	close(server);
}

static void check_devices(struct suite *suite)
{
	static const mode_t types[] = {S_IFCHR, S_IFBLK};
	int wanted;

	for (int i = 0; i < 2; i++) {
		wanted = suite->privileged ? expect_unless(suite, DEVIATION_DEVICE, 0, EPERM)
					   : EPERM;
		check_result(suite, mknod("n", types[i] | 0600, makedev(1, 3)), wanted,
			     "mknod of a device");
		check_result(suite, access("n", F_OK), wanted ? ENOENT : 0, "its name");
		unlink("n");
	}
	check_result(suite, mknod("n", S_IFREG | 0600, makedev(1, 3)), 0,
		     "mknod of a file with a device number");
	unlink("n");
}

void conform_special(struct suite *suite)
{
	check_fifo(suite);
	check_addresses(suite);
	check_socket(suite);
	check_devices(suite);
}

/* Copies this very program here, to run it. */
static void copy_program(struct suite *suite, const char *path)
{
	int from = must(suite, open(suite->program, O_RDONLY), "open of this program");
	int to = must(suite, open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755), "making a program");
	ssize_t length;

	do
		length = must(suite, sendfile(to, from, NULL, 1 << 20), "sendfile");
	while (length > 0);
	close(from);
	close(to);
}

/* The exit status of the program at @path, 127 if it cannot be run; its output is dropped. */
static int run_program(struct suite *suite, const char *path, const char *argument)
{
	int status;
	pid_t child = must(suite, fork(), "fork");

	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execl(path, path, argument, (char *)NULL);
		_exit(127);
	}
	must(suite, waitpid(child, &status, 0), "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A program that runs cannot be opened to write, but removed and replaced. */
static void check_running(struct suite *suite)
{
	int ends[2];
	pid_t child;
	char byte;

	must(suite, pipe(ends), "pipe");
	child = must(suite, fork(), "fork");
	if (child == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execl("./program", "program", "--wait", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	check_equal(suite, read(ends[0], &byte, 1), 1, "a program that runs");
	check_result(suite, open("program", O_WRONLY), ETXTBSY, "open a program that runs");
	check_result(suite, truncate("program", 0), ETXTBSY, "truncate a program that runs");
	check_result(suite, rename("script", "program"), 0, "rename onto a program that runs");
	kill(child, SIGKILL);
	must(suite, waitpid(child, NULL, 0), "waitpid");
	close(ends[0]);
}

void conform_programs(struct suite *suite)
{
	int fd;
	char *map;

	copy_program(suite, "program");
	check_equal(suite, run_program(suite, "./program", "--deviations"), 0, "running a program");
	check_equal(suite, run_program(suite, "./program", NULL), 2, "running it wrongly");
	must(suite, symlink("program", "l"), "symlink");
	check_equal(suite, run_program(suite, "./l", "--deviations"), 0, "running it by a symlink");
	check_result(suite, chmod("program", 0644), 0, "chmod");
	check_equal(suite, run_program(suite, "./program", "--deviations"), 127,
		    "running what may not be run");
	check_result(suite, chmod("program", 0755), 0, "chmod");
	/* Who has it open to write keeps it from running. */
	fd = must(suite, open("program", O_RDWR), "open");
	check_equal(suite, run_program(suite, "./program", "--deviations"), 127,
		    "running what is open to write");
	close(fd);
	check_equal(suite, run_program(suite, "./program", "--deviations"), 0, "running it after");
	fd = must(suite, open("script", O_WRONLY | O_CREAT, 0755), "making a script");
	must(suite, write(fd, "#!program --deviations\n", 23), "write");
	close(fd);
	check_equal(suite, run_program(suite, "./script", NULL), 0, "running a script");
	fd = must(suite, open("program", O_RDONLY), "open");
	map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	check_true(suite, map != MAP_FAILED, "mmap to execute");
	if (map != MAP_FAILED)
		check_bytes(suite, map, "\177ELF", 4, "what was mapped");
	close(fd);
	fd = must(suite, open("empty", O_WRONLY | O_CREAT, 0755), "making a file");
	close(fd);
	check_result(suite, execl("./empty", "empty", (char *)NULL), ENOEXEC, "execve of nothing");
	check_running(suite);
}
