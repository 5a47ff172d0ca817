/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"

#define BUFFER_BYTES (256U << 10)

struct stream {
	struct stream_source source;
	struct archive *archive;
	uint64_t *left;
	bool at_end;
	int error; /* of reading the source */
	struct sha256 packed;
	struct sha256 unpacked;
	uint8_t buffer[BUFFER_BYTES];
};

/* The next bytes of the source into the buffer. Their count, 0 at the end, or -errno. */
static int64_t read_source(struct stream *stream)
{
	struct stream_source *source = &stream->source;
	size_t wanted = sizeof(stream->buffer);
	ssize_t count;

	if (!source->is_pipe)
		wanted = bytes_minimum(wanted, source->end - source->offset);
	if (!wanted)
		return 0;
	do {
		count = source->is_pipe
				? read(source->fd, stream->buffer, wanted)
				: pread(source->fd, stream->buffer, wanted, (off_t)source->offset);
	} while (count < 0 && errno == EINTR);
	if (count < 0)
		return log_errno(-errno, "cannot read the archive");
	if (count == 0 && !source->is_pipe) {
		log_error("the archive became shorter while it was read");
		return -ENODATA;
	}
	source->offset += (uint64_t)count;
	sha256_add(&stream->packed, stream->buffer, (size_t)count);
	return count;
}

static la_ssize_t give_bytes(struct archive *archive, void *context, const void **bytes)
{
	struct stream *stream = context;
	int64_t count = stream->error ? stream->error : read_source(stream);

	if (count < 0) {
		stream->error = (int)count;
		archive_set_error(archive, (int)-count, "it cannot be read");
		return ARCHIVE_FATAL;
	}
	*bytes = stream->buffer;
	return count;
}

/* What goes wrong in libarchive, in its own words, unless it was told already. */
static int explain(const struct stream *stream)
{
	const char *words = archive_error_string(stream->archive);

	if (stream->error)
		return stream->error;
	log_error("the archive cannot be unpacked: %s", words ? words : "it is damaged");
	return -EBADMSG;
}

static int begin(struct stream *stream)
{
	struct archive *archive = stream->archive;
	struct archive_entry *entry;
	int result;

	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_bzip2(archive);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_zstd(archive);
	archive_read_support_format_empty(archive);
	archive_read_support_format_raw(archive);
	if (archive_read_open(archive, stream, NULL, give_bytes, NULL) != ARCHIVE_OK)
		return explain(stream);
	result = archive_read_next_header(archive, &entry);
	stream->at_end = result == ARCHIVE_EOF;
	return result == ARCHIVE_OK || result == ARCHIVE_EOF ? 0 : explain(stream);
}

int stream_open(struct stream **stream, const struct stream_source *source, uint64_t *left)
{
	struct stream *opened = malloc(sizeof(*opened));
	int error;

	if (!opened)
		return log_errno(-ENOMEM, "cannot read the archive");
	*opened = (struct stream){.source = *source, .archive = archive_read_new(), .left = left};
	sha256_begin(&opened->packed);
	sha256_begin(&opened->unpacked);
	error = opened->archive ? begin(opened) : -ENOMEM;
	if (error)
		stream_close(opened);
	else
		*stream = opened;
	return error;
}

void stream_close(struct stream *stream)
{
	if (!stream)
		return;
	archive_read_free(stream->archive);
	free(stream);
}

int64_t stream_next(struct stream *stream, const void **bytes)
{
	size_t length = 0;
	la_int64_t offset;
	int result;

	while (!stream->at_end && length == 0) {
		result = archive_read_data_block(stream->archive, bytes, &length, &offset);
		if (result == ARCHIVE_EOF)
			stream->at_end = true;
		else if (result != ARCHIVE_OK)
			return explain(stream);
	}
	if (stream->at_end)
		return 0;
	if (length > *stream->left) {
		log_error("the archive unpacks to more than is allowed: --max-size allows more");
		return -EFBIG;
	}
	*stream->left -= length;
	sha256_add(&stream->unpacked, *bytes, length);
	return (int64_t)length;
}

int stream_finish(struct stream *stream)
{
	const void *bytes;
	int64_t count;

	do {
		count = stream_next(stream, &bytes);
	} while (count > 0);
	/* What may follow what was compressed. */
	while (!count) {
		count = read_source(stream);
		if (count <= 0)
			break;
		count = 0;
	}
	return (int)count;
}

void stream_digests(struct stream *stream, uint8_t packed[SHA256_BYTES],
		    uint8_t unpacked[SHA256_BYTES])
{
	sha256_end(&stream->packed, packed);
	sha256_end(&stream->unpacked, unpacked);
}

bool stream_is_packed(const struct stream *stream)
{
	return archive_filter_code(stream->archive, 0) != ARCHIVE_FILTER_NONE;
}
