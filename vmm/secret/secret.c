/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

#define DIGITS     "0123456789"
#define HEX        DIGITS "abcdef"
#define LETTERS    "abcdefghijklmnopqrstuvwxyz"
#define SEPARATORS ".:"
#define ALL        DIGITS LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* What secrets of known services begin with. It says what they are and is no part of what is secret
 * in them; programs look at it. Longer ones before those that begin alike. */
static const char *const known_beginnings[] = {
	"sk-ant-api03-", "sk-ant-admin01-",
	"sk-ant-oat01-", "sk-ant-ort01-",
	"sk-ant-",       "sk-proj-",
	"sk-svcacct-",   "sk-or-v1-",
	"sk-",           "github_pat_",
	"ghp_",          "gho_",
	"ghu_",          "ghs_",
	"ghr_",          "glpat-",
	"npm_",          "pypi-",
	"hf_",           "xoxb-",
	"xoxp-",         "AIza",
	"gsk_",          "xai-",
	"pplx-",
};

const char *secret_objection(const char *value, size_t length)
{
	if (length < LIMIT_SECRET_BYTES_MIN)
		return "is too short: below 8 characters it could not be told from other text";
	if (length > LIMIT_SECRET_BYTES)
		return "is too long: 4096 characters can be given";
	for (size_t i = 0; i < length; i++) {
		if (value[i] <= ' ' || value[i] > '~')
			return "cannot stand in a request's header: it must be one line of visible "
			       "ASCII characters without spaces";
	}
	return NULL;
}

bool secret_is_for(const struct secret *secret, const char *host, uint16_t port)
{
	for (unsigned int i = 0; i < secret->host_count; i++) {
		if (secret->hosts[i].port == port && strcmp(secret->hosts[i].name, host) == 0)
			return true;
	}
	return false;
}

unsigned int secret_owner(const struct secret_set *set, unsigned int index)
{
	return set->secrets[index].counted_as ? set->secrets[index].counted_as - 1 : index;
}

/* The header of a JSON Web Token in its compact form (RFC 7515, 7.1), which says how it is signed:
 * two points part it, and it is an object of JSON. */
static size_t token_header(const char *value)
{
	const char *point = strchr(value, '.'), *next = point ? strchr(point + 1, '.') : NULL;

	if (strncmp(value, "eyJ", 3) != 0 || !next || strchr(next + 1, '.'))
		return 0;
	return (size_t)(point - value) + 1;
}

static size_t known_beginning(const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_beginnings); i++) {
		size_t length = strlen(known_beginnings[i]);

		if (strncmp(value, known_beginnings[i], length) == 0)
			return length;
	}
	return token_header(value);
}

/* One of @letters, each as likely as the others. 0 or -errno. */
static int draw(const char *letters, char *letter)
{
	const size_t count = strlen(letters);
	uint8_t byte;

	do {
		if (getrandom(&byte, 1, 0) != 1)
			return -errno;
	} while (byte >= 256 / count * count);
	*letter = letters[byte % count];
	return 0;
}

/* How many characters are no separators. */
static size_t count_drawn(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += !strchr(SEPARATORS, *text);
	return count;
}

int secret_make_placeholder(struct secret *secret)
{
	size_t from = known_beginning(secret->value);
	const char *rest = secret->value + from, *letters = ALL, *separators = SEPARATORS;
	int error = 0;

	/* What is drawn must be enough to be told from anything else. */
	if (count_drawn(rest) < LIMIT_SECRET_BYTES_MIN) {
		from = 0;
		rest = secret->value;
		separators = "";
	}
	if (rest[strspn(rest, DIGITS)] == '\0')
		letters = DIGITS;
	else if (rest[strspn(rest, HEX)] == '\0')
		letters = HEX;
	memcpy(secret->placeholder, secret->value, from);
	for (size_t i = from; !error && i < secret->length; i++) {
		if (strchr(separators, secret->value[i]))
			secret->placeholder[i] = secret->value[i];
		else
			error = draw(letters, &secret->placeholder[i]);
	}
	secret->placeholder[secret->length] = '\0';
	return error;
}

void secret_list_placeholders(const struct secret_set *set,
			      struct stream_text texts[LIMIT_SECRET_ALL])
{
	for (unsigned int i = 0; i < set->count; i++)
		texts[i] =
			(struct stream_text){set->secrets[i].placeholder, set->secrets[i].length};
}

int secret_set_write(const struct secret_set *set)
{
	FD_CLEANUP int fd = memfd_create("secrets", MFD_CLOEXEC);
	int error = fd < 0 ? -errno : 0;

	error = error ? error : fd_write_full(fd, &set->count, sizeof(set->count));
	error = error ? error
		      : fd_write_full(fd, set->secrets, set->count * sizeof(set->secrets[0]));
	if (!error && lseek(fd, 0, SEEK_SET) < 0)
		error = -errno;
	return error ? error : fd_take(&fd);
}

/* Pages that are overwritten are not given to others with what was in them. */
static int overwrite(int fd, size_t length)
{
	static const uint8_t zeros[4096];
	int error = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;

	for (size_t done = 0; !error && done < length; done += sizeof(zeros))
		error = fd_write_full(fd, zeros, sizeof(zeros));
	return error;
}

static bool is_sound(const struct secret *secret)
{
	return memchr(secret->name, '\0', sizeof(secret->name)) &&
	       secret->length <= LIMIT_SECRET_BYTES &&
	       strnlen(secret->value, sizeof(secret->value)) == secret->length &&
	       strnlen(secret->placeholder, sizeof(secret->placeholder)) == secret->length &&
	       !secret_objection(secret->value, secret->length) &&
	       memchr(secret->endpoint_path, '\0', sizeof(secret->endpoint_path)) &&
	       secret->host_count <= LIMIT_SECRET_HOSTS &&
	       secret->endpoint_host < LIMIT_SECRET_HOSTS && !secret->counted_as;
}

int secret_set_read(struct secret_set *set, int fd)
{
	int error = fd_read_full(fd, &set->count, sizeof(set->count));

	if (!error && set->count > LIMIT_SECRETS)
		error = -EINVAL;
	if (error)
		return error;
	error = fd_read_full(fd, set->secrets, set->count * sizeof(set->secrets[0]));
	for (unsigned int i = 0; !error && i < set->count; i++)
		error = is_sound(&set->secrets[i]) ? 0 : -EINVAL;
	return error ? error
		     : overwrite(fd, sizeof(set->count) + set->count * sizeof(set->secrets[0]));
}

void secret_set_wipe(struct secret_set *set)
{
	explicit_bzero(set, sizeof(*set));
}
