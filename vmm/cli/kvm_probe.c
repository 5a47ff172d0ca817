/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/kvm_probe.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/cli/kvm_access.h"

/* Rounds of the loop, and how often it is timed: the best counts, since a busy host only ever makes
 * it slower. Two instructions take about 1 ns on hardware, up to about 80 in an emulator with
 * nested paging, 1,200 where KVM itself emulates each instruction. */
#define LOOP_ROUNDS      5000U
#define LOOP_ATTEMPTS    3
#define SOFTWARE_LOOP_NS 300.0
#define CODE_GPA         0x1000U
#define PAGE_BYTES       0x1000U

static bool processor_has_virtualization(void)
{
	unsigned int a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d) && (c & (1U << 5)))
		return true;                                               /* VMX */
	return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & (1U << 2)); /* SVM */
}

/* Runs the loop on a vCPU in real mode (CPL 0) until it halts. Returns ns for all rounds, or
 * -errno. */
static int64_t probe_run_loop(int vcpu_fd, int kvm_fd)
{
	int size = ioctl(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct timespec before, after;
	struct kvm_sregs sregs;
	struct kvm_regs regs = {.rip = CODE_GPA, .rflags = 2, .rcx = LOOP_ROUNDS};
	struct kvm_run *run;
	int64_t result = -EIO;

	if (size < (int)sizeof(*run))
		return -EPROTO;
	run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu_fd, 0);
	if (run == MAP_FAILED)
		return -errno;
	if (ioctl(vcpu_fd, KVM_GET_SREGS, &sregs) < 0)
		goto out;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(vcpu_fd, KVM_SET_SREGS, &sregs) < 0 || ioctl(vcpu_fd, KVM_SET_REGS, &regs) < 0)
		goto out;
	/* This thread's time, guest included, and not that of others which it waits for. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	if (ioctl(vcpu_fd, KVM_RUN, 0) < 0 || run->exit_reason != KVM_EXIT_HLT)
		goto out;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	result = (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
out:
	munmap(run, (size_t)size);
	return result;
}

/* A VM of one page: dec cx; jnz -3; hlt. */
static int64_t probe_measure(int kvm_fd)
{
	static const uint8_t code[] = {0x49, 0x75, 0xfd, 0xf4};
	struct kvm_userspace_memory_region region = {.guest_phys_addr = CODE_GPA,
						     .memory_size = PAGE_BYTES};
	int FD_CLEANUP vcpu_fd = -1;
	int FD_CLEANUP vm_fd = ioctl(kvm_fd, KVM_CREATE_VM, 0);
	int64_t result = -EIO;
	void *page;

	if (vm_fd < 0)
		return -errno;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	memcpy(page, code, sizeof(code));
	region.userspace_addr = (uintptr_t)page;
	if (ioctl(vm_fd, KVM_SET_USER_MEMORY_REGION, &region) == 0) {
		vcpu_fd = ioctl(vm_fd, KVM_CREATE_VCPU, 0);
		if (vcpu_fd >= 0)
			result = probe_run_loop(vcpu_fd, kvm_fd);
	}
	munmap(page, PAGE_BYTES);
	return result;
}

static void probe_say_open_failed(struct kvm_probe *probe, int error)
{
	if (error == ENOENT || error == ENXIO || error == ENODEV) {
		probe->state = KVM_STATE_ABSENT;
		snprintf(probe->sentence, sizeof(probe->sentence),
			 "there is no /dev/kvm: load the kernel's kvm_intel or kvm_amd module, "
			 "switch "
			 "on virtualization in the firmware, or, in a virtual machine, enable "
			 "nested "
			 "virtualization on its host; without any of these, try it in tools/lab");
	} else if (error == EACCES || error == EPERM) {
		probe->state = KVM_STATE_FORBIDDEN;
		kvm_access_explain_device(probe->sentence, sizeof(probe->sentence));
	} else {
		probe->state = KVM_STATE_BROKEN;
		snprintf(probe->sentence, sizeof(probe->sentence), "cannot open /dev/kvm: %s",
			 strerror(error));
	}
}

static void probe_judge(struct kvm_probe *probe)
{
	for (int attempt = 0; attempt < LOOP_ATTEMPTS; attempt++) {
		int64_t total = probe_measure(probe->fd);

		if (total < 0) {
			probe->state = KVM_STATE_BROKEN;
			snprintf(probe->sentence, sizeof(probe->sentence),
				 "/dev/kvm does not run even a trivial guest: %s",
				 strerror((int)-total));
			return;
		}
		probe->loop_ns = (double)total / LOOP_ROUNDS;
		if (probe->loop_ns < SOFTWARE_LOOP_NS)
			return;
	}
	probe->state = KVM_STATE_SOFTWARE;
	snprintf(probe->sentence, sizeof(probe->sentence),
		 "/dev/kvm here is a software KVM without the processor's virtualization (%.0f ns "
		 "for "
		 "two instructions of a guest kernel), and Linux cannot boot on it: use a machine "
		 "with "
		 "hardware KVM, enable nested virtualization on its host, or try it in tools/lab",
		 probe->loop_ns);
}

void kvm_probe(struct kvm_probe *probe, int measure)
{
	*probe = (struct kvm_probe){.state = KVM_STATE_HARDWARE};
	probe->fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (probe->fd < 0) {
		probe_say_open_failed(probe, errno);
		return;
	}
	if (ioctl(probe->fd, KVM_GET_API_VERSION, 0) != KVM_API_VERSION) {
		probe->state = KVM_STATE_BROKEN;
		snprintf(probe->sentence, sizeof(probe->sentence),
			 "/dev/kvm does not answer as KVM does: is it the right device?");
		return;
	}
	if (measure || !processor_has_virtualization())
		probe_judge(probe);
}
