/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/directories.h"
#include "vmm/base/bytes.h"

/* The initramfs brings these directories (tools/image/initramfs). */
#define IMAGE   "/image"
#define SCRATCH "/scratch"
#define ROOT    "/root"

#define ROOT_DEVICE "/dev/vda"

#define PLAIN (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* The group that Linux distributions call tty. */
#define DEVPTS_OPTIONS "gid=5,mode=0620,ptmxmode=0666"

struct mount_entry {
	const char *source;
	const char *target; /* relative to the new root */
	const char *type;
	unsigned long flags;
	const char *options;
};

/* In this order: some lie on others. The directories in memory are parts of one tmpfs, so that one
 * bound holds for all and a full /tmp cannot take the rest of the machine's memory. */
static const struct mount_entry entries[] = {
	{"/dev", "dev", NULL, MS_MOVE, NULL},
	{"devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, DEVPTS_OPTIONS},
	{"mqueue", "dev/mqueue", "mqueue", PLAIN, NULL},
	{SCRATCH "/shm", "dev/shm", NULL, MS_BIND, NULL},
	{SCRATCH "/tmp", "tmp", NULL, MS_BIND, NULL},
	{SCRATCH "/run", "run", NULL, MS_BIND, NULL},
	{"proc", "proc", "proc", PLAIN, NULL},
	{"sysfs", "sys", "sysfs", PLAIN, NULL},
	{"cgroup2", "sys/fs/cgroup", "cgroup2", PLAIN, "nsdelegate,memory_recursiveprot"},
};

static const struct {
	const char *path;
	mode_t mode;
} scratch_directories[] = {
	{SCRATCH "/upper", 0755}, {SCRATCH "/work", 0755}, {SCRATCH "/shm", 01777},
	{SCRATCH "/tmp", 01777},  {SCRATCH "/run", 0755},
};

static const struct {
	const char *path;
	const char *target;
} links[] = {
	{"dev/fd", "/proc/self/fd"},
	{"dev/stdin", "/proc/self/fd/0"},
	{"dev/stdout", "/proc/self/fd/1"},
	{"dev/stderr", "/proc/self/fd/2"},
};

/* Devices that any user may open, but that the kernel makes for root alone. */
static const char *const open_devices[] = {"dev/fuse", "dev/net/tun"};

int mounts_open_devices(void)
{
	return mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, NULL) < 0 ? -errno : 0;
}

int mounts_open_image(struct failure *failure)
{
	if (access(ROOT_DEVICE, F_OK) < 0)
		return failure_set(failure, SESSION_STAGE_ROOT, -errno,
				   "looking for the root device " ROOT_DEVICE);
	if (mount(ROOT_DEVICE, IMAGE, "erofs", MS_RDONLY, NULL) < 0)
		return failure_set(failure, SESSION_STAGE_ROOT, -errno,
				   "mounting the root image (EROFS on " ROOT_DEVICE ")");
	return 0;
}

/* The overlay: redirect_dir lets directories of the image be renamed, xino gives all its files one
 * device number. */
static int mount_layers(const char *memory, struct failure *failure)
{
	char options[64];

	snprintf(options, sizeof(options), "mode=0755,size=%s", memory);
	if (mount("tmpfs", SCRATCH, "tmpfs", 0, options) < 0)
		return failure_set(failure, SESSION_STAGE_ROOT, -errno, "mounting a tmpfs with %s",
				   options);
	for (size_t index = 0; index < ARRAY_SIZE(scratch_directories); index++) {
		if (mkdir(scratch_directories[index].path, scratch_directories[index].mode) < 0)
			return failure_set(failure, SESSION_STAGE_ROOT, -errno, "making %s",
					   scratch_directories[index].path);
	}
	if (mount("overlay", ROOT, "overlay", 0,
		  "lowerdir=" IMAGE ",upperdir=" SCRATCH "/upper,workdir=" SCRATCH
		  "/work,redirect_dir=on,xino=on") < 0)
		return failure_set(failure, SESSION_STAGE_ROOT, -errno,
				   "mounting the writable layer over the root image");
	return 0;
}

/* Mounts on a directory that is made when it is missing. */
static int mount_entry(const struct mount_entry *entry)
{
	for (int attempt = 0;; attempt++) {
		if (!mount(entry->source, entry->target, entry->type, entry->flags, entry->options))
			return 0;
		if (errno != ENOENT || attempt)
			return -errno;
		if (directories_make(entry->target, NULL))
			return -ENOENT;
	}
}

static void finish_devices(void)
{
	for (size_t index = 0; index < ARRAY_SIZE(links); index++) {
		if (symlink(links[index].target, links[index].path) < 0)
			message("cannot make %s: errno %d", links[index].path, errno);
	}
	for (size_t index = 0; index < ARRAY_SIZE(open_devices); index++) {
		if (chmod(open_devices[index], 0666) < 0 && errno != ENOENT)
			message("cannot open %s to all: errno %d", open_devices[index], errno);
	}
}

int mounts_enter_root(const char *memory, struct failure *failure)
{
	int error = mount_layers(memory, failure);

	if (error)
		return error;
	if (chdir(ROOT) < 0)
		return failure_set(failure, SESSION_STAGE_ROOT, -errno, "entering the new root");
	for (size_t index = 0; index < ARRAY_SIZE(entries); index++) {
		error = mount_entry(&entries[index]);
		if (error)
			return failure_set(failure, SESSION_STAGE_ROOT, error, "mounting /%s",
					   entries[index].target);
	}
	finish_devices();
	/* Not pivot_root: the initramfs cannot be moved. It holds nothing but this program, whose
	 * pages are in use, so that removing its files would free nothing. */
	if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return failure_set(failure, SESSION_STAGE_ROOT, -errno,
				   "switching to the new root");
	return 0;
}
