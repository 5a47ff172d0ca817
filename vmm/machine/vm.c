/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/vm.h"

#include <errno.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/machine/layout.h"

static int vm_extension(const struct vm *vm, int capability)
{
	int answer = ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, capability);

	return answer < 0 ? 0 : answer;
}

static int vm_check_kvm(struct vm *vm)
{
	static const struct {
		int capability;
		const char *name;
	} needed[] = {
		{KVM_CAP_IRQCHIP, "in-kernel interrupt controllers"},
		{KVM_CAP_USER_MEMORY, "user memory slots"},
		{KVM_CAP_IRQFD, "irqfd"},
		{KVM_CAP_EXT_CPUID, "CPUID control"},
		{KVM_CAP_IMMEDIATE_EXIT, "immediate exit"},
	};
	int version = ioctl(vm->kvm_fd, KVM_GET_API_VERSION, 0);
	int run_size;

	if (version != KVM_API_VERSION) {
		log_error("this KVM speaks version %d of its interface, not %d", version,
			  KVM_API_VERSION);
		return -EOPNOTSUPP;
	}
	for (unsigned int i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (vm_extension(vm, needed[i].capability))
			continue;
		log_error("this KVM lacks %s", needed[i].name);
		return -EOPNOTSUPP;
	}
	run_size = ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (run_size < (int)sizeof(struct kvm_run))
		return log_errno(run_size < 0 ? -errno : -EPROTO, "cannot size a vCPU");
	vm->run_size = (uint32_t)run_size;
	vm->has_deadline_timer = vm_extension(vm, KVM_CAP_TSC_DEADLINE_TIMER);
	vm->has_readonly_memory = vm_extension(vm, KVM_CAP_READONLY_MEM);
	vm->has_ioeventfd = vm_extension(vm, KVM_CAP_IOEVENTFD);
	vm->postponed_page = (uint32_t)vm_extension(vm, KVM_CAP_COALESCED_MMIO);
	vm->cpuid.header.nent = CPUID_MAX_ENTRIES;
	if (ioctl(vm->kvm_fd, KVM_GET_SUPPORTED_CPUID, &vm->cpuid.header) < 0)
		return log_errno(-errno, "cannot read the processor features that KVM supports");
	return 0;
}

int vm_create(struct vm *vm, int kvm_fd)
{
	int error;

	*vm = (struct vm){.kvm_fd = kvm_fd, .vm_fd = -1};
	error = vm_check_kvm(vm);
	if (error)
		return error;
	/* EINTR is part of this call: a signal can cut it short (KVM allocates for long). */
	do {
		vm->vm_fd = ioctl(kvm_fd, KVM_CREATE_VM, 0);
	} while (vm->vm_fd < 0 && errno == EINTR);
	if (vm->vm_fd < 0)
		return log_errno(-errno, "cannot make a virtual machine");
	/* Needed on Intel hosts before the first vCPU, without meaning elsewhere: a refusal there
	 * says so when KVM_RUN is called. */
	ioctl(vm->vm_fd, KVM_SET_TSS_ADDR, LAYOUT_TSS);
	if (ioctl(vm->vm_fd, KVM_CREATE_IRQCHIP, 0) < 0) {
		error = log_errno(-errno, "cannot make the machine's interrupt controllers");
		vm_destroy(vm);
		return error;
	}
	return 0;
}

void vm_destroy(struct vm *vm)
{
	fd_close(&vm->vm_fd);
}

int vm_add_memory(struct vm *vm, uint64_t gpa, uint64_t size, void *host, bool read_only)
{
	struct kvm_userspace_memory_region region = {
		.slot = vm->slot_count,
		.flags = read_only ? KVM_MEM_READONLY : 0,
		.guest_phys_addr = gpa,
		.memory_size = size,
		.userspace_addr = (uintptr_t)host,
	};

	if (ioctl(vm->vm_fd, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return -errno;
	vm->slot_count++;
	return 0;
}

int vm_add_ioeventfd(struct vm *vm, uint64_t gpa, const uint32_t *match, int event_fd)
{
	struct kvm_ioeventfd request = {
		.datamatch = match ? *match : 0,
		.addr = gpa,
		.len = 4,
		.fd = event_fd,
		.flags = match ? KVM_IOEVENTFD_FLAG_DATAMATCH : 0,
	};

	return ioctl(vm->vm_fd, KVM_IOEVENTFD, &request) < 0 ? -errno : 0;
}

int vm_add_irqfd(struct vm *vm, uint32_t gsi, int event_fd)
{
	struct kvm_irqfd request = {.fd = (uint32_t)event_fd, .gsi = gsi};

	return ioctl(vm->vm_fd, KVM_IRQFD, &request) < 0 ? -errno : 0;
}

int vm_postpone_writes(struct vm *vm, uint64_t gpa, uint32_t length)
{
	struct kvm_coalesced_mmio_zone zone = {.addr = gpa, .size = length};

	return ioctl(vm->vm_fd, KVM_REGISTER_COALESCED_MMIO, &zone) < 0 ? -errno : 0;
}
