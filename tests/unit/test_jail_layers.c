/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail attacked from inside, as each role of a run, with chosen layers. An attack does what it
 * says without any layer; with all of them none does. Which layers stop it when they are there
 * alone is written beside it, so that each layer is seen to hold by itself, and where there is only
 * one, that is seen too: without that one alone the attack works.
 *
 *     N  namespaces of its own (process numbers, network, IPC, host name)
 *     M  an empty mount namespace
 *     P  no powers of root: no capabilities but the role's, and another user, if it changes no
 * files L  Landlock F  the filter of system calls
 */
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
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
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

#include "vmm/base/bytes.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/landlock.h"
#include "vmm/jail/mounts.h"
#include "vmm/jail/namespaces.h"

#define NOBODY 65534

/* Of the attacks so many can be tried on any host. */
#define TRIED_MIN 18U

enum { NAMESPACES = 1, MOUNTS = 2, POWERS = 4, LANDLOCK = 8, FILTER = 16, ALL = 31 };
static const char letters[] = "NMPLF";

struct role {
	const char *name;
	const struct filter_rule *filter;
	uint64_t capabilities;
	bool writes;  /* to the first directory; the second it reads */
	bool reads;   /* the second directory */
	bool network; /* it has the host's */
	bool keep_user;
};

static const struct role roles[] = {
	{"vmm", filter_vmm, 0, false, false, false, false},
	{"fs", filter_fs, CAPABILITIES_FILE_SERVER, true, true, false, true},
	{"blk", filter_blk_host, 0, false, true, false, false},
	{"relay", filter_relay, 0, false, false, true, false},
	{"secret", filter_secret, 0, false, false, false, false},
};
#define ROLE_COUNT (sizeof(roles) / sizeof(roles[0]))

/* What of the host's is attacked. */
static struct {
	char path[64];
	int own, read; /* directories that roles have */
	uint16_t port; /* TCP, on the loopback */
	int segment;   /* of System V shared memory */
	pid_t victim;  /* a process that sleeps */
} host;

static char secret[16] = "of the host's";

static int make_listener(int family, const void *address, socklen_t length)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return bind(fd, address, length) || listen(fd, 64) ? -1 : fd;
}

static struct sockaddr_un local_name(bool abstract)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	snprintf(name.sun_path + abstract, sizeof(name.sun_path) - 1, "%s/other/socket", host.path);
	return name;
}

static int make_host(void **state)
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

static int remove_host(void **state)
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

static bool open_path(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600) >= 0;
}

static bool open_other(const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/other/%s", host.path, name);
	return open_path(path, flags);
}

static bool read_file(void)
{
	return open_other("f", O_RDONLY);
}

static bool write_file(void)
{
	return open_other("f", O_WRONLY);
}

static bool create_file(void)
{
	return open_other("new", O_WRONLY | O_CREAT);
}

static bool go_up(void)
{
	return syscall(SYS_openat, host.own, "../other/f", O_RDONLY | O_CLOEXEC) >= 0;
}

static bool write_what_is_read(void)
{
	return syscall(SYS_openat, host.read, "f", O_WRONLY | O_CLOEXEC) >= 0;
}

static bool change_mode(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/other/f", host.path);
	return syscall(SYS_fchmodat, AT_FDCWD, path, 0666) == 0;
}

static bool open_device(void)
{
	return open_path("/dev/null", O_RDWR); /* as /dev/kvm */
}

static bool read_process(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", host.victim);
	return open_path(path, O_RDONLY);
}

static bool read_memory(void)
{
	char text[sizeof(secret)];
	struct iovec here = {text, sizeof(text)}, there = {secret, sizeof(secret)};

	return syscall(SYS_process_vm_readv, host.victim, &here, 1, &there, 1, 0) == sizeof(secret);
}

static bool trace(void)
{
	return syscall(SYS_ptrace, PTRACE_SEIZE, host.victim, 0, 0) == 0;
}

static bool signal_process(void)
{
	return syscall(SYS_kill, host.victim, SIGCONT) == 0;
}

