/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and lets the Nth system call of one of its processes fail:
 *     inject PROGRAM N -- COMMAND...
 * PROGRAM is the name of the process's executable. With N = 0 none fails. What was done and seen is
 * said on descriptor 3, a line each: call N NAME: ERROR          the one that failed end STATUS
 * CALLS DESCRIPTORS   of that process: as wait(2) has it, and what it had open
 *
 * The programs are those that users run. A filter asks for a tracer (SECCOMP_RET_TRACE) at each
 * system call that may fail on a sound host; the tracer lets it pass, or has it return an error
 * without being made. Their own filters hold beside that one: whatever they forbid still kills.
 *
 * Calls of the dynamic loader do not count: without them there is no program that could say
 * anything.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

#define REPORT_FD 3

/* What a host that runs out of something, or whose disk is bad, says to each. close and munmap
 * cannot fail so that it matters, brk has no errors, and others cannot fail at all. */
static const struct {
	int number;
	int error;
} calls[] = {
	{SYS_read, EIO},
	{SYS_pread64, EIO},
	{SYS_preadv, EIO},
	{SYS_preadv2, EIO},
	{SYS_readv, EIO},
	{SYS_write, EIO},
	{SYS_pwrite64, ENOSPC},
	{SYS_pwritev, ENOSPC},
	{SYS_pwritev2, ENOSPC},
	{SYS_writev, EIO},
	{SYS_openat, EMFILE},
	{SYS_openat2, EMFILE},
	{SYS_newfstatat, EIO},
	{SYS_fstat, EIO},
	{SYS_statx, EIO},
	{SYS_statfs, EIO},
	{SYS_fstatfs, EIO},
	{SYS_lseek, EIO},
	{SYS_readlinkat, EIO},
	{SYS_readlink, EIO},
	{SYS_getdents64, EIO},
	{SYS_mkdirat, ENOSPC},
	{SYS_mkdir, ENOSPC},
	{SYS_mknodat, ENOSPC},
	{SYS_symlinkat, ENOSPC},
	{SYS_linkat, ENOSPC},
	{SYS_unlinkat, EIO},
	{SYS_renameat, ENOSPC},
	{SYS_renameat2, ENOSPC},
	{SYS_fchmod, EIO},
	{SYS_fchmodat, EIO},
	{SYS_fchown, EIO},
	{SYS_fchownat, EIO},
	{SYS_utimensat, EIO},
	{SYS_ftruncate, EIO},
	{SYS_fallocate, ENOSPC},
	{SYS_fsync, EIO},
	{SYS_fdatasync, EIO},
	{SYS_syncfs, EIO},
	{SYS_fgetxattr, EIO},
	{SYS_getxattr, EIO},
	{SYS_fsetxattr, ENOSPC},
	{SYS_setxattr, ENOSPC},
	{SYS_flock, ENOLCK},
	{SYS_faccessat2, EIO},
	{SYS_copy_file_range, EIO},
	{SYS_mmap, ENOMEM},
	{SYS_mprotect, ENOMEM},
	{SYS_madvise, EAGAIN},
	{SYS_memfd_create, EMFILE},
	{SYS_ioctl, ENOMEM},
	{SYS_fcntl, EMFILE},
	{SYS_dup2, EMFILE},
	{SYS_dup3, EMFILE},
	{SYS_pipe2, EMFILE},
	{SYS_eventfd2, EMFILE},
	{SYS_timerfd_create, EMFILE},
	{SYS_timerfd_settime, ENOMEM},
	{SYS_signalfd4, EMFILE},
	{SYS_epoll_create1, EMFILE},
	{SYS_epoll_ctl, ENOMEM},
	{SYS_io_uring_setup, ENOMEM},
	{SYS_io_uring_register, ENOMEM},
	{SYS_fanotify_init, EMFILE},
	{SYS_fanotify_mark, ENOSPC},
	{SYS_socket, EMFILE},
	{SYS_socketpair, EMFILE},
	{SYS_sendmsg, ENOBUFS},
	{SYS_sendto, ENOBUFS},
	{SYS_recvmsg, ENOMEM},
	{SYS_recvfrom, ENOMEM},
	{SYS_poll, ENOMEM},
	{SYS_ppoll, ENOMEM},
	{SYS_clone, EAGAIN},
	{SYS_clone3, EAGAIN},
	{SYS_unshare, ENOMEM},
	{SYS_mount, ENOMEM},
	{SYS_fsopen, EMFILE},
	{SYS_fsconfig, ENOMEM},
	{SYS_fsmount, EMFILE},
	{SYS_open_tree, EMFILE},
	{SYS_move_mount, ENOMEM},
	{SYS_mount_setattr, ENOMEM},
	{SYS_pivot_root, ENOMEM},
	{SYS_umount2, ENOMEM},
	{SYS_prctl, EPERM},
	{SYS_capset, EPERM},
	{SYS_capget, EPERM},
	{SYS_setresuid, EAGAIN},
	{SYS_setresgid, EPERM},
	{SYS_setgroups, EPERM},
	{SYS_prlimit64, EPERM},
	{SYS_close_range, ENOMEM},
	{SYS_landlock_create_ruleset, ENOMEM},
	{SYS_landlock_add_rule, ENOMEM},
	{SYS_landlock_restrict_self, ENOMEM},
	{SYS_seccomp, ENOMEM},
	{SYS_getrandom, ENOSYS},
	{SYS_pidfd_open, EMFILE},
};
#define CALL_COUNT (sizeof(calls) / sizeof(calls[0]))

