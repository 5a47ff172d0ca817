/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/verify_key.h"

#include <errno.h>
#include <limits.h>

#include "vmm/base/log.h"
#include "vmm/record/store.h"
#include "vmm/review/store.h"

int verify_key_find(const char *given, const char *what, uint8_t key[KEY_BYTES])
{
	char path[PATH_MAX];
	int error = given ? 0 : review_state_path(path, RECORD_KEY_NAME ".pub");

	error = error ? error : record_key_read_public(given ? given : path, key);
	if (error == -ENOENT && given)
		log_error("--key %s: there is no such file", given);
	else if (error == -ENOENT)
		log_error(
			"you have no key of your own (%s): give the public key of who made the %s "
			"with --key",
			path, what);
	return error;
}
