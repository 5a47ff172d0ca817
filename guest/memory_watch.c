/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/memory_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* Of /proc/meminfo the first lines count; /proc/vmstat has some two hundred. */
#define MEMINFO_BYTES 512
#define VMSTAT_BYTES  8192

int memory_watch_open(struct memory_watch *watch)
{
	*watch = MEMORY_WATCH_NONE;
	watch->meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	watch->vmstat_fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	if (watch->meminfo_fd >= 0 && watch->vmstat_fd >= 0)
		return 0;
	memory_watch_close(watch);
	return -ENOENT;
}

void memory_watch_close(struct memory_watch *watch)
{
	fd_close(&watch->vmstat_fd);
	fd_close(&watch->meminfo_fd);
}

/* The beginning of a file of /proc, terminated; empty when it cannot be read. */
static void read_text(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t count;

	while (length < size - 1 &&
	       (count = pread(fd, text + length, size - 1 - length, (off_t)length)) > 0)
		length += (size_t)count;
	text[length] = '\0';
}

/* The number after a line's name. False: there is no such line. */
static bool find_number(const char *text, const char *name, uint64_t *number)
{
	const size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0) {
			*number = strtoull(line + length, NULL, 10);
			return true;
		}
	}
	return false;
}

unsigned int memory_watch_percent(const char *meminfo)
{
	uint64_t total, available;

	if (!find_number(meminfo, "MemTotal:", &total) ||
	    !find_number(meminfo, "MemAvailable:", &available) || !total || available > total)
		return 0;
	return (unsigned int)((total - available) * 100 / total);
}

static bool has_run_out(int vmstat_fd)
{
	char text[VMSTAT_BYTES];
	uint64_t kills;

	read_text(vmstat_fd, text, sizeof(text));
	return find_number(text, "oom_kill ", &kills) && kills;
}

uint32_t memory_watch_look(struct memory_watch *watch)
{
	static const uint32_t levels[] = {SESSION_MEMORY_HIGH, SESSION_MEMORY_VERY_HIGH};
	char text[MEMINFO_BYTES];
	unsigned int percent;

	if (watch->meminfo_fd < 0)
		return 0;
	read_text(watch->meminfo_fd, text, sizeof(text));
	percent = memory_watch_percent(text);
	for (int i = 1; i >= 0; i--) {
		if (percent < levels[i] || watch->told[levels[i]])
			continue;
		/* Of both the higher one says it all. */
		watch->told[SESSION_MEMORY_HIGH] = watch->told[levels[i]] = true;
		return levels[i];
	}
	if (watch->told[SESSION_MEMORY_OUT] || !has_run_out(watch->vmstat_fd))
		return 0;
	watch->told[SESSION_MEMORY_OUT] = true;
	return SESSION_MEMORY_OUT;
}