/* The process at which the failure is aimed, in whatever thread. */
struct target {
	const char *program;
	unsigned long wanted; /* its Nth call; 0: none */
	unsigned long count;
	pid_t process; /* 0: not there yet */
	uint64_t loader_start, loader_end;
	int descriptors; /* when it was about to end */
	int status;
	bool ended;
};

static void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(126);
}

/* Asks for the tracer at each of the calls. */
static void install_filter(void)
{
	struct sock_filter program[2 * CALL_COUNT + 2];
	struct sock_fprog filter = {.filter = program};
	unsigned short at = 0;

	program[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						     offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < CALL_COUNT; i++) {
		program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							     (uint32_t)calls[i].number, 0, 1);
		program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							     SECCOMP_RET_TRACE | (i & 0xffff));
	}
	program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = at;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		die("cannot install the filter");
}

/* Whose memory a thread shares. */
static pid_t process_of(pid_t thread)
{
	char path[64], line[256];
	pid_t process = thread;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Tgid: %d", &process) == 1)
			break;
	}
	if (file)
		fclose(file);
	return process;
}

static bool is_program(pid_t process, const char *program)
{
	char path[64], name[4096];
	const char *last;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", process);
	length = readlink(path, name, sizeof(name) - 1);
	name[length < 0 ? 0 : length] = '\0';
	last = strrchr(name, '/');
	return last && strcmp(last + 1, program) == 0;
}

/* Where the dynamic loader is. */
static void find_loader(struct target *target)
{
	char path[64], line[4096];
	FILE *file;

	target->loader_start = target->loader_end = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", target->process);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long long start, end;

		if (!strstr(line, "/ld-linux") || sscanf(line, "%llx-%llx", &start, &end) != 2)
			continue;
		if (!target->loader_start)
			target->loader_start = start;
		target->loader_end = end;
	}
	if (file)
		fclose(file);
}

static int count_descriptors(pid_t process)
{
	char path[64];
	DIR *directory;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", process);
	directory = opendir(path);
	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count - 2; /* "." and ".." */
}

/* A system call that may fail is about to be made. */
static void see_call(struct target *target, pid_t thread, unsigned long index)
{
	struct user_regs_struct registers;
	char *name;

	if (!target->process || process_of(thread) != target->process ||
	    ptrace(PTRACE_GETREGS, thread, NULL, &registers))
		return;
	if (registers.rip >= target->loader_start && registers.rip < target->loader_end)
		return;
	/* To ask about a descriptor that is there cannot fail. */
	if (index >= CALL_COUNT || (calls[index].number == SYS_fcntl && registers.rsi != F_DUPFD &&
				    registers.rsi != F_DUPFD_CLOEXEC))
		return;
	if (++target->count != target->wanted)
		return;
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, calls[index].number);
	dprintf(REPORT_FD, "call %lu %s: %s\n", target->count, name ? name : "?",
		strerror(calls[index].error));
	free(name);
	registers.orig_rax = (unsigned long long)-1;
	registers.rax = (unsigned long long)-calls[index].error;
	if (ptrace(PTRACE_SETREGS, thread, NULL, &registers))
		die("cannot let a call fail");
}

static void see_event(struct target *target, pid_t thread, int event)
{
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, thread, NULL, &message);
	if (event == PTRACE_EVENT_EXEC && !target->process && is_program(thread, target->program)) {
		target->process = thread;
		find_loader(target);
	} else if (event == PTRACE_EVENT_EXIT && thread == target->process) {
		target->descriptors = count_descriptors(thread);
	} else if (event == PTRACE_EVENT_SECCOMP) {
		see_call(target, thread, message);
	}
}

/* One thread has stopped. */
static void see_stop(struct target *target, pid_t thread, int status)
{
	const int event = status >> 16;
	int number = WSTOPSIG(status);

	if (event && event != PTRACE_EVENT_STOP) {
		see_event(target, thread, event);
		number = 0;
	} else if (event == PTRACE_EVENT_STOP) {
		/* A new thread, or a group stop, which is left as it is. */
		if (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN ||
		    number == SIGTTOU) {
			ptrace(PTRACE_LISTEN, thread, NULL, NULL);
			return;
		}
		number = 0;
	}
	ptrace(PTRACE_CONT, thread, NULL, (long)number);
}

static pid_t start(char **command)
{
	const unsigned long options =
		PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;
	pid_t child = fork();
	int status;

	if (child == 0) {
		close(REPORT_FD);
		raise(SIGSTOP);
		install_filter();
		execv(command[0], command);
		die(command[0]);
	}
	if (child < 0 || waitpid(child, &status, WUNTRACED) < 0)
		die("cannot start");
	if (ptrace(PTRACE_SEIZE, child, NULL, options))
		die("cannot trace");
	/* What the command was given is its own: whoever waits for its end must not wait for this
	 * one. */
	close_range(REPORT_FD + 1, ~0U, 0);
	kill(child, SIGCONT);
	return child;
}

int main(int argc, char **argv)
{
	struct target target = {0};
	int status, result = 126;
	pid_t first, thread;

	if (argc < 5 || strcmp(argv[3], "--") != 0) {
		fprintf(stderr, "usage: inject PROGRAM N -- COMMAND...\n");
		return 126;
	}
	target.program = argv[1];
	target.wanted = strtoul(argv[2], NULL, 10);
	first = start(argv + 4);
	while ((thread = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			see_stop(&target, thread, status);
			continue;
		}
		if (thread == target.process) {
			target.status = status;
			target.ended = true;
		}
		if (thread == first)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	if (target.ended)
		dprintf(REPORT_FD, "end %d %lu %d\n", target.status, target.count,
			target.descriptors);
	return result;
}