static bool take_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, host.victim, 0);

	return fd >= 0 && syscall(SYS_pidfd_getfd, fd, host.own, 0) >= 0;
}

static bool reach(int family, const void *address, socklen_t length)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && syscall(SYS_connect, fd, address, length) == 0;
}

static bool reach_tcp(void)
{
	const struct sockaddr_in tcp = {.sin_family = AF_INET,
					.sin_port = htons(host.port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return reach(AF_INET, &tcp, sizeof(tcp));
}

static bool reach_local(void)
{
	const struct sockaddr_un name = local_name(false);

	return reach(AF_UNIX, &name, sizeof(name));
}

static bool reach_abstract(void)
{
	const struct sockaddr_un name = local_name(true);

	return reach(AF_UNIX, &name, sizeof(name));
}

/* Who listens is reached from outside. */
static bool listen_tcp(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && syscall(SYS_bind, fd, &any, sizeof(any)) == 0 &&
	       syscall(SYS_listen, fd, 1) == 0;
}

static bool attach_memory(void)
{
	return syscall(SYS_shmat, host.segment, NULL, 0) != -1;
}

/* Among mounts that are the process's own in any case: put_aside. */
static bool mount_over(void)
{
	return syscall(SYS_mount, "tmpfs", "/", "tmpfs", 0, NULL) == 0;
}

static bool open_by_handle(void)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} file = {.handle.handle_bytes = MAX_HANDLE_SZ};
	int mount;

	return syscall(SYS_name_to_handle_at, host.read, "f", &file.handle, &mount, 0) == 0 &&
	       syscall(SYS_open_by_handle_at, host.read, &file.handle, O_RDONLY) >= 0;
}

static bool fork_child(void)
{
	return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static bool execute(void)
{
	char path[128];
	char *const arguments[] = {path, NULL};

	snprintf(path, sizeof(path), "%s/other/program", host.path);
	syscall(SYS_execve, path, arguments, NULL);
	return false; /* true(1) says success by its exit status */
}

static bool make_namespace(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER) == 0;
}

static bool make_ring(void)
{
	uint8_t parameters[120] = {0};

	return syscall(SYS_io_uring_setup, 4, parameters) >= 0;
}

static bool make_code(void)
{
	return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != -1;
}

static bool join_keys(void)
{
	return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0;
}

static bool count_events(void)
{
	struct perf_event_attr events = {.type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(events),
					 .config = PERF_COUNT_SW_CPU_CLOCK};

	return syscall(SYS_perf_event_open, &events, host.victim, -1, -1, 0) >= 0;
}

static bool become_root(void)
{
	return syscall(SYS_setresuid, 0, 0, 0) == 0;
}

/* --- which layers stop each, alone; a column for each role --- */

