/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/members.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"

#define BUFFER_BYTES   65536U
#define LINKS_FOLLOWED 4U

struct reader {
	int fd;
	uint64_t offset;
	uint64_t bytes;
	uint8_t buffer[BUFFER_BYTES];
};

static la_ssize_t read_bytes(struct archive *archive, void *context, const void **bytes)
{
	struct reader *reader = context;
	size_t wanted = bytes_minimum(sizeof(reader->buffer), reader->bytes - reader->offset);
	ssize_t count;

	do {
		count = pread(reader->fd, reader->buffer, wanted, (off_t)reader->offset);
	} while (count < 0 && errno == EINTR);
	if (count < 0) {
		archive_set_error(archive, errno, "%s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	reader->offset += (uint64_t)count;
	*bytes = reader->buffer;
	return count;
}

static la_int64_t skip_bytes(struct archive *archive, void *context, la_int64_t wanted)
{
	struct reader *reader = context;
	uint64_t count = bytes_minimum((uint64_t)wanted, reader->bytes - reader->offset);

	(void)archive;
	reader->offset += count;
	return (la_int64_t)count;
}

static const char *plain_name(const char *name)
{
	while (name[0] == '/' || (name[0] == '.' && name[1] == '/'))
		name++;
	return name;
}

static int add_member(struct members *members, struct archive *archive, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry), *link = archive_entry_symlink(entry);
	struct member *member;

	if (members->count == members->capacity) {
		unsigned int capacity = members->capacity ? members->capacity * 2 : 64;
		struct member *grown =
			reallocarray(members->list, capacity, sizeof(*members->list));

		if (!grown)
			return log_errno(-ENOMEM, "cannot read the archive");
		members->list = grown;
		members->capacity = capacity;
	}
	member = &members->list[members->count++];
	*member = (struct member){
		.name = strdup(plain_name(name ? name : "")),
		.link = link ? strdup(link) : NULL,
		/* The header is behind, and nothing of the contents. */
		.offset = (uint64_t)archive_filter_bytes(archive, -1),
		.size = (uint64_t)archive_entry_size(entry),
	};
	return member->name && (!link || member->link)
		       ? 0
		       : log_errno(-ENOMEM, "cannot read the archive");
}

static int scan(struct members *members, struct archive *archive)
{
	struct archive_entry *entry;

	while (members->count < LIMIT_IMAGE_MEMBERS) {
		int result = archive_read_next_header(archive, &entry);
		int error = 0;

		if (result == ARCHIVE_EOF)
			return 0;
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
			const char *words = archive_error_string(archive);

			log_error("it is no tar archive that can be read: %s",
				  words ? words : "damaged");
			return -EBADMSG;
		}
		if (archive_entry_hardlink(entry))
			continue;
		if (archive_entry_filetype(entry) == S_IFREG || archive_entry_symlink(entry))
			error = add_member(members, archive, entry);
		if (error)
			return error;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct member *left = a, *right = b;
	int order = strcmp(left->name, right->name);

	return order ? order : (left->offset > right->offset) - (left->offset < right->offset);
}

int members_scan(struct members *members, int fd, uint64_t bytes)
{
	struct archive *archive = archive_read_new();
	struct reader *reader = malloc(sizeof(*reader));
	int error = -ENOMEM;

	*members = (struct members){0};
	if (archive && reader) {
		*reader = (struct reader){.fd = fd, .bytes = bytes};
		archive_read_support_format_tar(archive);
		archive_read_support_format_empty(archive);
		error = archive_read_open2(archive, reader, NULL, read_bytes, skip_bytes, NULL)
				? -EBADMSG
				: 0;
		if (error)
			log_error("what was given is no tar archive: import takes one of the OCI, "
				  "of docker save or of a "
				  "root file system, compressed or not, or a directory");
		else
			error = scan(members, archive);
	}
	archive_read_free(archive);
	free(reader);
	if (members->count)
		qsort(members->list, members->count, sizeof(*members->list), compare);
	return error;
}

void members_free(struct members *members)
{
	for (unsigned int i = 0; i < members->count; i++) {
		free(members->list[i].name);
		free(members->list[i].link);
	}
	free(members->list);
	*members = (struct members){0};
}

/* The last one of that name. */
static const struct member *find_name(const struct members *members, const char *name)
{
	unsigned int low = 0, high = members->count;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (strcmp(members->list[middle].name, name) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && strcmp(members->list[low - 1].name, name) == 0 ? &members->list[low - 1]
								     : NULL;
}

/* Where a link leads: "../other/layer.tar" from "one/layer.tar". False: not to a plain name. */
static bool follow(const struct member *member, char path[PATH_MAX])
{
	const char *target = member->link, *slash = strrchr(member->name, '/');
	size_t length = slash ? (size_t)(slash - member->name) : 0;

	while (strncmp(target, "../", 3) == 0) {
		target += 3;
		while (length && member->name[--length] != '/')
			;
	}
	return snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, member->name, length ? "/" : "",
			plain_name(target)) < PATH_MAX;
}

const struct member *members_find(const struct members *members, const char *name)
{
	const struct member *member = find_name(members, plain_name(name));
	char path[PATH_MAX];

	for (unsigned int i = 0; member && member->link; i++) {
		if (i == LINKS_FOLLOWED || !follow(member, path))
			return NULL;
		member = find_name(members, path);
	}
	return member;
}
