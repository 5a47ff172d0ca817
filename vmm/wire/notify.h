/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mvagent-fs tells the guest about changes that the host made to a share. Init connects to
 * SESSION_PORT_NOTIFY + the share's index in START, sends READY once, and feeds every record to the
 * guest's kernel (kernel-config/patches), in the order in which they come. A guest whose kernel
 * cannot take them does not connect.
 *
 * The order in which mvagent-fs sends, and why nothing stale survives it:
 *
 *   1. EXPIRE_ENTRY or INVAL_ENTRY for each name that now means something else, or nothing, or
 *      something for the first time; then INVAL_INODE for each inode whose attributes, data or
 *      entries changed (so also for the directory); then EVENT. A program that an event wakes then
 *      sees the new state.
 *   2. A record must be sent after the change is visible to mvagent-fs's own system calls. An
 *      answer that was composed before the change may still be on its way then, or be used by the
 *      guest's kernel after it took the record:
 *      - LOOKUP, READDIRPLUS and creations are sent with the directory locked, and an entry record
 *        takes that lock: it finds the entry that the old answer made.
 *      - The LOOKUP that revalidates an entry is sent without the lock. Each entry record counts in
 *        the kernel; an answer to a request that is older than the count does not extend an entry.
 *      - The attributes in any answer to a request that is older than an INVAL_INODE of that inode
 *        are not used, whether the guest knew the inode (attribute version) or not (the record
 *        counts as an evict).
 *      - Pages being read are locked until they are there, and INVAL_INODE waits for them.
 *      So mvagent-fs needs no lock between an answer and a record, must never wait for the guest to
 *      take one, and may send INVAL_INODE alone when no name changed.
 *   3. When records were lost (fanotify's queue or this stream was full), INVAL_ALL instead. It
 *      makes the guest ask again before it uses anything; programs that watch get IN_Q_OVERFLOW
 *      and, for each inode that they watch, IN_ATTRIB.
 *   4. When the stream ends, init sends the kernel one INVAL_ALL. Answers that mvagent-fs gives
 *      before READY, or once its end of the stream has closed, must have short timeouts.
 */
#ifndef MVAGENT_WIRE_NOTIFY_H
#define MVAGENT_WIRE_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

#define NOTIFY_VERSION 1U

#define NOTIFY_NAME_BYTES   255 /* NAME_MAX */
#define NOTIFY_HEADER_BYTES 40
#define NOTIFY_RECORD_BYTES (NOTIFY_HEADER_BYTES + NOTIFY_NAME_BYTES) /* at most */
#define NOTIFY_READY_BYTES  8

/* As in enum virtio_fs_notify_kind of the guest's kernel. What a kind does not name must be 0. */
enum notify_kind {
	/* child: its attributes and all its cached pages. */
	NOTIFY_INVAL_INODE = 1,
	/* parent, name: the entry is dropped. With child, the entry was removed and the inode has
	 * no name left: programs that watch it see it deleted. */
	NOTIFY_INVAL_ENTRY,
	/* parent, name: looked up again before it is used. Unlike a dropped one, an entry that is
	 * still right keeps what is mounted on it and the working directories in it. */
	NOTIFY_EXPIRE_ENTRY,
	/* parent, name, mask, perhaps child and cookie: raises inotify events on the directory and,
	 * for what happens to an inode, on the child. Or child and mask alone. */
	NOTIFY_EVENT,
	/* Everything known of this share may be out of date. */
	NOTIFY_INVAL_ALL,
};

/* The bits of <sys/inotify.h> that EVENT takes, at least one besides IN_ISDIR. Several bits become
 * several events. */
#define NOTIFY_ENTRY_EVENTS 0x000003c0U /* IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE */
#define NOTIFY_INODE_EVENTS 0x0000080eU /* IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVE_SELF */
#define NOTIFY_IS_DIRECTORY 0x40000000U /* IN_ISDIR */

/*
 * On the wire, little endian: uint32 length of the whole record, uint32 kind, uint64 parent,
 * uint64 child, uint32 mask, uint32 cookie, uint32 name_length, uint32 zero; then the name.
 * Node ids are those of FUSE. A name has 1 to NOTIFY_NAME_BYTES bytes, no '/', no NUL, and is
 * neither "." nor ".."; there is one if, and only if, there is a parent.
 */
struct notify_record {
	enum notify_kind kind;
	uint64_t parent;
	uint64_t child;
	uint32_t mask;
	uint32_t cookie; /* pairs IN_MOVED_FROM with IN_MOVED_TO; else 0 */
	uint32_t name_length;
	char name[NOTIFY_NAME_BYTES + 1]; /* terminated after decoding */
};

/* Encodes a record into @bytes and sets @length. 0, or -EINVAL for one that breaks a rule above. */
int notify_encode(const struct notify_record *record, uint8_t bytes[NOTIFY_RECORD_BYTES],
		  size_t *length);

/* Decodes the record at the start of @bytes. Returns how many bytes it took, 0 when it is not
 * complete yet, or -EPROTO. */
int notify_decode(const uint8_t *bytes, size_t length, struct notify_record *record);

/* READY, the guest's only message: uint32 NOTIFY_VERSION and its complement, little endian. */
void notify_encode_ready(uint8_t bytes[NOTIFY_READY_BYTES]);

/* 0, or -EPROTO when it is something else or another version. */
int notify_decode_ready(const uint8_t bytes[NOTIFY_READY_BYTES]);

#endif
