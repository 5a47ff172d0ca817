/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-vmm's command line: written by the supervisor, so short and strict. */
#ifndef MVAGENT_MACHINE_OPTIONS_H
#define MVAGENT_MACHINE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"

struct options_share {
	char tag[36]; /* of struct virtio_fs_config: not terminated when full */
	int fd;       /* vhost-user socket */
};

struct options_port {
	uint32_t port; /* vsock */
	int fd;        /* connected stream socket */
};

/* Descriptors were opened by the supervisor and are owned by whoever takes them from here; -1: not
 * given. */
struct options {
	int monitor_fd;
	int kvm_fd;
	int kernel_fd;
	int initrd_fd;
	int blk_fd;
	unsigned int share_count;
	struct options_share shares[LIMIT_SHARES];
	unsigned int port_count;
	struct options_port ports[LIMIT_VSOCK_PORTS];
	struct options_port lender; /* port 0: there is none */
	uint64_t memory_mib;
	unsigned int vcpu_count;
	const char *command_line;
	bool verbose;
	bool trap_registers; /* no read-only pages, no ioeventfds, no postponed writes */
	bool no_io_uring;
	bool allow_degraded; /* go on without walls: vmm/jail/jail.h */
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_ERROR };

/* Parses argv. OPTIONS_DONE: --help or --version was answered; OPTIONS_ERROR: the sentence was
 * printed. */
enum options_result options_parse(struct options *options, int argc, char **argv);

#endif
