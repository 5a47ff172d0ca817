/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/vcpu.h"

#include <errno.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/machine/boot.h"

/* Any signal whose default action is not needed; it only has to interrupt KVM_RUN. */
#define KICK_SIGNAL SIGUSR1

#define MSR_IA32_MISC_ENABLE        0x1a0U
#define MISC_ENABLE_FAST_STRING     0x1ULL
#define MSR_IA32_MTRR_DEFAULT_TYPE  0x2ffU
#define MTRR_ENABLED_WRITE_BACK     0x806ULL
#define LOCAL_APIC_LVT_LINT0        0x350U
#define LOCAL_APIC_LVT_LINT1        0x360U
#define LVT_MODE_EXTERNAL_INTERRUPT 0x700U
#define LVT_MODE_NMI                0x400U

static void vcpu_kicked(int signal_number)
{
	(void)signal_number;
}

void vcpu_install_kick_signal(void)
{
	/* No SA_RESTART: KVM_RUN is to return EINTR. */
	struct sigaction action = {.sa_handler = vcpu_kicked};

	sigaction(KICK_SIGNAL, &action, NULL);
}

static int vcpu_set_cpuid(struct vcpu *vcpu, const struct vm *vm, unsigned int count)
{
	struct cpuid_table table = vm->cpuid;
	const char *complaint;
	int error = cpuid_adjust(&table, vcpu->id, count, vm->has_deadline_timer, &complaint);

	if (error == -EOPNOTSUPP) {
		log_error("this host cannot run the guest: %s", complaint);
		return error;
	}
	if (error)
		return log_errno(error, "cannot describe %u processors to the guest", count);
	if (ioctl(vcpu->fd, KVM_SET_CPUID2, &table.header) < 0)
		return log_errno(-errno, "KVM refused the processor features");
	return 0;
}

static int vcpu_set_msrs(struct vcpu *vcpu)
{
	struct {
		struct kvm_msrs header;
		struct kvm_msr_entry entries[2];
	} msrs = {
		.header = {.nmsrs = 2},
		.entries = {{.index = MSR_IA32_MISC_ENABLE, .data = MISC_ENABLE_FAST_STRING},
			    {.index = MSR_IA32_MTRR_DEFAULT_TYPE, .data = MTRR_ENABLED_WRITE_BACK}},
	};

	/* The count of those set: both are ones that every KVM knows. */
	if (ioctl(vcpu->fd, KVM_SET_MSRS, &msrs.header) != 2)
		return log_errno(-errno, "cannot set the processor's registers (MSR)");
	return 0;
}

/* LINT0 takes the PIC's interrupts, LINT1 is the NMI line, as firmware would leave them. */
static int vcpu_set_local_apic(struct vcpu *vcpu)
{
	struct kvm_lapic_state state;
	uint32_t value;

	if (ioctl(vcpu->fd, KVM_GET_LAPIC, &state) < 0)
		return log_errno(-errno, "cannot read the local APIC");
	value = LVT_MODE_EXTERNAL_INTERRUPT;
	memcpy(state.regs + LOCAL_APIC_LVT_LINT0, &value, sizeof(value));
	value = LVT_MODE_NMI;
	memcpy(state.regs + LOCAL_APIC_LVT_LINT1, &value, sizeof(value));
	if (ioctl(vcpu->fd, KVM_SET_LAPIC, &state) < 0)
		return log_errno(-errno, "cannot set the local APIC");
	return 0;
}

int vcpu_create(struct vcpu *vcpu, struct vm *vm, unsigned int id, unsigned int count,
		struct bus *bus, struct ending *ending)
{
	int error;

	*vcpu = (struct vcpu){.fd = -1, .id = id, .bus = bus, .ending = ending};
	vcpu->fd = ioctl(vm->vm_fd, KVM_CREATE_VCPU, id);
	if (vcpu->fd < 0)
		return log_errno(-errno, "cannot make virtual processor %u", id);
	vcpu->run_size = vm->run_size;
	vcpu->run = mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
	if (vcpu->run == MAP_FAILED) {
		vcpu->run = NULL;
		error = log_errno(-errno, "cannot map virtual processor %u", id);
		goto fail;
	}
	error = vcpu_set_cpuid(vcpu, vm, count);
	if (!error)
		error = vcpu_set_msrs(vcpu);
	if (!error)
		error = vcpu_set_local_apic(vcpu);
	if (!error)
		return 0;
fail:
	vcpu_destroy(vcpu);
	return error;
}

int vcpu_set_entry(struct vcpu *vcpu, uint64_t entry)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs;

	if (ioctl(vcpu->fd, KVM_GET_SREGS, &sregs) < 0)
		return log_errno(-errno, "cannot read the processor's registers");
	boot_set_registers(entry, &regs, &sregs);
	if (ioctl(vcpu->fd, KVM_SET_SREGS, &sregs) < 0 || ioctl(vcpu->fd, KVM_SET_REGS, &regs) < 0)
		return log_errno(-errno, "cannot set the processor's registers");
	return 0;
}

