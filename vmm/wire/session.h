/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor on the host and init in the guest say to each other. Both ends compile this
 * file; neither trusts the other's bytes.
 *
 * The guest connects to the host (CID 2), one vsock connection a stream:
 *   control   messages in both directions, as below
 *   stdin     host to guest bytes (also what is typed, when there is a terminal)
 *   stdout    guest to host bytes (all output, when there is a terminal)
 *   stderr    guest to host bytes; not connected when there is a terminal
 *   notify    one a share, when the guest's kernel can use it: vmm/wire/notify.h
 *   names     questions of the guest's resolver: vmm/wire/names.h
 *   relay     one a connection to the outside, when some are allowed: vmm/wire/relay.h
 * End of file is a half-close of the stream; a reader that left is a closed stream.
 *
 * Order on control:
 *   guest HELLO, host START, guest opens its streams, guest STARTED or FAILED,
 *   then host WINDOW, SIGNAL, KILL and guest MEMORY at any time, at last guest EXITED, sent when
 * all processes of the session are gone, all output was handed over, and every file system was
 * synced.
 */
#ifndef MVAGENT_WIRE_SESSION_H
#define MVAGENT_WIRE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"

#define SESSION_VERSION 3U

/* In the guest, where there is an authority to trust: that one, and all. */
#define SESSION_AUTHORITY_FILE "/run/mvagent/authority.pem"
#define SESSION_BUNDLE_FILE    "/run/mvagent/certificates.pem"

/* In the guest: git's configuration that counts least (git-config(1), FILES). */
#define SESSION_GIT_CONFIG_FILE "/etc/gitconfig"

/* In the guest: keys of SSH servers that all users trust (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). */
#define SESSION_KNOWN_HOSTS_FILE "/etc/ssh/ssh_known_hosts"

#define SESSION_FAILURE_TEXT_BYTES 512

enum session_port {
	SESSION_PORT_CONTROL = 1024,
	SESSION_PORT_STDIN = 1025,
	SESSION_PORT_STDOUT = 1026,
	SESSION_PORT_STDERR = 1027,
	SESSION_PORT_RELAY = 1030,  /* as often as the guest likes: vmm/wire/relay.h */
	SESSION_PORT_NAMES = 1031,  /* vmm/wire/names.h */
	SESSION_PORT_NOTIFY = 1040, /* of the first share in START; the others follow in order */
};

enum session_type {
	SESSION_HELLO = 1, /* guest: uint32 SESSION_VERSION */
	SESSION_START,     /* host: struct session_start */
	SESSION_STARTED,   /* guest: no payload; the command's execve succeeded */
	SESSION_FAILED,    /* guest: struct session_failure; nothing of the command ran */
	SESSION_EXITED,    /* guest: uint32, a wait(2) status */
	SESSION_WINDOW,    /* host: uint32 rows << 16 | columns */
	SESSION_SIGNAL,    /* host: uint32 signal number, to the command's process group */
	SESSION_KILL,      /* host: no payload; SIGKILL to every process of the session */
	SESSION_MEMORY,    /* guest: uint32, enum session_memory; each at most once */
};

/* Little endian on the wire, like everything below. */
struct session_header {
	uint32_t type;
	uint32_t length; /* of the payload, at most LIMIT_SESSION_MESSAGE_BYTES */
};

enum session_stage {
	SESSION_STAGE_ROOT = 1, /* mounting the root file system */
	SESSION_STAGE_SHARE,    /* mounting a share */
	SESSION_STAGE_SETUP,    /* user, host name, streams */
	SESSION_STAGE_WORKDIR,  /* changing to the working directory */
	SESSION_STAGE_EXEC,     /* starting the command: ENOENT is exit 127, any other 126 */
};

struct session_failure {
	uint32_t stage;
	uint32_t error;   /* a Linux errno */
	const char *text; /* what was being done, at most SESSION_FAILURE_TEXT_BYTES */
};

