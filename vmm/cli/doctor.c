/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/doctor.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/cli/cgroup.h"
#include "vmm/cli/diagnosis.h"
#include "vmm/cli/doctor_jail.h"
#include "vmm/cli/doctor_share.h"
#include "vmm/cli/installation.h"
#include "vmm/cli/kvm_probe.h"
#include "vmm/cli/outcome.h"

static const char usage[] =
	"usage: mvagent doctor [--json]\n"
	"Checks whether this machine can run mvagent, and says what to do where it cannot.\n"
	"\n"
	"  --json            as a JSON object\n"
	"  -h, --help        this text\n"
	"\n"
	"Exit status: 0 when it can, 125 when something that is needed is missing.\n";

/* A filter of system calls around mvagent may forbid what the kernel has: that of systemd's
 * RestrictSUIDSGID= cannot look into its arguments. */
static bool has_openat2(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC};
	int FD_CLEANUP fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	return fd >= 0 || errno != ENOSYS;
}

static void check_kernel(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "host kernel", true);
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	check->good = sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
		      (major > 5 || (major == 5 && minor >= 12)); /* mount_setattr */
	snprintf(check->text, sizeof(check->text), "Linux %s%s", name.release,
		 check->good ? "" : ": 5.12 or newer is needed");
	if (check->good && !has_openat2()) {
		check->good = false;
		snprintf(
			check->text, sizeof(check->text),
			"Linux %s, but a filter around mvagent forbids openat2(2); in a service of "
			"systemd, leave out RestrictSUIDSGID=",
			name.release);
	}
}

static void check_kvm(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "KVM", true);
	struct kvm_probe probe;

	kvm_probe(&probe, 1);
	fd_close(&probe.fd);
	check->good = probe.state == KVM_STATE_HARDWARE;
	if (check->good)
		snprintf(check->text, sizeof(check->text),
			 "hardware (%.2f ns for two instructions of a guest kernel)",
			 probe.loop_ns);
	else
		snprintf(check->text, sizeof(check->text), "%s", probe.sentence);
}

static void check_io_uring(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "io_uring", false);
	struct io_uring_params params = {0};
	int FD_CLEANUP fd = (int)syscall(SYS_io_uring_setup, 4, &params);

	check->good = fd >= 0;
	snprintf(check->text, sizeof(check->text), "%s%s%s",
		 check->good ? "available" : "refused: ", check->good ? "" : strerror(errno),
		 check->good ? ""
			     : " (kernel.io_uring_disabled, or a seccomp filter); epoll is used");
}

static void check_memory(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "memory", true);
	long available = sysconf(_SC_AVPHYS_PAGES) / 256;

	check->good = available >= LIMIT_MEMORY_MIN_MIB;
	snprintf(check->text, sizeof(check->text), "%ld MiB free now", available);
}

static void check_cgroup(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "cgroup", false);

	check->good = cgroup_describe(check->text, sizeof(check->text));
}

static void check_part(struct diagnosis *diagnosis, const char *name, const char *path, int mode,
		       const char *remedy)
{
	struct check *check = diagnosis_add(diagnosis, name, true);

	check->good = access(path, mode) == 0;
	if (check->good)
		snprintf(check->text, sizeof(check->text), "%.500s", path);
	else
		snprintf(check->text, sizeof(check->text), "%.400s: %s; %s", path, strerror(errno),
			 remedy);
}

static int check_parts(struct diagnosis *diagnosis)
{
	static const char *const programs[] = {"mvagent-vmm",   "mvagent-fs",    "mvagent-blk",
					       "mvagent-image", "mvagent-relay", "mvagent-secret",
					       "mvagent-sign"};
	struct installation installation;
	char path[PATH_MAX];
	int error = installation_find(&installation);

	if (error)
		return error;
	for (unsigned int i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (installation_program(&installation, programs[i], path) == 0)
			check_part(diagnosis, programs[i], path, X_OK, "run 'make'");
	}
	if (installation_file(&installation, "vmlinux", path) == 0)
		check_part(diagnosis, "guest kernel", path, R_OK, "run 'make'");
	if (installation_file(&installation, "initramfs.cpio", path) == 0)
		check_part(diagnosis, "guest init", path, R_OK, "run 'make'");
	return 0;
}

static bool diagnosis_good(const struct diagnosis *diagnosis)
{
	for (unsigned int i = 0; i < diagnosis->count; i++) {
		if (diagnosis->checks[i].needed && !diagnosis->checks[i].good)
			return false;
	}
	return true;
}

static void print_text(const struct diagnosis *diagnosis)
{
	for (unsigned int i = 0; i < diagnosis->count; i++) {
		const struct check *check = &diagnosis->checks[i];

		printf("%-4s %-14s %s\n",
		       check->good     ? "ok"
		       : check->needed ? "NO"
				       : "note",
		       check->name, check->text);
	}
	puts(diagnosis_good(diagnosis) ? "mvagent can run here" : "mvagent cannot run here");
}

static void print_json(const struct diagnosis *diagnosis)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *checks = cJSON_AddArrayToObject(root, "checks");
	char *text;

	cJSON_AddBoolToObject(root, "can_run", diagnosis_good(diagnosis));
	for (unsigned int i = 0; i < diagnosis->count; i++) {
		cJSON *check = cJSON_CreateObject();

		cJSON_AddStringToObject(check, "name", diagnosis->checks[i].name);
		cJSON_AddBoolToObject(check, "good", diagnosis->checks[i].good);
		cJSON_AddBoolToObject(check, "needed", diagnosis->checks[i].needed);
		cJSON_AddStringToObject(check, "text", diagnosis->checks[i].text);
		cJSON_AddItemToArray(checks, check);
	}
	text = cJSON_Print(root);
	if (text)
		puts(text);
	free(text);
	cJSON_Delete(root);
}

int doctor_command(int argc, char **argv)
{
	struct diagnosis diagnosis = {0};
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 1 && !json) {
		log_error("doctor: unexpected argument '%s'; see 'mvagent doctor --help'", argv[1]);
		return EXIT_MVAGENT;
	}
	check_kernel(&diagnosis);
	check_kvm(&diagnosis);
	check_io_uring(&diagnosis);
	doctor_check_jail(&diagnosis);
	doctor_check_share(&diagnosis);
	check_memory(&diagnosis);
	check_cgroup(&diagnosis);
	if (check_parts(&diagnosis) < 0)
		return EXIT_MVAGENT;
	if (json)
		print_json(&diagnosis);
	else
		print_text(&diagnosis);
	return diagnosis_good(&diagnosis) ? 0 : EXIT_MVAGENT;
}
