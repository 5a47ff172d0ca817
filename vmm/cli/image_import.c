/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/image_import.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/image_store.h"
#include "vmm/cli/installation.h"
#include "vmm/cli/process.h"
#include "vmm/cli/supervisor.h"

#define POLL_MS 100

/* Waits for its end; a signal to us ends it first. 0 or -errno. */
static int wait_for_maker(struct process *process)
{
	int status;

	while (!process_wait(process, POLL_MS, &status)) {
		messages_pass(&process->messages);
		if (!supervisor_pending_signal())
			continue;
		process_kill(process);
		log_error("interrupted; nothing was imported");
		return -EINTR;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		log_error("mvagent-image was ended by signal %d; nothing was imported",
			  WTERMSIG(status));
	return -EIO;
}

/* Starts mvagent-image with its files and waits for it. */
static int make_image(const struct image_import *import, const struct image_store_new *files,
		      int plain_fd, int contents_fd)
{
	struct installation installation;
	struct process_plan plan;
	struct process process;
	struct stat status;
	char path[PATH_MAX];
	bool is_directory;
	int error = installation_find(&installation);

	error = error ? error : installation_program(&installation, "mvagent-image", path);
	if (error)
		return error;
	if (fstat(import->source_fd, &status) < 0)
		return log_errno(-errno, "cannot look at what is to be imported");
	is_directory = S_ISDIR(status.st_mode);
	process_plan_init(&plan, "mvagent-image", path);
	process_plan_add_fd(&plan, is_directory ? "--directory-fd" : "--archive-fd", "",
			    import->source_fd);
	process_plan_add_fd(&plan, "--plain-fd", "", plain_fd);
	process_plan_add_fd(&plan, "--contents-fd", "", contents_fd);
	process_plan_add_fd(&plan, "--image-fd", "", files->image_fd);
	process_plan_add_fd(&plan, "--descriptor-fd", "", files->descriptor_fd);
	process_plan_add(&plan, "--maximum");
	process_plan_add(&plan, "%llu", (unsigned long long)import->maximum);
	/* In a user namespace other owners have no numbers; and who is not root owns all there. */
	if (geteuid() != 0)
		process_plan_add(&plan, "--all-root");
	if (import->allow_degraded)
		process_plan_add(&plan, "--allow-degraded");
	error = process_start(&process, &plan);
	return error ? error : wait_for_maker(&process);
}

int image_import_begin(void)
{
	FD_CLEANUP int store_fd = image_store_open(true);
	int error = store_fd < 0 ? store_fd : image_store_lock(store_fd);

	if (error)
		return error;
	supervisor_block_signals();
	return fd_take(&store_fd);
}

int image_import(int store_fd, const struct image_import *import, uint8_t digest[SHA256_BYTES])
{
	FD_CLEANUP int plain_fd = -1;
	FD_CLEANUP int contents_fd = -1;
	struct image_store_new files;
	int error = image_store_begin(store_fd, &files);

	if (error)
		return error;
	plain_fd = image_store_scratch(store_fd);
	contents_fd = image_store_scratch(store_fd);
	error = plain_fd < 0 ? plain_fd : contents_fd < 0 ? contents_fd : 0;
	error = error ? error : make_image(import, &files, plain_fd, contents_fd);
	error = error ? error : image_store_finish(store_fd, &files, digest);
	image_store_abort(store_fd, &files);
	return error ? error : image_store_set_name(store_fd, import->name, digest);
}
