/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a virtio-fs server answers, without a guest, in real time: mvagent-fs and virtiofsd side
 * by side over vhost-user. Latency: one request at a time, this side asleep meanwhile. Throughput:
 * 1, 8 and 64 requests in flight, each answered one replaced. The servers take turns; medians.
 *
 *   native PATH-OF-MVAGENT-FS PATH-OF-VIRTIOFSD [MILLISECONDS [ROUNDS]]
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/native_machine.h"
#include "vmm/base/bytes.h"

#define SMALL_FILES  1000U
#define DATA_BYTES   (16U << 20)
#define ROUNDS_MAX   31U
#define LATENCY_MAX  200000U
#define SERVER_COUNT 2U

static const unsigned int depths[] = {1, 8, 64};

enum operation { LOOKUP, GETATTR, READ_4K, READ_1M, WRITE_4K, WRITE_1M, OPERATION_COUNT };
static const char *const operation_names[] = {"lookup",     "getattr",     "read 4 KiB",
					      "read 1 MiB", "write 4 KiB", "write 1 MiB"};

/* One server with what it told of the files. */
struct subject {
	const char *name;
	struct native_machine machine;
	uint64_t small_node;
	uint64_t data_node;
	uint64_t data_handle;
	uint64_t sequence; /* picks names and offsets */
};

struct figures {
	double latency;                      /* us: median of one request at a time */
	double late;                         /* us: 99th of 100 */
	double rate[ARRAY_SIZE(depths)];     /* requests in a second */
	double cpu_time[ARRAY_SIZE(depths)]; /* us of the server for each */
	double kicks;                        /* for each request, deepest */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void need(bool condition, const char *what)
{
	if (!condition) {
		perror(what);
		exit(1);
	}
}

static void make_file(const char *directory, const char *name, size_t size)
{
	static const char block[4096];
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	need(fd >= 0, path);
	for (size_t done = 0; done < size; done += sizeof(block))
		need(write(fd, block, sizeof(block)) == sizeof(block), path);
	close(fd);
}

static void make_tree(char *place, char *share, size_t size)
{
	need(mkdtemp(place) != NULL, place);
	snprintf(share, size, "%s/share", place);
	need(mkdir(share, 0755) == 0, share);
	for (unsigned int i = 0; i < SMALL_FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%03u", i);
		make_file(share, name, 4096);
	}
	make_file(share, "data", DATA_BYTES);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	(void)status;
	(void)flag;
	(void)walk;
	return remove(path);
}

static uint64_t look_up(struct subject *subject, const char *name)
{
	struct native_request request = {
		.opcode = FUSE_LOOKUP,
		.node = FUSE_ROOT_ID,
		.arguments = name,
		.arguments_size = (uint32_t)strlen(name) + 1,
		.reply_size = sizeof(struct fuse_entry_out),
	};
	struct fuse_entry_out entry;

	native_machine_call(&subject->machine, &request, &entry);
	return entry.nodeid;
}

static void subject_start(struct subject *subject, char *const command[], const char *socket_path)
{
	struct fuse_open_in in = {.flags = O_RDWR};
	struct native_request request = {
		.opcode = FUSE_OPEN,
		.arguments = &in,
		.arguments_size = sizeof(in),
		.reply_size = sizeof(struct fuse_open_out),
	};
	struct fuse_open_out open;

	native_machine_start(&subject->machine, command, socket_path);
	subject->small_node = look_up(subject, "f000");
	request.node = subject->data_node = look_up(subject, "data");
	native_machine_call(&subject->machine, &request, &open);
	subject->data_handle = open.fh;
}

static void add_data(struct subject *subject, unsigned int slot, bool writes, uint32_t size)
{
	uint64_t offset = subject->sequence * size % DATA_BYTES;
	struct fuse_read_in read = {
		.fh = subject->data_handle, .offset = offset, .size = size, .flags = O_RDWR};
	struct fuse_write_in write = {
		.fh = subject->data_handle, .offset = offset, .size = size, .flags = O_RDWR};
	struct native_request request = {
		.opcode = writes ? FUSE_WRITE : FUSE_READ,
		.node = subject->data_node,
		.arguments = writes ? (const void *)&write : &read,
		.arguments_size = writes ? sizeof(write) : sizeof(read),
		.write_size = writes ? size : 0,
		.read_size = writes ? 0 : size,
		.reply_size = writes ? sizeof(struct fuse_write_out) : 0,
	};

	native_machine_add(&subject->machine, slot, &request);
}

static void add_request(struct subject *subject, unsigned int slot, enum operation operation)
{
	struct fuse_getattr_in getattr = {0};
	char name[24];
	struct native_request request = {
		.opcode = operation == LOOKUP ? FUSE_LOOKUP : FUSE_GETATTR,
		.node = operation == LOOKUP ? FUSE_ROOT_ID : subject->small_node,
		.arguments = operation == LOOKUP ? (const void *)name : &getattr,
		.arguments_size = operation == LOOKUP ? 5 : sizeof(getattr),
		.reply_size = operation == LOOKUP ? sizeof(struct fuse_entry_out)
						  : sizeof(struct fuse_attr_out),
	};

	subject->sequence++;
	switch (operation) {
	case READ_4K:
	case WRITE_4K:
		add_data(subject, slot, operation == WRITE_4K, 4096);
		break;
	case READ_1M:
	case WRITE_1M:
		add_data(subject, slot, operation == WRITE_1M, 1U << 20);
		break;
	default:
		snprintf(name, sizeof(name), "f%03u",
			 (unsigned int)(subject->sequence % SMALL_FILES));
		native_machine_add(&subject->machine, slot, &request);
	}
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double percentile(double *values, unsigned int count, unsigned int percent)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return values[(uint64_t)count * percent / 100];
}

static void measure_latency(struct subject *subject, enum operation operation, double duration,
			    struct figures *figures)
{
	static double times[LATENCY_MAX];
	double start = now(), before = start;
	unsigned int count = 0;

