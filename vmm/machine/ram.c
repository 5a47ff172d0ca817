/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/machine/layout.h"

static int ram_create_file(uint64_t size)
{
	int fd = memfd_create("guest-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return log_errno(-errno, "cannot make guest memory");
	/* A device process that maps the file must never see it shrink under its feet (SIGBUS). */
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		error = -errno;
		close(fd);
		return log_errno(error, "cannot size guest memory to %llu MiB",
				 (unsigned long long)(size >> 20));
	}
	return fd;
}

int ram_create(struct ram *ram, uint64_t size)
{
	uint64_t low = size < LAYOUT_HOLE_START ? size : LAYOUT_HOLE_START;
	struct guest_memory_region region;
	int error;

	ram->memory.count = 0;
	ram->host = NULL;
	ram->mapping = (struct mapping){0};
	ram->size = size;
	ram->fd = ram_create_file(size);
	if (ram->fd < 0)
		return ram->fd;
	error = mapping_create(&ram->mapping, ram->fd, 0, size, 1);
	if (error) {
		log_errno(error, "cannot map %llu MiB of guest memory",
			  (unsigned long long)(size >> 20));
		goto fail;
	}
	ram->host = ram->mapping.host;
	/* Advice only: neither failure changes what the guest sees. */
	madvise(ram->host, size, MADV_HUGEPAGE);
	madvise(ram->host, size, MADV_DONTDUMP);

	region = (struct guest_memory_region){0, low, ram->host, (uintptr_t)ram->host};
	error = guest_memory_add(&ram->memory, &region);
	if (!error && size > low) {
		region = (struct guest_memory_region){LAYOUT_HOLE_END, size - low, ram->host + low,
						      (uintptr_t)(ram->host + low)};
		error = guest_memory_add(&ram->memory, &region);
	}
	if (!error)
		return 0;
fail:
	ram_destroy(ram);
	return error;
}

void ram_destroy(struct ram *ram)
{
	mapping_destroy(&ram->mapping);
	ram->host = NULL;
	ram->memory.count = 0;
	fd_close(&ram->fd);
}
