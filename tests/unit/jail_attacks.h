/* SPDX-License-Identifier: Apache-2.0 */
/* A host, as far as a process in the jail might get at it, and attacks on it that work: nothing of
 * what they do lasts. */
#ifndef TESTS_UNIT_JAIL_ATTACKS_H
#define TESTS_UNIT_JAIL_ATTACKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What of the host's is attacked. */
static struct {
	char path[64];
	int own, read; /* directories that roles have */
	uint16_t port; /* TCP, on the loopback */
	int segment;   /* of System V shared memory */
	pid_t victim;  /* a process that sleeps */
} host;

static char secret[16] = "of the host's";

static inline int make_listener(int family, const void *address, socklen_t length)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return bind(fd, address, length) || listen(fd, 64) ? -1 : fd;
}

static inline struct sockaddr_un local_name(bool abstract)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	snprintf(name.sun_path + abstract, sizeof(name.sun_path) - 1, "%s/other/socket", host.path);
	return name;
}

static inline int make_host(void **state)
{
	struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un name;
	socklen_t length = sizeof(tcp);
	char command[256];
	int fd;

	(void)state;
	strcpy(host.path, "/dev/shm/mvagent-layers-XXXXXX");
	if (!mkdtemp(host.path) || chmod(host.path, 0755))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir own read other && echo x | tee own/f read/f other/f >/dev/null && "
		 "cp /bin/true other/program && chmod -R a+rwX .",
		 host.path);
	if (system(command))
		return -1;
	snprintf(command, sizeof(command), "%s/own", host.path);
	host.own = open(command, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(command, sizeof(command), "%s/read", host.path);
	host.read = open(command, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = make_listener(AF_INET, &tcp, sizeof(tcp));
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&tcp, &length))
		return -1;
	host.port = ntohs(tcp.sin_port);
	name = local_name(false);
	fd = make_listener(AF_UNIX, &name, sizeof(name));
	if (fd < 0 || chmod(name.sun_path, 0777))
		return -1;
	name = local_name(true);
	host.segment = shmget(IPC_PRIVATE, 4096, 0666);
	if (make_listener(AF_UNIX, &name, sizeof(name)) < 0 || host.segment < 0)
		return -1;
	host.victim = fork();
	while (host.victim == 0)
		pause();
	return 0;
}

static inline int remove_host(void **state)
{
	char command[128];

	(void)state;
	kill(host.victim, SIGKILL);
	waitpid(host.victim, NULL, 0);
	shmctl(host.segment, IPC_RMID, NULL);
	snprintf(command, sizeof(command), "rm -r %s", host.path);
	return system(command);
}

/* --- attacks: each says whether it has done what it is for --- */

static inline bool open_path(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600) >= 0;
}

static inline bool open_other(const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/other/%s", host.path, name);
	return open_path(path, flags);
}

static inline bool read_file(void)
{
	return open_other("f", O_RDONLY);
}

static inline bool write_file(void)
{
	return open_other("f", O_WRONLY);
}

static inline bool create_file(void)
{
	return open_other("new", O_WRONLY | O_CREAT);
}

static inline bool go_up(void)
{
	return syscall(SYS_openat, host.own, "../other/f", O_RDONLY | O_CLOEXEC) >= 0;
}

static inline bool write_what_is_read(void)
{
	return syscall(SYS_openat, host.read, "f", O_WRONLY | O_CLOEXEC) >= 0;
}

static inline bool change_mode(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/other/f", host.path);
	return syscall(SYS_fchmodat, AT_FDCWD, path, 0666) == 0;
}

static inline bool open_device(void)
{
	return open_path("/dev/null", O_RDWR); /* as /dev/kvm */
}

static inline bool read_process(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", host.victim);
	return open_path(path, O_RDONLY);
}

static inline bool read_memory(void)
{
	char text[sizeof(secret)];
	struct iovec here = {text, sizeof(text)}, there = {secret, sizeof(secret)};

	return syscall(SYS_process_vm_readv, host.victim, &here, 1, &there, 1, 0) == sizeof(secret);
}

static inline bool trace(void)
{
	return syscall(SYS_ptrace, PTRACE_SEIZE, host.victim, 0, 0) == 0;
}

static inline bool signal_process(void)
{
	return syscall(SYS_kill, host.victim, SIGCONT) == 0;
}

static inline bool take_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, host.victim, 0);

	return fd >= 0 && syscall(SYS_pidfd_getfd, fd, host.own, 0) >= 0;
}

static inline bool reach(int family, const void *address, socklen_t length)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && syscall(SYS_connect, fd, address, length) == 0;
}

static inline bool reach_tcp(void)
{
	const struct sockaddr_in tcp = {.sin_family = AF_INET,
					.sin_port = htons(host.port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return reach(AF_INET, &tcp, sizeof(tcp));
}

static inline bool reach_local(void)
{
	const struct sockaddr_un name = local_name(false);

	return reach(AF_UNIX, &name, sizeof(name));
}

static inline bool reach_abstract(void)
{
	const struct sockaddr_un name = local_name(true);

	return reach(AF_UNIX, &name, sizeof(name));
}

/* Who listens is reached from outside. */
static inline bool listen_tcp(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && syscall(SYS_bind, fd, &any, sizeof(any)) == 0 &&
	       syscall(SYS_listen, fd, 1) == 0;
}

static inline bool attach_memory(void)
{
	return syscall(SYS_shmat, host.segment, NULL, 0) != -1;
}

/* Among mounts that are the process's own in any case: put_aside. */
static inline bool mount_over(void)
{
	return syscall(SYS_mount, "tmpfs", "/", "tmpfs", 0, NULL) == 0;
}

static inline bool open_by_handle(void)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} file = {.handle.handle_bytes = MAX_HANDLE_SZ};
	int mount;

	return syscall(SYS_name_to_handle_at, host.read, "f", &file.handle, &mount, 0) == 0 &&
	       syscall(SYS_open_by_handle_at, host.read, &file.handle, O_RDONLY) >= 0;
}

static inline bool fork_child(void)
{
	return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static inline bool execute(void)
{
	char path[128];
	char *const arguments[] = {path, NULL};

	snprintf(path, sizeof(path), "%s/other/program", host.path);
	syscall(SYS_execve, path, arguments, NULL);
	return false; /* true(1) says success by its exit status */
}

static inline bool make_namespace(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER) == 0;
}

static inline bool make_ring(void)
{
	uint8_t parameters[120] = {0};

	return syscall(SYS_io_uring_setup, 4, parameters) >= 0;
}

static inline bool make_code(void)
{
	return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != -1;
}

static inline bool join_keys(void)
{
	return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0;
}

static inline bool count_events(void)
{
	struct perf_event_attr events = {.type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(events),
					 .config = PERF_COUNT_SW_CPU_CLOCK};

	return syscall(SYS_perf_event_open, &events, host.victim, -1, -1, 0) >= 0;
}

static inline bool become_root(void)
{
	return syscall(SYS_setresuid, 0, 0, 0) == 0;
}

#endif