	while (count < LATENCY_MAX && before - start < duration) {
		double after;

		add_request(subject, 0, operation);
		native_machine_show(&subject->machine);
		native_machine_wait(&subject->machine);
		after = now();
		times[count++] = after - before;
		before = after;
	}
	figures->latency = percentile(times, count, 50);
	figures->late = percentile(times, count, 99);
}

static void measure_rate(struct subject *subject, enum operation operation, double duration,
			 unsigned int index, struct figures *figures)
{
	struct native_machine *machine = &subject->machine;
	uint64_t cpu = native_machine_server_time(machine), kicks = machine->kicks;
	double start = now(), end = start;
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < depths[index]; slot++)
		add_request(subject, slot, operation);
	native_machine_show(machine);
	while (end - start < duration) {
		add_request(subject, native_machine_wait(machine), operation);
		native_machine_show(machine);
		count++;
		end = now();
	}
	for (unsigned int slot = 0; slot < depths[index]; slot++)
		native_machine_wait(machine);
	count += depths[index];
	end = now();
	figures->rate[index] = count * 1e6 / (end - start);
	figures->cpu_time[index] =
		(double)(native_machine_server_time(machine) - cpu) / 1e3 / count;
	figures->kicks = (double)(machine->kicks - kicks) / count;
}

static double median_of(const struct figures *rounds, unsigned int count, size_t offset)
{
	double values[ROUNDS_MAX] = {0};

	for (unsigned int i = 0; i < count; i++)
		memcpy(&values[i], (const uint8_t *)&rounds[i] + offset, sizeof(values[i]));
	return percentile(values, count, 50);
}

static void print_line(const char *what, const char *unit, struct figures (*rounds)[ROUNDS_MAX],
		       unsigned int count, size_t offset)
{
	double ours = median_of(rounds[0], count, offset);
	double theirs = median_of(rounds[1], count, offset);

	printf("  %-26s%12.2f%12.2f  %-14s%8.2f\n", what, ours, theirs, unit,
	       theirs > 0 ? ours / theirs : 0.0);
}

static void print_operation(enum operation operation, struct figures (*rounds)[ROUNDS_MAX],
			    unsigned int count)
{
	printf("%s\n", operation_names[operation]);
	print_line("latency, median", "us", rounds, count, offsetof(struct figures, latency));
	print_line("latency, 99 of 100", "us", rounds, count, offsetof(struct figures, late));
	for (unsigned int i = 0; i < ARRAY_SIZE(depths); i++) {
		size_t step = i * sizeof(double);
		char what[40];

		snprintf(what, sizeof(what), "%u in flight", depths[i]);
		print_line(what, "requests/s", rounds, count,
			   offsetof(struct figures, rate) + step);
		print_line("  the server's CPU time", "us/request", rounds, count,
			   offsetof(struct figures, cpu_time) + step);
	}
	print_line("  kicks, 64 in flight", "per request", rounds, count,
		   offsetof(struct figures, kicks));
}

static void measure(struct subject *subjects, double duration, unsigned int count)
{
	static struct figures rounds[SERVER_COUNT][ROUNDS_MAX];

	printf("%-28s%12s%12s  %-14s%8s\n", "", subjects[0].name, subjects[1].name, "", "ratio");
	for (enum operation operation = 0; operation < OPERATION_COUNT; operation++) {
		for (unsigned int round = 0; round < count; round++) {
			for (unsigned int i = 0; i < SERVER_COUNT; i++) {
				struct figures *figures = &rounds[i][round];

				measure_latency(&subjects[i], operation, duration, figures);
				for (unsigned int at = 0; at < ARRAY_SIZE(depths); at++)
					measure_rate(&subjects[i], operation, duration, at,
						     figures);
			}
		}
		print_operation(operation, rounds, count);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static struct subject subjects[SERVER_COUNT] = {{.name = "mvagent-fs"},
							{.name = "virtiofsd"}};
	char place[] = "/dev/shm/mvagent-bench-XXXXXX";
	char share[64], ours[64], theirs[64], source[96], option[96];
	double duration = (argc > 3 ? atof(argv[3]) : 200) * 1000;
	int rounds = argc > 4 ? atoi(argv[4]) : 5;

	if (argc < 3 || argc > 5 || duration <= 0 || rounds < 1 || rounds > (int)ROUNDS_MAX) {
		fprintf(stderr,
			"usage: %s PATH-OF-MVAGENT-FS PATH-OF-VIRTIOFSD [MILLISECONDS [ROUNDS]]\n",
			argv[0]);
		return 2;
	}
	make_tree(place, share, sizeof(share));
	snprintf(ours, sizeof(ours), "%s/ours.sock", place);
	snprintf(theirs, sizeof(theirs), "%s/theirs.sock", place);
	snprintf(source, sizeof(source), "source=%s", share);
	snprintf(option, sizeof(option), "--socket-path=%s", theirs);
	subject_start(&subjects[0],
		      (char *[]){argv[1], "--socket", ours, "--root", share, "--guest-uid", "0",
				 "--guest-gid", "0", NULL},
		      ours);
	subject_start(&subjects[1],
		      (char *[]){argv[2], option, "-o", source, "-o", "sandbox=chroot", "-o",
				 "cache=auto", NULL},
		      theirs);
	measure(subjects, duration, (unsigned int)rounds);
	for (unsigned int i = 0; i < SERVER_COUNT; i++)
		native_machine_stop(&subjects[i].machine);
	need(nftw(place, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, place);
	return 0;
}
