/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every count that the guest, a peer process or a user can influence has its bound here (invariant
 * 8 of the design). Past a bound the guest gets an error; the host does not notice.
 */
#ifndef MVAGENT_BASE_LIMITS_H
#define MVAGENT_BASE_LIMITS_H

#include <assert.h>

/* Guest memory: one region below the 32-bit hole, one above 4 GiB; QEMU as a front end has a few
 * more. */
#define LIMIT_MEMORY_REGIONS 16

/* virtio: FUSE requests of 1 MiB need 256 data pages plus headers (fs/fuse/virtio_fs.c, 6.12). */
#define LIMIT_QUEUE_SIZE     1024 /* entries of one virtqueue */
#define LIMIT_CHAIN_SEGMENTS 300  /* descriptors in one chain, indirect ones included */
#define LIMIT_DEVICE_QUEUES  8    /* virtqueues of one device */
static_assert(LIMIT_CHAIN_SEGMENTS <= LIMIT_QUEUE_SIZE, "a chain must fit its ring");

/* Machine */
#define LIMIT_VCPUS           16
#define LIMIT_MEMORY_MIN_MIB  64
#define LIMIT_SCRATCH_GIB     1048576ULL
#define LIMIT_TIMEOUT_HOURS   8760U /* a year */
#define LIMIT_MMIO_DEVICES    16    /* one 4 KiB register page and one GSI (5..23) each */
#define LIMIT_COMMAND_LINE    2048  /* COMMAND_LINE_SIZE of x86 Linux */
#define LIMIT_KERNEL_SEGMENTS 16    /* PT_LOAD program headers in a vmlinux */
#define LIMIT_SHARES          8

/* --cgroup */
#define LIMIT_CGROUP_MIB      1073741824ULL /* a PiB */
#define LIMIT_CGROUP_OWN_MIB  128           /* of mvagent's own processes, beside guest memory */
#define LIMIT_CGROUP_PIDS_MIN 64            /* processors, servers, io_uring's workers */
#define LIMIT_CGROUP_PERCENT  1000000ULL

/* Guest console: what is kept for the report of a panic. */
#define LIMIT_CONSOLE_BYTES 16384

/* What a process of a run may say on standard error, in all. */
#define LIMIT_MESSAGES_BYTES 65536U

/* vsock */
#define LIMIT_VSOCK_PORTS        16
#define LIMIT_VSOCK_BUFFER_BYTES 262144 /* receive credit we grant for each connection */
#define LIMIT_VSOCK_PACKET_BYTES 65536  /* VIRTIO_VSOCK_MAX_PKT_BUF_SIZE of Linux */

/* What the network card's guest tried to send: kinds of frames that are recorded, of each class */
#define LIMIT_FRAMES_OF_A_CLASS 16U

/* Ways out of the guest: rules, and the ports of one host that they allow */
#define LIMIT_ROUTE_RULES     512U
#define LIMIT_ROUTE_PORTS     16U
#define LIMIT_ROUTE_ADDRESSES 64U /* with their ports, that are allowed as such */

/* Connections of the guest that mvagent-relay carries at once: each takes two descriptors there,
 * one in mvagent-vmm, and, when its readers are slow, a buffer in each direction. */
#define LIMIT_RELAY_CONNECTIONS  1024U
#define LIMIT_RELAY_BUFFER_BYTES 65536U
#define LIMIT_RELAY_FIRST_BYTES  32768U /* of a connection, until it is clear what it is */
#define LIMIT_RELAY_NAMES        256U   /* whose addresses are remembered */
#define LIMIT_RELAY_ADDRESSES    16U    /* of one name */
#define LIMIT_RELAY_DENIALS      64U    /* sentences that are told, each once */
#define LIMIT_RELAY_PUBLISHED    16U    /* ports of the guest on the host */

/* Secrets that are used for the guest (vmm/secret). A shorter one could not be told from other
 * text, and would be found wherever it happens to stand. */
