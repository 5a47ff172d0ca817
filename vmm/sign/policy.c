/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/sign/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/sign/host_key.h"

/* Longer ones are compared by their beginning. */
#define COMMENT_BYTES 1024

bool sign_rule_covers(const struct sign_rule *rule, struct bytes key, struct bytes comment)
{
	char text[COMMENT_BYTES], fingerprint[FINGERPRINT_BYTES];

	if (strncmp(rule->pattern, "SHA256:", 7) == 0) {
		host_key_fingerprint(key, fingerprint);
		return strcmp(rule->pattern, fingerprint) == 0;
	}
	bytes_copy_text(comment, text, sizeof(text));
	return fnmatch(rule->pattern, text, 0) == 0;
}

bool sign_rule_knows(const struct sign_rule *rule, struct bytes host_key)
{
	for (uint32_t i = 0; i < rule->host_key_count; i++) {
		const struct sign_key *known = &rule->host_keys[i];

		if (bytes_equal(host_key, (struct bytes){known->bytes, known->length}))
			return true;
	}
	return false;
}

int sign_policy_write(const struct sign_policy *policy)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	FD_CLEANUP int fd = memfd_create("ssh-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error = fd < 0 ? -errno : fd_write_full(fd, policy, sizeof(*policy));

	if (!error && (lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0))
		error = -errno;
	return error ? error : fd_take(&fd);
}

static bool is_sound(const struct sign_rule *rule)
{
	bool sound = rule->host_key_count <= LIMIT_SIGN_HOST_KEYS && rule->port &&
		     memchr(rule->host, '\0', sizeof(rule->host)) &&
		     memchr(rule->pattern, '\0', sizeof(rule->pattern));

	for (uint32_t i = 0; sound && i < rule->host_key_count; i++)
		sound = rule->host_keys[i].length <= LIMIT_SIGN_KEY_BYTES;
	return sound;
}

int sign_policy_read(struct sign_policy *policy, int fd)
{
	int error = fd_read_full(fd, policy, sizeof(*policy));

	if (!error && policy->count > LIMIT_SIGN_RULES)
		error = -EINVAL;
	for (uint32_t i = 0; !error && i < policy->count; i++)
		error = is_sound(&policy->rules[i]) ? 0 : -EINVAL;
	return error;
}
