/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>

#define COMMAND 0xffffffffULL /* of fcntl: the kernel looks at 32 bits */

/* Each line says what for. On another C library or architecture one function may be another call:
 * those that are known are here side by side. */
const struct filter_rule filter_common[] = {
	/* Memory: malloc, guest memory that a front end maps; none that can be executed. */
	FILTER_CALL(brk),
	FILTER_CALL_IF(mmap, 2, PROT_EXEC, 0),
	FILTER_CALL_IF(mprotect, 2, PROT_EXEC, 0),
	FILTER_CALL(mremap), /* realloc of much */
	FILTER_CALL(munmap),
	FILTER_CALL(madvise),   /* free, a thread's stack at its end */
	FILTER_CALL(getrandom), /* the seed of malloc's own bookkeeping */
	FILTER_CALL(sysinfo),   /* qsort asks how much memory there is before it takes some */

	/* Waiting, and the signals between processes: rings, eventfds. */
	FILTER_CALL(io_uring_enter),
	FILTER_CALL(epoll_wait),
	FILTER_CALL(epoll_pwait),
	FILTER_CALL(epoll_ctl),
	FILTER_CALL(poll),
	FILTER_CALL(ppoll),
	FILTER_CALL(futex),
	FILTER_CALL(restart_syscall), /* what a stopped process goes on with */
	FILTER_CALL(clock_gettime),   /* where the clock cannot be read without the kernel */
	FILTER_CALL(clock_nanosleep),
	FILTER_CALL(nanosleep),

	/* The first of a thread that was made just before. */
	FILTER_CALL(set_robust_list),
	FILTER_CALL(rseq),

	/* Descriptors that it has. */
	FILTER_CALL(read),
	FILTER_CALL(write), /* messages on standard error, too */
	FILTER_CALL(writev),
	FILTER_CALL(close),
	FILTER_CALL(lseek),
	FILTER_CALL_IF(fcntl, 1, COMMAND, F_DUPFD_CLOEXEC), /* and no signals for others */
	FILTER_CALL_IF(fcntl, 1, COMMAND, F_GETFD),
	FILTER_CALL_IF(fcntl, 1, COMMAND, F_SETFD),
	FILTER_CALL_IF(fcntl, 1, COMMAND, F_GETFL),
	FILTER_CALL_IF(fcntl, 1, COMMAND, F_SETFL),
	FILTER_CALL_IF(fcntl, 1, COMMAND, F_GET_SEALS), /* of guest memory, before it is mapped */
	FILTER_CALL(fstat),
	FILTER_CALL(newfstatat),
	FILTER_CALL(recvmsg), /* vhost-user */
	FILTER_CALL(sendmsg),
	FILTER_CALL(recvfrom),
	FILTER_CALL(sendto),
	FILTER_CALL(getsockopt),
	FILTER_CALL(setsockopt),

	/* The end, also by abort. */
	FILTER_CALL(exit),
	FILTER_CALL(exit_group),
	FILTER_CALL(rt_sigaction),
	FILTER_CALL(rt_sigprocmask),
	FILTER_CALL(rt_sigreturn),
	FILTER_CALL(getpid),
	FILTER_CALL(gettid), /* tgkill of this process alone is allowed too: filter.c */
	FILTER_END,
};
