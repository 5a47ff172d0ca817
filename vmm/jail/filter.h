/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last stage of the jail: the system calls that a role makes while it serves the guest, and no
 * others. Any other kills the process, and the kernel logs it (seccomp(2)).
 */
#ifndef MVAGENT_JAIL_FILTER_H
#define MVAGENT_JAIL_FILTER_H

#include <stdint.h>

/* One call that is allowed, or one when an argument is as stated: (argument & mask) == value. */
struct filter_rule {
	int call;
	unsigned int argument;
	uint64_t mask; /* 0: whatever the arguments are */
	uint64_t value;
};

/* A table, which ends with FILTER_END. */
#define FILTER_CALL(name)              \
	{                              \
		.call = SCMP_SYS(name) \
	}
#define FILTER_CALL_IF(name, index, bits, wanted)                                              \
	{                                                                                      \
		.call = SCMP_SYS(name), .argument = (index), .mask = (bits), .value = (wanted) \
	}
#define FILTER_END         \
	{                  \
		.call = -1 \
	}

extern const struct filter_rule filter_common[];   /* what every role needs: filter_common.c */
extern const struct filter_rule filter_vmm[];      /* filter_vmm.c */
extern const struct filter_rule filter_fs[];       /* filter_fs.c */
extern const struct filter_rule filter_blk[];      /* filter_blk.c, as the next one */
extern const struct filter_rule filter_blk_host[]; /* which opens the host's files */
extern const struct filter_rule filter_image[];    /* filter_image.c, as the next one */
extern const struct filter_rule filter_image_directory[]; /* which reads a directory */
extern const struct filter_rule filter_relay[];           /* filter_relay.c */
extern const struct filter_rule filter_secret[];          /* filter_secret.c */
extern const struct filter_rule filter_sign[];            /* filter_sign.c */

/* Only what is in @role and in filter_common from here on, in every thread of this process. Needs
 * no_new_privs. 0, -EOPNOTSUPP (the kernel has no filters) or -errno. */
int filter_enter(const struct filter_rule *role);

/* From here on this process and its children make no socket and use none to reach anything: such
 * calls fail with EACCES, all others are allowed. Sets no_new_privs. 0, -EOPNOTSUPP or -errno. */
int filter_deny_network(void);

#endif