static const struct attack {
	const char *name;
	bool (*act)(void);
	const char *stops[ROLE_COUNT]; /* NULL: the role may, or has nothing to do it with */
	int landlock;                  /* the first version that knows how, for L to stop it */
} attacks[] = {
	/* vmm, fs, blk, relay, secret */
	{"read a file of the host", read_file, {"MLF", "ML", "MLF", "MLF", "MLF"}, 1},
	{"write to one", write_file, {"MLF", "ML", "MLF", "MLF", "MLF"}, 1},
	{"create one", create_file, {"MPLF", "ML", "MPLF", "MPLF", "MPLF"}, 1},
	{"open any device", open_device, {"MLF", "ML", "MLF", "MLF", "MLF"}, 1},
	{"change a mode", change_mode, {"MPF", "M", "MPF", "MPF", "MPF"}, 0},
	{"go up from a directory", go_up, {NULL, "ML", "LF", NULL, NULL}, 1},
	{"write to what is read-only", write_what_is_read, {NULL, "ML", "MLF", NULL, NULL}, 1},
	{"open by a handle", open_by_handle, {NULL, "MPF", "MPF", NULL, NULL}, 0},
	{"execute a file", execute, {"MLF", "MLF", "MLF", "MLF", "MLF"}, 1},
	{"read a process's environment", read_process, {"MPLF", "PL", "MPLF", "MPLF", "MPLF"}, 1},
	{"read its memory", read_memory, {"NPLF", "NPLF", "NPLF", "NPLF", "NPLF"}, 1},
	{"trace it", trace, {"NPLF", "NPLF", "NPLF", "NPLF", "NPLF"}, 1},
	{"take a descriptor of it", take_descriptor, {"NPLF", "NPLF", "NPLF", "NPLF", "NPLF"}, 1},
	{"send it a signal", signal_process, {"NLF", "NLF", "NLF", "NLF", "NLF"}, 6},
	{"count its events", count_events, {"NPF", "NPF", "NPF", "NPF", "NPF"}, 0},
	{"connect by TCP", reach_tcp, {"NLF", "NLF", "NLF", NULL, "NLF"}, 4},
	{"listen for TCP", listen_tcp, {"LF", "LF", "LF", "LF", "LF"}, 4},
	{"connect to a local socket", reach_local, {"MF", "MF", "MF", "MF", "MF"}, 0},
	{"connect to an abstract one", reach_abstract, {"NLF", "NLF", "NLF", "LF", "NLF"}, 6},
	{"attach memory of the host's", attach_memory, {"NF", "NF", "NF", "NF", "NF"}, 0},
	{"mount", mount_over, {"PLF", "PLF", "PLF", "PLF", "PLF"}, 1},
	{"be root again", become_root, {"PF", "F", "PF", "PF", "PF"}, 0},
	{"fork", fork_child, {"F", "F", "F", "F", "F"}, 0},
	{"make a namespace", make_namespace, {"F", "F", "F", "F", "F"}, 0},
	{"make a ring of io_uring", make_ring, {"F", "F", "F", "F", "F"}, 0},
	{"make code in memory", make_code, {"F", "F", "F", "F", "F"}, 0},
	{"join a session of keys", join_keys, {"F", "F", "F", "F", "F"}, 0},
};

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* In the child: puts up @layers. */
static int put_up(const struct role *role, int layers)
{
	const struct jail_directory directories[] = {
		{role->writes ? host.own : -1, true, false},
		{role->reads ? host.read : -1, false, false},
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	if (layers & MOUNTS && mounts_enter(directories, 2, role->writes))
		return -EIO;
	if (layers & POWERS && !role->keep_user &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	     setresuid(NOBODY, NOBODY, NOBODY)))
		return -errno;
	if (layers & POWERS && capabilities_keep_only(role->capabilities))
		return -EIO;
	if (layers & LANDLOCK && landlock_confine(directories, 2, role->network))
		return -EIO;
	return layers & FILTER ? filter_enter(role->filter) : 0;
}

