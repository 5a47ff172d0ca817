/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define HOST "/host" /* the real host's root, in the initramfs */
#define ROOT "/root" /* the lab host's root while it is being built */

#define NINE_P "trans=virtio,version=9p2000.L,msize=512000,access=client"

static void make_directory(const char *path)
{
	char partial[PATH_MAX];

	snprintf(partial, sizeof(partial), "%s", path);
	for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(partial, 0755);
		*slash = '/';
	}
	if (mkdir(partial, 0755) < 0 && errno != EEXIST)
		agent_fail("cannot make the directory %s: %m", path);
}

static void mount_on(const char *source, const char *target, const char *type, unsigned long flags,
		     const char *options)
{
	make_directory(target);
	if (mount(source, target, type, flags, options) < 0)
		agent_fail("cannot mount %s on %s: %m", source, target);
}

static void bind_on(const char *source, const char *target)
{
	if (mount(source, target, NULL, MS_BIND, NULL) < 0)
		agent_fail("cannot bind %s to %s: %m", source, target);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t length = strlen(text);

	if (fd < 0 || write(fd, text, length) != (ssize_t)length)
		agent_fail("cannot write %s: %m", path);
	close(fd);
}

/* Directories that the lab host has for itself; what the real host keeps there is not shown. */
static bool is_own(const char *path)
{
	static const char *const own[] = {"/dev", "/proc", "/run", "/scratch", "/sys", "/tmp"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		size_t length = strlen(own[i]);

		if (strncmp(path, own[i], length) == 0 && (path[length] == '/' || !path[length]))
			return true;
	}
	return false;
}

static void show_entry(const struct dirent *entry)
{
	char from[PATH_MAX], to[PATH_MAX], link[PATH_MAX];
	struct stat status;
	ssize_t length;

	snprintf(from, sizeof(from), HOST "/%s", entry->d_name);
	snprintf(to, sizeof(to), ROOT "/%s", entry->d_name);
	if (is_own(from + strlen(HOST)) || lstat(from, &status) < 0)
		return;
	switch (status.st_mode & S_IFMT) {
	case S_IFDIR:
		make_directory(to);
		bind_on(from, to);
		break;
	case S_IFREG:
		write_file(to, "");
		bind_on(from, to);
		break;
	case S_IFLNK:
		length = readlink(from, link, sizeof(link) - 1);
		if (length < 0)
			return;
		link[length] = '\0';
		if (symlink(link, to) < 0)
			agent_fail("cannot make the link %s: %m", to);
		break;
	default:
		break;
	}
}

static void show_host(void)
{
	struct dirent *entry;
	DIR *directory;

	mount_on("host", HOST, "9p", MS_RDONLY, NINE_P ",cache=loose");
	mount_on("tmpfs", ROOT, "tmpfs", 0, "mode=755");
	directory = opendir(HOST);
	if (!directory)
		agent_fail("cannot read the real host's root directory: %m");
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			show_entry(entry);
	}
	closedir(directory);
}

/* Device nodes that open() answers by loading their module, as udev would have made them. */
static void make_devices(void)
{
	static const struct {
		const char *path;
		mode_t mode;
		unsigned int major, minor;
	} nodes[] = {
		/* numbers: Documentation/admin-guide/devices.txt */
		{ROOT "/dev/net/tun", 0666, 10, 200},
		{ROOT "/dev/loop-control", 0660, 10, 237},
		{ROOT "/dev/btrfs-control", 0660, 10, 234},
		{ROOT "/dev/fuse", 0666, 10, 229},
		{ROOT "/dev/kvm", 0666, 10, 232},
	};
	static const char *const links[][2] = {
		{"/proc/self/fd", ROOT "/dev/fd"},       {"/proc/self/fd/0", ROOT "/dev/stdin"},
		{"/proc/self/fd/1", ROOT "/dev/stdout"}, {"/proc/self/fd/2", ROOT "/dev/stderr"},
		{"pts/ptmx", ROOT "/dev/ptmx"},
	};

	make_directory(ROOT "/dev/net");
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		dev_t number = makedev(nodes[i].major, nodes[i].minor);

		if (mknod(nodes[i].path, S_IFCHR | nodes[i].mode, number) < 0 && errno != EEXIST)
			agent_fail("cannot make %s: %m", nodes[i].path);
		chmod(nodes[i].path, nodes[i].mode);
	}
	unlink(ROOT "/dev/ptmx");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (symlink(links[i][0], links[i][1]) < 0)
			agent_fail("cannot make %s: %m", links[i][1]);
	}
}