struct kvm_coalesced_mmio_ring *vcpu_postponed_ring(const struct vcpu *vcpu, const struct vm *vm,
						    unsigned int *capacity)
{
	uint64_t offset = (uint64_t)vm->postponed_page * 4096;

	if (!vm->postponed_page || !bytes_range_fits(offset, 4096, vcpu->run_size))
		return NULL;
	/* KVM_COALESCED_MMIO_MAX of the kernel's private header: what fits into a 4 KiB page. */
	*capacity =
		(4096 - sizeof(struct kvm_coalesced_mmio_ring)) / sizeof(struct kvm_coalesced_mmio);
	return (struct kvm_coalesced_mmio_ring *)((char *)vcpu->run + offset);
}

static void vcpu_handle_port(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	char *data = (char *)vcpu->run + run->io.data_offset;

	/* String instructions come as several accesses to one port. */
	for (uint32_t i = 0; i < run->io.count; i++, data += run->io.size) {
		if (run->io.direction == KVM_EXIT_IO_OUT)
			bus_port_write(vcpu->bus, run->io.port, data, run->io.size);
		else
			bus_port_read(vcpu->bus, run->io.port, data, run->io.size);
	}
}

static void vcpu_handle_mmio(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;

	if (run->mmio.len > sizeof(run->mmio.data))
		return;
	if (run->mmio.is_write)
		bus_write(vcpu->bus, run->mmio.phys_addr, run->mmio.data, run->mmio.len);
	else
		bus_read(vcpu->bus, run->mmio.phys_addr, run->mmio.data, run->mmio.len);
}

static void vcpu_report_internal_error(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	struct kvm_regs regs = {0};

	ioctl(vcpu->fd, KVM_GET_REGS, &regs);
	ending_give(vcpu->ending, MONITOR_REASON_INTERNAL_ERROR,
		    "KVM could not go on with virtual processor %u (internal error %u at guest "
		    "address 0x%llx)",
		    vcpu->id, run->internal.suberror, (unsigned long long)regs.rip);
}

/* Returns whether the processor goes on. */
static bool vcpu_handle_exit(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		vcpu_handle_port(vcpu);
		return true;
	case KVM_EXIT_MMIO:
		vcpu_handle_mmio(vcpu);
		return true;
	case KVM_EXIT_INTR:
		return true;
	default:
		break;
	}
	exits_count_other(vcpu->bus->exits);
	switch (run->exit_reason) {
	case KVM_EXIT_SHUTDOWN:
		ending_give(vcpu->ending, MONITOR_REASON_TRIPLE_FAULT,
			    "virtual processor %u had a triple fault", vcpu->id);
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		vcpu_report_internal_error(vcpu);
		break;
	case KVM_EXIT_FAIL_ENTRY:
		ending_give(vcpu->ending, MONITOR_REASON_INTERNAL_ERROR,
			    "KVM could not enter the guest (hardware reason 0x%llx)",
			    (unsigned long long)run->fail_entry.hardware_entry_failure_reason);
		break;
	default:
		ending_give(vcpu->ending, MONITOR_REASON_INTERNAL_ERROR,
			    "virtual processor %u left the guest for reason %u, which this machine "
			    "does not know",
			    vcpu->id, run->exit_reason);
		break;
	}
	return false;
}

static void *vcpu_thread(void *argument)
{
	struct vcpu *vcpu = argument;
	char name[16];

	snprintf(name, sizeof(name), "vcpu-%u", vcpu->id);
	pthread_setname_np(pthread_self(), name);
	while (!__atomic_load_n(&vcpu->run->immediate_exit, __ATOMIC_RELAXED)) {
		if (ioctl(vcpu->fd, KVM_RUN, 0) == 0) {
			if (!vcpu_handle_exit(vcpu))
				break;
		} else if (errno == EINTR || errno == EAGAIN) {
			exits_count_interrupted(vcpu->bus->exits);
		} else {
			int error = errno;

			ending_give(vcpu->ending, MONITOR_REASON_INTERNAL_ERROR,
				    "KVM_RUN of virtual processor %u failed: %s", vcpu->id,
				    strerror(error));
			break;
		}
	}
	return NULL;
}

int vcpu_start(struct vcpu *vcpu)
{
	int error = pthread_create(&vcpu->thread, NULL, vcpu_thread, vcpu);

	if (error)
		return log_errno(-error, "cannot start the thread of virtual processor %u",
				 vcpu->id);
	vcpu->started = true;
	return 0;
}

void vcpu_stop(struct vcpu *vcpu)
{
	if (!vcpu->started)
		return;
	/* The flag ends a KVM_RUN that has not begun, the signal one that has. */
	__atomic_store_n(&vcpu->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	pthread_kill(vcpu->thread, KICK_SIGNAL);
}

void vcpu_destroy(struct vcpu *vcpu)
{
	if (vcpu->started)
		pthread_join(vcpu->thread, NULL);
	vcpu->started = false;
	if (vcpu->run)
		munmap(vcpu->run, vcpu->run_size);
	vcpu->run = NULL;
	fd_close(&vcpu->fd);
}
