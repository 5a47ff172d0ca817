/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <errno.h>
#include <malloc.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "vmm/base/bytes.h"

static int filter_add(scmp_filter_ctx filter, const struct filter_rule *rules)
{
	int error = 0;

	for (; !error && rules->call != -1; rules++) {
		struct scmp_arg_cmp compare =
			SCMP_CMP64(rules->argument, SCMP_CMP_MASKED_EQ, rules->mask, rules->value);

		error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules->call,
					       rules->mask ? 1 : 0, &compare);
	}
	return error;
}

int filter_enter(const struct filter_rule *role)
{
	scmp_filter_ctx filter;
	int error;

	/* A thread's own arena looks into /proc/sys/vm when it gives memory back (glibc). */
	mallopt(M_ARENA_MAX, 1);
	filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return -ENOMEM;
	error = filter_add(filter, filter_common);
	error = error ? error : filter_add(filter, role);
	if (!error) /* abort */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
					 SCMP_A0_64(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	/* glibc then makes threads by clone, whose flags can be looked at. */
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	error = error ? error : seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	error = error ? error : seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	/* A tree instead of a list; libseccomp before 2.5 has none, and the list is right too. */
	if (!error)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	error = error ? error : seccomp_load(filter);
	seccomp_release(filter);
	/* libseccomp gives -ECANCELED for an error of the kernel's, which is in errno no more. */
	return error;
}

int filter_deny_network(void)
{
	/* Rings can make sockets as well. */
	static const int denied[] = {
		SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind),
		SCMP_SYS(listen), SCMP_SYS(accept),     SCMP_SYS(accept4), SCMP_SYS(io_uring_setup),
	};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error = 0;

	if (!filter)
		return -ENOMEM;
	for (unsigned int i = 0; !error && i < ARRAY_SIZE(denied); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), denied[i], 0);
	/* Without it only root may have a filter; a program with a set-user-ID bit is not run. */
	if (!error && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		error = -errno;
	error = error ? error : seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	error = error ? error : seccomp_load(filter);
	seccomp_release(filter);
	return error;
}