static void mount_own(void)
{
	const unsigned long safe = MS_NOSUID | MS_NOEXEC | MS_NODEV;

	mount_on("proc", ROOT "/proc", "proc", safe, NULL);
	mount_on("sysfs", ROOT "/sys", "sysfs", safe, NULL);
	mount_on("cgroup2", ROOT "/sys/fs/cgroup", "cgroup2", safe, "nsdelegate");
	mount_on("debugfs", ROOT "/sys/kernel/debug", "debugfs", safe, NULL);
	mount_on("devtmpfs", ROOT "/dev", "devtmpfs", MS_NOSUID, "mode=755");
	mount_on("devpts", ROOT "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		 "gid=5,mode=620,ptmxmode=666");
	mount_on("tmpfs", ROOT "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_on("mqueue", ROOT "/dev/mqueue", "mqueue", safe, NULL);
	mount_on("tmpfs", ROOT "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
	mount_on("tmpfs", ROOT "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_on("/dev/vda", ROOT "/scratch", "ext4", MS_NOSUID | MS_NODEV, NULL);
	chmod(ROOT "/scratch", 01777);
	make_devices();
}

/* Show a directory of the real host that one of the lab's own mounts hides. */
static void show_hidden(const char *path)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat status;

	if (!is_own(path))
		return;
	if (snprintf(from, sizeof(from), HOST "%s", path) >= (int)sizeof(from) ||
	    snprintf(to, sizeof(to), ROOT "%s", path) >= (int)sizeof(to))
		agent_fail("the directory name %s is too long", path);
	if (stat(from, &status) < 0 || !strchr(path + 1, '/'))
		return; /* /tmp itself, or a /proc entry: the lab's own stands for it */
	make_directory(to);
	bind_on(from, to);
}

static void mount_read_write(char **paths)
{
	char target[PATH_MAX], tag[16];

	for (unsigned int i = 0; paths[i]; i++) {
		snprintf(tag, sizeof(tag), "rw%u", i);
		if (snprintf(target, sizeof(target), ROOT "%s", paths[i]) >= (int)sizeof(target))
			agent_fail("the directory name %s is too long", paths[i]);
		mount_on(tag, target, "9p", 0, NINE_P ",cache=mmap");
	}
}

/*
 * Let modprobe find the modules of the lab's kernel: at their usual place where the real host has
 * the directory to mount on, otherwise through a wrapper that the kernel is told to call.
 */
static void provide_modules(const char *modules)
{
	char from[PATH_MAX];

	snprintf(from, sizeof(from), HOST "%s/lib/modules", modules);
	make_directory(ROOT "/run/lab/lib/modules");
	bind_on(from, ROOT "/run/lab/lib/modules");
	if (access(ROOT "/usr/lib/modules/.", F_OK) == 0)
		bind_on(from, ROOT "/usr/lib/modules");
	write_file(ROOT "/run/lab/modprobe", "#!/bin/sh\nexec /sbin/modprobe -d /run/lab \"$@\"\n");
	chmod(ROOT "/run/lab/modprobe", 0755);
	write_file(ROOT "/proc/sys/kernel/modprobe", "/run/lab/modprobe\n");
	/* Tests look for processes that their filter of system calls has killed. */
	write_file(ROOT "/proc/sys/kernel/dmesg_restrict", "0\n");
}

/* Copy the passwd or group file without the lines that name `lab` or number 1000; add ours. */
static void add_user_line(const char *name, const char *ours)
{
	char from[PATH_MAX], copy[PATH_MAX], to[PATH_MAX], line[4096];
	FILE *in, *out;

	snprintf(from, sizeof(from), HOST "/etc/%s", name);
	snprintf(copy, sizeof(copy), ROOT "/run/lab/%s", name);
	snprintf(to, sizeof(to), ROOT "/etc/%s", name);
	in = fopen(from, "re");
	out = fopen(copy, "we");
	if (!in || !out)
		agent_fail("cannot copy /etc/%s: %m", name);
	while (fgets(line, sizeof(line), in)) {
		const char *second = strchr(line, ':');
		const char *number = second ? strchr(second + 1, ':') : NULL;

		if (strncmp(line, "lab:", 4) != 0 && !(number && strncmp(number, ":1000:", 6) == 0))
			fputs(line, out);
	}
	fputs(ours, out);
	fclose(in);
	if (fclose(out) != 0)
		agent_fail("cannot copy /etc/%s: %m", name);
	bind_on(copy, to);
}

static void add_user(void)
{
	add_user_line("passwd", "lab:x:1000:1000:lab:" LAB_HOME ":/bin/sh\n");
	add_user_line("group", "lab:x:1000:\n");
	make_directory(ROOT LAB_HOME);
	if (chown(ROOT LAB_HOME, LAB_UID, LAB_GID) < 0)
		agent_fail("cannot give %s to its user: %m", LAB_HOME);
}

void tree_enter(const struct tree_wishes *wishes)
{
	show_host();
	mount_own();
	make_directory(ROOT "/run/lock");
	provide_modules(wishes->modules);
	show_hidden(wishes->cwd);
	for (char **path = wishes->read_only; *path; path++)
		show_hidden(*path);
	mount_read_write(wishes->read_write);
	if (wishes->as_user)
		add_user();
	if (umount2(HOST, MNT_DETACH) < 0 || chdir(ROOT) < 0 ||
	    mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		agent_fail("cannot enter the lab host's root directory: %m");
}