/* An attack that works must not do so to the host of the test. */
static int put_aside(void)
{
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

enum { WORKS = 0, STOPPED = 1, NOT_SET_UP = 2 };

static _Noreturn void act(const struct role *role, int layers, const struct attack *attack)
{
	if (put_up(role, layers))
		syscall(SYS_exit_group, NOT_SET_UP);
	syscall(SYS_exit_group, attack->act() ? WORKS : STOPPED);
	__builtin_unreachable();
}

/* What becomes of one attack; a process that is killed for it is stopped. */
static int try_attack(const struct role *role, int layers, const struct attack *attack)
{
	pid_t outer = fork();
	int status;

	assert_true(outer >= 0);
	if (outer == 0) {
		bool apart = true;
		pid_t inner = put_aside()              ? -1
			      : !(layers & NAMESPACES) ? fork()
			      : role->network          ? namespaces_fork_with_network(&apart)
						       : namespaces_fork(&apart);

		if (inner == 0)
			act(role, layers, attack);
		if (inner < 0 || waitpid(inner, &status, 0) != inner || !apart)
			_exit(NOT_SET_UP);
		_exit(WIFSIGNALED(status) ? STOPPED : WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const char *format(int layers, char text[sizeof(letters)])
{
	char *at = text;

	for (int i = 0; letters[i]; i++)
		if (layers & 1 << i)
			*at++ = letters[i];
	*at = '\0';
	return text;
}

/* The layers that stop an attack by themselves. */
static int find_stops(const struct role *role, const struct attack *attack)
{
	int stops = 0;

	for (int layer = 1; layer < ALL; layer <<= 1) {
		int result = try_attack(role, layer, attack);

		assert_int_not_equal(result, NOT_SET_UP);
		if (result == STOPPED)
			stops |= layer;
	}
	return stops;
}

/* What the table says, as far as this kernel's Landlock knows how. */
static int wanted_stops(const struct role *role, const struct attack *attack)
{
	int stops = 0;

	for (const char *letter = attack->stops[role - roles]; *letter; letter++)
		stops |= 1 << (strchr(letters, *letter) - letters);
	if (landlock_version() < attack->landlock)
		stops &= ~LANDLOCK;
	return stops;
}

/* Whether it could be tried: some hosts do not let even root do it. */
static bool check(const struct role *role, const struct attack *attack)
{
	char found[sizeof(letters)], wanted[sizeof(letters)];
	int stops;

	if (try_attack(role, 0, attack) != WORKS) {
		print_message("%s: this host lets nobody %s\n", role->name, attack->name);
		return false;
	}
	stops = find_stops(role, attack);
	if (stops != wanted_stops(role, attack))
		fail_msg("%s: %s: stopped by '%s', not by '%s'", role->name, attack->name,
			 format(stops, found), format(wanted_stops(role, attack), wanted));
	if (try_attack(role, ALL, attack) != STOPPED)
		fail_msg("%s: %s: works with all layers", role->name, attack->name);
	for (int layer = 1; layer < ALL; layer <<= 1) {
		bool works = try_attack(role, ALL & ~layer, attack) == WORKS;

		/* Only where no other layer stops it. */
		if (works != (stops == layer))
			fail_msg("%s: %s: %s without '%s' alone", role->name, attack->name,
				 works ? "works" : "fails", format(layer, found));
	}
	return true;
}

static bool can_be_tried(void)
{
	bool apart = false;
	pid_t child = geteuid() ? -1 : namespaces_fork(&apart);

	if (child == 0)
		_exit(0);
	return child > 0 && waitpid(child, NULL, 0) == child && apart && landlock_version() > 0;
}

static void test_role(const char *name)
{
	const struct role *role = roles;
	unsigned int tried = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* a sanitizer makes calls of its own */
#endif
	if (!can_be_tried())
		skip(); /* it takes root, and a host with all of the layers */
	while (strcmp(role->name, name) != 0)
		role++;
	for (size_t i = 0; i < ARRAY_SIZE(attacks); i++)
		if (attacks[i].stops[role - roles])
			tried += check(role, &attacks[i]);
	assert_true(tried >= TRIED_MIN);
}

static void test_vmm(void **state)
{
	(void)state;
	test_role("vmm");
}

static void test_fs(void **state)
{
	(void)state;
	test_role("fs");
}

static void test_blk(void **state)
{
	(void)state;
	test_role("blk");
}

static void test_relay(void **state)
{
	(void)state;
	test_role("relay");
}

static void test_secret(void **state)
{
	(void)state;
	test_role("secret");
}

/* Each layer stops something by itself in each role, so none is there for nothing. */
static void test_no_layer_is_decoration(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROLE_COUNT; i++) {
		int stops = 0;

		for (size_t k = 0; k < ARRAY_SIZE(attacks); k++)
			for (const char *letter = attacks[k].stops[i]; letter && *letter; letter++)
				stops |= 1 << (strchr(letters, *letter) - letters);
		assert_int_equal(stops, ALL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vmm),    cmocka_unit_test(test_fs),
		cmocka_unit_test(test_blk),    cmocka_unit_test(test_relay),
		cmocka_unit_test(test_secret), cmocka_unit_test(test_no_layer_is_decoration),
	};

	return cmocka_run_group_tests(tests, make_host, remove_host);
}