#define LIMIT_SECRETS              32U
#define LIMIT_SECRET_NAME_BYTES    128U
#define LIMIT_SECRET_BYTES_MIN     8U
#define LIMIT_SECRET_BYTES         4096U
#define LIMIT_SECRET_HOSTS         16U    /* of one secret */
#define LIMIT_SECRET_CONNECTIONS   256U   /* at once */
#define LIMIT_SECRET_HEAD_BYTES    65536U /* of a request: its first line and its fields */
#define LIMIT_SECRET_HEAD_FIELDS   256U
#define LIMIT_SECRET_TRAILER_BYTES 8192U
#define LIMIT_SECRET_PATH_BYTES    255U /* of a token endpoint */

/* Tokens that servers give out in a run, and that are kept (vmm/secret/token_store.h). Shorter ones
 * would be masked where they are no tokens. */
#define LIMIT_SECRET_TOKENS              64U
#define LIMIT_SECRET_ALL                 (LIMIT_SECRETS + LIMIT_SECRET_TOKENS)
#define LIMIT_SECRET_TOKEN_BYTES_MIN     16U
#define LIMIT_SECRET_TOKEN_RAW_BYTES     8192U  /* as it is written in JSON */
#define LIMIT_SECRET_TOKEN_REQUEST_BYTES 32768U /* of the body of a request for one */
/* HTTP/2 of one connection: what may be under way at once. Windows are what may wait here of a body
 * (RFC 9113, 5.2). */
#define LIMIT_HTTP2_CONNECTIONS     32U /* of those above; the others are told of HTTP/1.1 alone */
#define LIMIT_HTTP2_STREAMS         100U
#define LIMIT_HTTP2_UP_WINDOW       65535 /* of a request */
#define LIMIT_HTTP2_UP_WINDOW_ALL   (256 << 10)
#define LIMIT_HTTP2_DOWN_WINDOW     (256 << 10) /* of an answer */
#define LIMIT_HTTP2_DOWN_WINDOW_ALL (2 << 20)
#define LIMIT_HTTP2_QUEUE           256U  /* frames that wait, beyond which nothing more is read */
#define LIMIT_HTTP2_ACKNOWLEDGED    100U  /* of these, answers to PING and SETTINGS */
#define LIMIT_HTTP2_RESETS          1000U /* at once, and so many more a second: */
#define LIMIT_HTTP2_RESETS_SECOND   33U
#define LIMIT_HTTP2_CONTINUATIONS   8U
#define LIMIT_HTTP2_MEMORY_BYTES    (2U << 20) /* of the library's own */
#define LIMIT_AUTHORITY_BYTES       4096U      /* of its certificate, as text */
#define LIMIT_SECRET_TRUST_BYTES    (64 << 20) /* of the host's bundle of certificates */

/* Signatures by the host's ssh-agent (vmm/sign). An agent says no more than OpenSSH's does (its
 * AGENT_MAX_LEN); what a client asks to be signed is the head of a log-in, with a key or two. */
#define LIMIT_SIGN_RULES         16U
#define LIMIT_SIGN_HOST_KEYS     8U /* of one host */
#define LIMIT_SIGN_KEY_BYTES     4096U
#define LIMIT_SIGN_PATTERN_BYTES 256U
#define LIMIT_SIGN_SESSION_BYTES 64U /* the hash of a key exchange */
#define LIMIT_SIGN_REQUEST_BYTES 32768U
#define LIMIT_SIGN_ANSWER_BYTES  262144U
#define LIMIT_SIGN_CONNECTIONS   16U
#define LIMIT_SIGN_USER_BYTES    64U /* of the name that logs in */
/* Signatures that the user's agent did not want to make: whoever is asked before each one is not
 * asked again and again until he gives in. */
#define LIMIT_SIGN_REFUSALS 3U

/* Small devices: what one request may ask for */
#define LIMIT_RNG_REQUEST_BYTES 65536U
#define LIMIT_BALLOON_PAGES     1024 /* Linux sends 256: VIRTIO_BALLOON_ARRAY_PFNS_MAX */