/* What becomes of the guest's memory, in percent of it that are in use. */
enum session_memory {
	SESSION_MEMORY_HIGH = 85,
	SESSION_MEMORY_VERY_HIGH = 95,
	SESSION_MEMORY_OUT = 100, /* its kernel has ended a process for want of memory */
};

struct session_share {
	const char *tag;  /* of the virtio-fs device */
	const char *path; /* absolute mount point in the guest */
	uint32_t read_only;
};

#define SESSION_FLAG_TERMINAL 1U /* the command gets a pty */
#define SESSION_FLAG_MEMORY   4U /* MEMORY is wanted */
/* In place of a command, init itself is executed with the arguments, as root of the guest: the
 * probes of guest/probe.h, which try things as uid and gid as well. */
#define SESSION_FLAG_PROBE 2U
#define SESSION_PROBE_NAME "mvagent-probe" /* argument 0 then */

/* The payload of START: the numbers of struct session_start in the order of its fields, then its
 * names, then the shares (tag, path, read_only), the arguments and the variables. A string is its
 * length and its bytes. */
#define SESSION_START_NUMBERS 8
#define SESSION_START_NAMES   7

struct session_start {
	uint32_t flags;
	uint32_t uid; /* of the command */
	uint32_t gid;
	uint32_t rows; /* of the terminal, 1 to 65535, if there is one */
	uint32_t columns;
	const char *user; /* name that uid gets in the guest */
	const char *home;
	const char *host_name;
	const char *directory;   /* working directory */
	const char *authority;   /* a certificate to trust (PEM); "", or NULL to encode: none */
	const char *git_config;  /* added to SESSION_GIT_CONFIG_FILE; "" or NULL as above */
	const char *known_hosts; /* added to SESSION_KNOWN_HOSTS_FILE; the same */
	uint32_t share_count;
	const struct session_share *shares; /* mounted in this order */
	uint32_t argument_count;            /* at least 1 */
	const char *const *arguments;       /* NULL-terminated after decoding */
	uint32_t variable_count;
	const char *const
		*variables; /* NAME=VALUE, the command's whole environment; NULL-terminated */
};

/* A message under way from a stream: fill .header by reading, then .payload. */
struct session_message {
	uint32_t type;
	uint32_t length;
	uint8_t *payload; /* length bytes, owned by the message */
};

/* Encodes header and payload into a fresh buffer that the caller frees. 0, -E2BIG when a bound
 * would be broken (strings too many or too long in all), -ENOMEM. */
int session_encode_start(const struct session_start *start, uint8_t **bytes, size_t *length);
/* Changes the terminal's size in an encoded START: it may change until that is sent. */
void session_resize_start(uint8_t *bytes, uint32_t rows, uint32_t columns);
int session_encode_failure(const struct session_failure *failure, uint8_t **bytes, size_t *length);
int session_encode_value(enum session_type type, uint32_t value, uint8_t **bytes, size_t *length);
int session_encode_empty(enum session_type type, uint8_t **bytes, size_t *length);

/* Decodes a payload. On success everything in the result points into one allocation that
 * session_start_free frees (the payload itself may be freed at once). 0, -EPROTO for bytes that are
 * not such a message (lengths, counts, embedded NULs, trailing bytes, missing arguments, relative
 * paths), -ENOMEM. */
int session_decode_start(const uint8_t *payload, size_t length, struct session_start **start);
void session_start_free(struct session_start *start);

/* @text gets a terminated copy, to which failure->text points. 0 or -EPROTO. */
int session_decode_failure(const uint8_t *payload, size_t length, struct session_failure *failure,
			   char text[SESSION_FAILURE_TEXT_BYTES + 1]);
int session_decode_value(const uint8_t *payload, size_t length, uint32_t *value);

/* Checks a header as it came from the wire and returns its fields in the machine's own order. 0 or
 * -EPROTO (unknown type, length past the bound). */
int session_check_header(const struct session_header *header, uint32_t *type, uint32_t *length);

/* Reads one message from a blocking stream. 1, 0 at end of file before a header, -EPROTO, -errno.
 * The payload is the caller's to free. */
int session_receive(int fd, struct session_message *message);

#endif
