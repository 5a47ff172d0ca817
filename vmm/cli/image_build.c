/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/image_build.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/cli/installation.h"
#include "vmm/cli/supervisor.h"

#define POLL_US 100000U

/* In the child. It works for the user as apt does: with the user's environment, and open to the
 * terminal's signals. */
static void become_builder(const char *path, int archive_fd, char *const *packages,
			   unsigned int count)
{
	char **arguments = calloc(2 * (size_t)count + 3, sizeof(char *));
	unsigned int place = 0;
	sigset_t none;

	if (!arguments)
		_exit(1);
	arguments[place++] = (char *)(uintptr_t)path;
	arguments[place++] = (char *)(uintptr_t) "--archive";
	for (unsigned int i = 0; i < count; i++) {
		arguments[place++] = (char *)(uintptr_t) "--package";
		arguments[place++] = packages[i];
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(archive_fd, STDOUT_FILENO) >= 0)
		execv(path, arguments);
	log_errno(-errno, "cannot run %s", path);
	_exit(1);
}

static int wait_for_builder(pid_t child)
{
	int status, sent = 0;

	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);

		if (ended == child)
			break;
		if (ended < 0 && errno != EINTR)
			return log_errno(-errno, "cannot wait for the building of the image");
		/* From a terminal it has got the signal, too. */
		if (supervisor_pending_signal() && !sent) {
			kill(child, SIGTERM);
			sent = 1;
		}
		usleep(POLL_US);
	}
	if (sent) {
		log_error("interrupted; nothing was built");
		return -EINTR;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	log_error("the image was not built");
	return -EIO;
}

int image_build_archive(int archive_fd, char *const *packages, unsigned int count)
{
	struct installation installation;
	char path[PATH_MAX];
	int error = installation_find(&installation);
	pid_t child;

	error = error ? error : installation_program(&installation, "mvagent-base", path);
	if (error)
		return error;
	child = fork();
	if (child == 0)
		become_builder(path, archive_fd, packages, count);
	error = child < 0 ? log_errno(-errno, "cannot build the image") : wait_for_builder(child);
	if (!error && lseek(archive_fd, 0, SEEK_SET) < 0)
		error = log_errno(-errno, "cannot read what was built");
	return error;
}
