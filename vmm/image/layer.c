/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/root/erofs_xattr.h"

#define WHITEOUT        ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define WHITEOUT_META   ".wh..wh." /* what AUFS keeps for itself */

struct layer {
	const struct layer_target *target;
	struct stream *stream;
	struct archive *archive;
	struct archive_entry *entry;
	const char *path;
	bool whiteouts;
	int error; /* of the stream, whose sentence is printed */
};

/* The sentence for what merge.h returns. */
static int explain_path(const char *path, int error)
{
	static const struct {
		int error;
		const char *words;
	} reasons[] = {
		{-EINVAL, "is no name inside of an image"},
		{-ENAMETOOLONG, "is longer or deeper than a path can be"},
		{-ELOOP, "lies behind too many symbolic links"},
		{-ENOTDIR, "lies below something that is no directory"},
		{-ENOENT, "is a hard link to what is not there"},
		{-EISDIR, "is a hard link to a directory"},
		{-E2BIG, "is one name, or one byte of names, more than an image can have"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].error != error)
			continue;
		log_error("the archive cannot be imported: '%.400s' %s", path, reasons[i].words);
		return error;
	}
	return error ? log_errno(error, "cannot import '%.400s'", path) : 0;
}

static la_ssize_t give_bytes(struct archive *archive, void *context, const void **bytes)
{
	struct layer *layer = context;
	int64_t count = stream_next(layer->stream, bytes);

	if (count >= 0)
		return count;
	layer->error = (int)count;
	archive_set_error(archive, (int)-count, "it cannot be read");
	return ARCHIVE_FATAL;
}

static int explain_archive(const struct layer *layer)
{
	const char *words = archive_error_string(layer->archive);

	if (layer->error)
		return layer->error;
	log_error("the archive is no tar archive that can be read: %s", words ? words : "damaged");
	return -EBADMSG;
}

/* Attributes that do not fit are left out, and counted. */
static void gather_xattrs(const struct layer *layer, struct erofs_xattrs *xattrs)
{
	const char *name;
	const void *value;
	size_t length;

	xattrs->length = 0;
	archive_entry_xattr_reset(layer->entry);
	while (archive_entry_xattr_next(layer->entry, &name, &value, &length) == ARCHIVE_OK) {
		if (name && erofs_xattr_is_kept(name) &&
		    erofs_xattr_add(xattrs, name, value, length))
			layer->target->counts->attributes++;
	}
}

static int gather_attributes(const struct layer *layer, struct merge_attributes *attributes,
			     struct erofs_xattrs *xattrs)
{
	int64_t uid = archive_entry_uid(layer->entry), gid = archive_entry_gid(layer->entry);
	long ns = archive_entry_mtime_nsec(layer->entry);

	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX) {
		log_error("the archive cannot be imported: '%.400s' belongs to %lld:%lld, which "
			  "are no numbers of a user and a group",
			  layer->path, (long long)uid, (long long)gid);
		return -EINVAL;
	}
	gather_xattrs(layer, xattrs);
	*attributes = (struct merge_attributes){
		.mode = archive_entry_perm(layer->entry) & 07777,
		.uid = (uint32_t)uid,
		.gid = (uint32_t)gid,
		.mtime = archive_entry_mtime(layer->entry),
		.mtime_ns = ns < 0 || ns > 999999999 ? 0 : (uint32_t)ns,
		.xattrs = xattrs->bytes,
		.xattr_bytes = xattrs->length,
	};
	return 0;
}

static int copy_contents(struct layer *layer, uint64_t place, uint64_t size)
{
	const void *bytes;
	size_t length;
	la_int64_t offset;
	int result, error;

	for (;;) {
		result = archive_read_data_block(layer->archive, &bytes, &length, &offset);
		if (result == ARCHIVE_EOF)
			return 0;
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
			return explain_archive(layer);
		if (offset < 0 || (uint64_t)offset > size || length > size - (uint64_t)offset) {
			log_error("the archive cannot be imported: '%.400s' is longer than it says",
				  layer->path);
			return -EBADMSG;
		}
		error = contents_write(layer->target->contents, place + (uint64_t)offset, bytes,
				       length);
		if (error)
			return error;
	}
}