/* Session messages between supervisor and init. A START message carries argv and environment, which
 * the kernel itself bounds at ARG_MAX (a quarter of an 8 MiB stack) and MAX_ARG_STRLEN for each. */
#define LIMIT_SESSION_MESSAGE_BYTES (4U << 20)
#define LIMIT_SESSION_STRINGS       65536
#define LIMIT_HOST_NAME_BYTES       64 /* __NEW_UTS_LEN */

/* virtio-fs server */
#define LIMIT_FS_INODES            1000000
#define LIMIT_FS_HANDLES           65536
#define LIMIT_FS_DIRECTORY_HANDLES 4096 /* each may hold an 8 KiB buffer */
#define LIMIT_FS_DEPTH             4096 /* directories between the root and a name: PATH_MAX */
#define LIMIT_FS_COPY_BYTES        (16U << 20) /* one copy_file_range: others wait for it */
#define LIMIT_FS_FD_RESERVE        64          /* descriptors kept for the server itself */
#define LIMIT_FS_FD_MINIMUM        64          /* and those it needs for the guest at the least */
#define LIMIT_FS_REQUEST_PAGES     256
#define LIMIT_FS_IO_BYTES          (1U << 20)
#define LIMIT_FS_NAME_BYTES        255
#define LIMIT_FS_SYMLINK_BYTES     4095
#define LIMIT_FS_COMPARE_BYTES     (1U << 20) /* of a file that may be its equal */

/* Rules for names in a share, the built-in ones included */
#define LIMIT_POLICY_RULES      512
#define LIMIT_POLICY_POSITIONS  256 /* names that follow the first in patterns of paths, in all */
#define LIMIT_POLICY_COMPONENTS 32  /* names in one pattern */
#define LIMIT_POLICY_STATES     16384U /* that directories have, in all */
static_assert(LIMIT_POLICY_POSITIONS % 64 == 0, "a state is whole words");

/* Where symbolic links lead that are there under hidden or protected names, and names in these */
#define LIMIT_POLICY_PATHS      1024
#define LIMIT_POLICY_PATH_NAMES 16384U

#define LIMIT_RUN_RULES   256 /* given on the command line */
#define LIMIT_RUN_REASONS 64  /* --why */

/* Directories watched for changes of the host: each is a mark of fanotify, of which the system
 * allows a user so many (fs.fanotify.max_user_marks). */
#define LIMIT_FS_WATCHES 131072

/* Notifications to the guest that wait to be sent; when there are more, it is told to forget all.
 */
#define LIMIT_FS_NOTIFY_BYTES 262144

/* What mvagent-fs remembers of files over the time that the guest knows them */
#define LIMIT_FS_REMEMBERED 262144

/* Files that mvagent-fs tells of in the record: of those that it made and of those that were there
 * so many each, and more of those that CI and builds obey; and how much it reads for that */
#define LIMIT_JOURNAL_FILES       8192U
#define LIMIT_JOURNAL_MATTERS     1024U
#define LIMIT_JOURNAL_FILE_BYTES  (32U << 20)  /* of one file before it is changed */
#define LIMIT_JOURNAL_AFTER_BYTES (256U << 20) /* of one file when the guest is gone */
#define LIMIT_JOURNAL_BYTES       (1U << 30)   /* of all before they are changed */
#define LIMIT_JOURNAL_END_MS      2500U        /* all of what is done when the guest is gone */

/* Review of what a guest changed */
#define LIMIT_REVIEW_PATH_BYTES 16384U       /* a path in the share, its NUL included */
#define LIMIT_REVIEW_LIST_BYTES (256U << 20) /* of the paths of all changes of a share */
#define LIMIT_REVIEW_CHANGES    1000000U     /* changes of a share */
#define LIMIT_REVIEW_FILE_BYTES (4U << 20)   /* run.json */

