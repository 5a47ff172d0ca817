/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "guest/files.h"
#include "vmm/base/bytes.h"
#include "vmm/base/certificates.h"
#include "vmm/wire/session.h"

/* A bundle may end without the end of its line; empty lines do not matter. */
static int write_joined(const char *path, const char *text, const char *authority)
{
	char *joined;
	int error;

	if (asprintf(&joined, "%s\n%s", text, authority) < 0)
		return -ENOMEM;
	error = files_write(path, joined);
	free(joined);
	return error;
}

/* @whole gets the first that is there; it is allocated. */
static int add_to_bundle(const char *path, const char *authority, char **whole)
{
	char *text = NULL;
	int error = files_read(path, &text);

	if (error)
		return error;
	/* One that is not there reads as if it were empty. */
	if (*text)
		error = write_joined(path, text, authority);
	if (*text && !*whole)
		*whole = text;
	else
		free(text);
	return error;
}

int trust_add(const char *authority, struct failure *failure)
{
	char *whole = NULL;
	int error = 0;

	for (size_t i = 0; !error && i < ARRAY_SIZE(certificate_bundles); i++) {
		error = add_to_bundle(certificate_bundles[i], authority, &whole);
		if (error)
			failure_set(failure, SESSION_STAGE_SETUP, error, "writing %s",
				    certificate_bundles[i]);
	}
	if (!error && mkdir("/run/mvagent", 0755) < 0 && errno != EEXIST)
		error = failure_set(failure, SESSION_STAGE_SETUP, -errno, "making /run/mvagent");
	if (!error) {
		error = files_write(SESSION_AUTHORITY_FILE, authority);
		error = error ? error
			      : write_joined(SESSION_BUNDLE_FILE, whole ? whole : "", authority);
		if (error)
			failure_set(failure, SESSION_STAGE_SETUP, error, "writing /run/mvagent");
	}
	free(whole);
	return error;
}
