/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/doctor_share.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "vmm/cli/review_probe.h"
#include "vmm/fs/watch.h"
#include "vmm/review/diff_process.h"

/* As mvagent-fs does it. */
static void check_watch(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "fanotify", false);
	struct watch *watch;
	int error = watch_create(&watch);

	check->good = !error;
	if (error) {
		snprintf(check->text, sizeof(check->text),
			 "refused: %s (Linux 5.13 or newer lets users have it, some containers do "
			 "not): a guest may believe names and attributes of a share for a second",
			 strerror(-error));
		return;
	}
	watch_destroy(watch);
	snprintf(check->text, sizeof(check->text),
		 "guests learn at once what the host changes in a share");
}

static void check_review(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "review", false);
	char directory[PATH_MAX];
	const char *lacking;
	int error = review_probe_store(directory, &lacking);

	check->good = !error;
	if (error)
		snprintf(check->text, sizeof(check->text),
			 "--share DIR:review cannot be had: %.300s takes no %s: %s; set "
			 "XDG_STATE_HOME to a directory on ext4, xfs, btrfs or a newer tmpfs",
			 directory, lacking, strerror(-error));
	else
		snprintf(check->text, sizeof(check->text),
			 "--share DIR:review can keep its changes below %.400s", directory);
}

static void check_diff(struct diagnosis *diagnosis)
{
	struct check *check = diagnosis_add(diagnosis, "diff", false);
	const char *program = diff_process_find();

	check->good = program != NULL;
	snprintf(check->text, sizeof(check->text), "%s",
		 program ? program : "not found: 'mvagent diff' needs it (install diffutils)");
}

void doctor_check_share(struct diagnosis *diagnosis)
{
	check_watch(diagnosis);
	check_review(diagnosis);
	check_diff(diagnosis);
}