/* Review mode of mvagent-fs */
#define LIMIT_LAYER_LISTING_BYTES  (32U << 20)  /* one listing merged of two directories */
#define LIMIT_LAYER_LISTINGS_BYTES (128U << 20) /* all of them that are open */
/* What a rename of a directory copies at once, while all else waits; beyond it mv(1) copies. */
#define LIMIT_LAYER_TREE_OBJECTS 20000U
#define LIMIT_LAYER_TREE_BYTES   (256U << 20)

/* The record of a run: lines of each kind in detail, of one line, and of all lines but the last */
#define LIMIT_RECORD_REFUSALS   1000U
#define LIMIT_RECORD_FINDINGS   2000U
#define LIMIT_RECORD_CHANGES    20000U
#define LIMIT_RECORD_NETWORK    10000U
#define LIMIT_RECORD_SECRETS    1000U
#define LIMIT_RECORD_SIGNED     1000U
#define LIMIT_RECORD_LINE_BYTES (1U << 20)
#define LIMIT_RECORD_BYTES      (64U << 20)

/* What the guest answers to a review, in all: past it the run fails */
#define LIMIT_CHECKLIST_BYTES (8U << 20)

/* virtio-blk server */
#define LIMIT_BLK_INFLIGHT 128

/* The host's tools as root: names in it, and the bytes of all names, targets and made files */
#define LIMIT_ROOT_NODES      4000000U
#define LIMIT_ROOT_POOL_BYTES (1U << 30)
#define LIMIT_ROOT_PLAN       512 /* names that are declared or given, with those that lead there */
#define LIMIT_ROOT_SOURCES    60  /* directories of the host */
#define LIMIT_ROOT_ADDS       32  /* given on the command line, as the next one */
#define LIMIT_ROOT_HIDES      64
#define LIMIT_ROOT_PLACES     512 /* directories and files that mvagent-blk is confined to */
#define LIMIT_ROOT_OPEN       256 /* files that are kept open */
#define LIMIT_ROOT_TOLD       100 /* lines about files that changed */
#define LIMIT_ROOT_SHOWN      200 /* names of one kind that `root show --verbose` lists */

/* Images that are kept: bytes of the file system, and what the archive that one is imported from
 * may have of anything. Archives are not trusted: each of these is a sentence when it is reached.
 */
#define LIMIT_IMAGE_BYTES            (1ULL << 40)  /* contents and metadata; --max-size is below */
#define LIMIT_IMAGE_DEFAULT_BYTES    (32ULL << 30) /* of contents, unless --max-size says more */
#define LIMIT_IMAGE_MEMORY_BYTES     (6ULL << 30)  /* of the process that reads archives */
#define LIMIT_IMAGE_ENTRIES          2000000U      /* names in all layers */
#define LIMIT_IMAGE_POOL_BYTES       (512U << 20)  /* of all names, targets and attributes */
#define LIMIT_IMAGE_DEPTH            2048U /* directories between the root and a name: PATH_MAX */
#define LIMIT_IMAGE_LINKS_FOLLOWED   40U   /* in the way to one name: MAXSYMLINKS of Linux */
#define LIMIT_IMAGE_LAYERS           512U
#define LIMIT_IMAGE_MEMBERS          65536U     /* files of an archive of layers */
#define LIMIT_IMAGE_JSON_BYTES       (4U << 20) /* one description in such an archive */
#define LIMIT_IMAGE_INDEXES          4U         /* indexes in indexes */
#define LIMIT_IMAGE_STRINGS          4096U      /* variables, and arguments, of its configuration */
#define LIMIT_IMAGE_STRING_BYTES     131072U    /* one of those: MAX_ARG_STRLEN */
#define LIMIT_IMAGE_DESCRIPTOR_BYTES (8U << 20)
#define LIMIT_IMAGE_NAME_BYTES       128U
#define LIMIT_IMAGE_NAMES            10000U /* in the store */

#endif
