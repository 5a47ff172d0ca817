/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the host's tree of control groups a run's group can be made. */
#ifndef MVAGENT_CLI_CGROUP_PARENT_H
#define MVAGENT_CLI_CGROUP_PARENT_H

#include <limits.h>
#include <stddef.h>

/* Of the names of our groups; the number of a process follows. */
#define CGROUP_PREFIX "mvagent-"

/* cgroup.controllers(7)'s names, in the order of struct cgroup_limits. */
enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_IO,
	CGROUP_CONTROLLERS,
};

const char *cgroup_controller_name(enum cgroup_controller controller);

/* The nearest group, of mvagent's own and those above, that is the user's and can give its groups
 * the controllers of the set @needed (1 << controller). Its directory's descriptor and @path;
 * -ENOENT: there is no cgroup v2; -EACCES: none is the user's; -EOPNOTSUPP: none has them. */
int cgroup_parent_find(unsigned int needed, char path[PATH_MAX]);

/* Has it give them; a process that is alone in it goes to a group below, for groups that give have
 * none. 0 or -errno. */
int cgroup_parent_enable(int parent_fd, unsigned int needed);

/* The text of a group's file, without its last newline, for which there is room in @text. 0 or
 * -errno. */
int cgroup_file_read(int fd, const char *name, char *text, size_t size);

/* 0 or -errno. */
int cgroup_file_write(int fd, const char *name, const char *text);

#endif