static int apply_file(struct layer *layer, const struct merge_attributes *attributes)
{
	la_int64_t size = archive_entry_size(layer->entry);
	uint64_t place;
	int error;

	if (size < 0) {
		log_error("the archive cannot be imported: '%.400s' has no size", layer->path);
		return -EBADMSG;
	}
	error = contents_begin(layer->target->contents, (uint64_t)size, &place);
	error = error ? error : copy_contents(layer, place, (uint64_t)size);
	if (error)
		return error;
	return explain_path(layer->path, merge_put_file(layer->target->merge, layer->path,
							attributes, (uint64_t)size, place));
}

static int apply_whiteout(struct layer *layer, const char *name)
{
	char path[PATH_MAX];
	int length;

	if (strcmp(name, WHITEOUT_OPAQUE) == 0)
		return explain_path(layer->path,
				    merge_remove_around(layer->target->merge, layer->path));
	if (strncmp(name, WHITEOUT_META, strlen(WHITEOUT_META)) == 0)
		return 0;
	length = snprintf(path, sizeof(path), "%.*s%s", (int)(name - layer->path), layer->path,
			  name + strlen(WHITEOUT));
	if (length >= (int)sizeof(path))
		return explain_path(layer->path, -ENAMETOOLONG);
	return explain_path(layer->path, merge_remove(layer->target->merge, path));
}

static int apply_by_type(struct layer *layer, const struct merge_attributes *attributes)
{
	struct merge *merge = layer->target->merge;
	const char *target = archive_entry_symlink(layer->entry);

	switch (archive_entry_filetype(layer->entry)) {
	case S_IFDIR:
		return explain_path(layer->path,
				    merge_put_directory(merge, layer->path, attributes));
	case S_IFREG:
		return apply_file(layer, attributes);
	case S_IFLNK:
		return explain_path(layer->path, merge_put_symlink(merge, layer->path, attributes,
								   target ? target : ""));
	default:
		/* The guest has its own /dev, and whoever listens at a socket is elsewhere. */
		layer->target->counts->special++;
		return explain_path(layer->path, merge_remove(merge, layer->path));
	}
}

static int apply_entry(struct layer *layer)
{
	const char *link = archive_entry_hardlink(layer->entry);
	struct merge_attributes attributes;
	struct erofs_xattrs xattrs;
	const char *name;
	int error;

	layer->path = archive_entry_pathname(layer->entry);
	if (!layer->path)
		layer->path = "";
	layer->target->counts->entries++;
	name = strrchr(layer->path, '/');
	name = name ? name + 1 : layer->path;
	if (layer->whiteouts && strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
		return apply_whiteout(layer, name);
	if (link)
		return explain_path(layer->path,
				    merge_put_link(layer->target->merge, layer->path, link));
	error = gather_attributes(layer, &attributes, &xattrs);
	return error ? error : apply_by_type(layer, &attributes);
}

static int apply_all(struct layer *layer)
{
	for (;;) {
		/* Names that are not in this process's character set, which is ASCII, are a
		 * warning, and the bytes are as the archive has them. */
		int result = archive_read_next_header(layer->archive, &layer->entry);
		int error;

		if (result == ARCHIVE_EOF)
			return 0;
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
			return explain_archive(layer);
		/* Names bound themselves; entries without one would not. */
		if (layer->target->counts->entries >= 4ULL * LIMIT_IMAGE_ENTRIES) {
			log_error("the archive has more than %u entries", 4 * LIMIT_IMAGE_ENTRIES);
			return -E2BIG;
		}
		error = apply_entry(layer);
		if (error)
			return error;
	}
}

void layer_prepare(void)
{
	iconv_t conversion = iconv_open(nl_langinfo(CODESET), "UTF-8");

	if (conversion != (iconv_t)-1)
		iconv_close(conversion);
}

int layer_apply(const struct layer_target *target, struct stream *stream, bool whiteouts)
{
	struct layer layer = {
		.target = target,
		.stream = stream,
		.archive = archive_read_new(),
		.whiteouts = whiteouts,
	};
	int error = 0;

	if (!layer.archive)
		return log_errno(-ENOMEM, "cannot read the archive");
	merge_begin_layer(target->merge);
	archive_read_support_format_tar(layer.archive);
	archive_read_support_format_empty(layer.archive);
	if (archive_read_open(layer.archive, &layer, NULL, give_bytes, NULL) != ARCHIVE_OK)
		error = explain_archive(&layer);
	error = error ? error : apply_all(&layer);
	archive_read_free(layer.archive);
	return error ? error : stream_finish(stream);
}
