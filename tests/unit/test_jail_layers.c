/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail attacked from inside, as each role of a run, with chosen layers. An attack does what it
 * says without any layer; with all of them none does. Which layers stop it when they are there
 * alone is written beside it, so that each layer is seen to hold by itself, and where there is only
 * one, that is seen too: without that one alone the attack works.
 *
 *     N  namespaces of its own (process numbers, network, IPC, host name)
 *     M  an empty mount namespace
 *     P  no capabilities but the role's, and no user but nobody, unless it changes files
 *     L  Landlock
 *     F  the filter of system calls
 */
#include "tests/unit/jail_attacks.h"

#include <linux/landlock.h>

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
	{"sign", filter_sign, 0, false, false, false, false},
};
#define ROLE_COUNT (sizeof(roles) / sizeof(roles[0]))

/* --- which layers stop each, alone; a column for each role --- */

static const struct attack {
	const char *name;
	bool (*act)(void);
	const char *stops[ROLE_COUNT]; /* NULL: the role may, or has nothing to do it with */
	int landlock;                  /* the first version that knows how, for L to stop it */
} attacks[] = {
	/* vmm, fs, blk, relay, secret, sign */
	{"read a file of the host", read_file, {"MLF", "ML", "MLF", "MLF", "MLF", "MLF"}, 1},
	{"write to one", write_file, {"MLF", "ML", "MLF", "MLF", "MLF", "MLF"}, 1},
	{"create one", create_file, {"MPLF", "ML", "MPLF", "MPLF", "MPLF", "MPLF"}, 1},
	{"open any device", open_device, {"MLF", "ML", "MLF", "MLF", "MLF", "MLF"}, 1},
	{"change a mode", change_mode, {"MPF", "M", "MPF", "MPF", "MPF", "MPF"}, 0},
	{"go up from a directory", go_up, {NULL, "ML", "LF", NULL, NULL, NULL}, 1},
	{"write to what is read-only",
	 write_what_is_read,
	 {NULL, "ML", "MLF", NULL, NULL, NULL},
	 1},
	{"open by a handle", open_by_handle, {NULL, "MPF", "MPF", NULL, NULL, NULL}, 0},
	{"execute a file", execute, {"MLF", "MLF", "MLF", "MLF", "MLF", "MLF"}, 1},
	{"read a process's environment",
	 read_process,
	 {"MPLF", "PL", "MPLF", "MPLF", "MPLF", "MPLF"},
	 1},
	{"read its memory", read_memory, {"NPLF", "NPLF", "NPLF", "NPLF", "NPLF", "NPLF"}, 1},
	{"trace it", trace, {"NPLF", "NPLF", "NPLF", "NPLF", "NPLF", "NPLF"}, 1},
	{"take a descriptor of it",
	 take_descriptor,
	 {"NPLF", "NPLF", "NPLF", "NPLF", "NPLF", "NPLF"},
	 1},
	{"send it a signal", signal_process, {"NLF", "NLF", "NLF", "NLF", "NLF", "NLF"}, 6},
	{"count its events", count_events, {"NPF", "NPF", "NPF", "NPF", "NPF", "NPF"}, 0},
	{"connect by TCP", reach_tcp, {"NLF", "NLF", "NLF", NULL, "NLF", "NLF"}, 4},
	{"listen for TCP", listen_tcp, {"LF", "LF", "LF", "LF", "LF", "LF"}, 4},
	{"connect to a local socket", reach_local, {"MF", "MF", "MF", "MF", "MF", "MF"}, 0},
	{"connect to an abstract one",
	 reach_abstract,
	 {"NLF", "NLF", "NLF", "LF", "NLF", "NLF"},
	 6},
	{"attach memory of the host's", attach_memory, {"NF", "NF", "NF", "NF", "NF", "NF"}, 0},
	{"mount", mount_over, {"PLF", "PLF", "PLF", "PLF", "PLF", "PLF"}, 1},
	{"be root again", become_root, {"PF", "F", "PF", "PF", "PF", "PF"}, 0},
	{"fork", fork_child, {"F", "F", "F", "F", "F", "F"}, 0},
	{"make a namespace", make_namespace, {"F", "F", "F", "F", "F", "F"}, 0},
	{"make a ring of io_uring", make_ring, {"F", "F", "F", "F", "F", "F"}, 0},
	{"make code in memory", make_code, {"F", "F", "F", "F", "F", "F"}, 0},
	{"join a session of keys", join_keys, {"F", "F", "F", "F", "F", "F"}, 0},
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

static void test_sign(void **state)
{
	(void)state;
	test_role("sign");
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
		cmocka_unit_test(test_vmm),
		cmocka_unit_test(test_fs),
		cmocka_unit_test(test_blk),
		cmocka_unit_test(test_relay),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_sign),
		cmocka_unit_test(test_no_layer_is_decoration),
	};

	return cmocka_run_group_tests(tests, make_host, remove_host);
}
