/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/image/container.h"
#include "vmm/image/directory.h"
#include "vmm/image/write.h"

#define ACCOUNTS_BYTES (1U << 20) /* of passwd or group; what follows is not looked at */

/* All that is unpacked, headers and padding too, may be that much more than the contents. */
#define UNPACKED_FACTOR 2U

struct import {
	const struct import_options *options;
	struct merge *merge;
	struct contents contents;
	struct layer_counts counts;
	struct image_descriptor descriptor;
	char *user; /* who runs the command, in the archive's words */
};

/* Writes what comes out of the stream to the file for it. */
static int unpack(struct import *import, struct stream *stream, struct container_input *input)
{
	const void *bytes;
	int64_t count;

	while ((count = stream_next(stream, &bytes)) > 0) {
		int error = fd_write_full(import->options->plain_fd, bytes, (size_t)count);

		if (error)
			return log_errno(error, "cannot write what is unpacked");
		input->bytes += (uint64_t)count;
	}
	input->fd = import->options->plain_fd;
	return (int)count;
}

/* The archive as a plain file: itself, if it is one. */
static int make_plain(struct import *import, struct container_input *input)
{
	struct stream_source source = {.fd = import->options->archive_fd};
	struct stat status;
	struct stream *stream;
	int error;

	if (fstat(source.fd, &status))
		return log_errno(-errno, "cannot look at the archive");
	source.is_pipe = !S_ISREG(status.st_mode);
	source.end = (uint64_t)status.st_size;
	error = stream_open(&stream, &source, input->left);
	if (error)
		return error;
	if (source.is_pipe || stream_is_packed(stream)) {
		error = unpack(import, stream, input);
	} else {
		input->fd = source.fd;
		input->bytes = source.end;
	}
	stream_close(stream);
	return error;
}

static int read_archive(struct import *import, const struct layer_target *target)
{
	uint64_t left =
		bytes_minimum(import->options->maximum, LIMIT_IMAGE_BYTES) * UNPACKED_FACTOR;
	uint64_t left_of_layers = left;
	struct container_input input = {.left = &left};
	int error = make_plain(import, &input);

	if (error)
		return error;
	input.left = &left_of_layers;
	image_settings_free(&import->descriptor.settings);
	return container_apply(&input, target, &import->descriptor.settings, &import->user);
}

/* A text file of the image, allocated; empty if there is none. */
static int read_text(const struct import *import, const char *path, char **text)
{
	uint64_t size = 0, place = 0;
	int error;

	if (merge_find_file(import->merge, path, &size, &place))
		size = 0;
	size = bytes_minimum(size, ACCOUNTS_BYTES);
	*text = calloc(1, size + 1);
	if (!*text)
		return -ENOMEM;
	error = fd_pread_full(import->contents.fd, *text, size, (off_t)place);
	/* The end may be a hole that nothing was written behind. */
	return error == -ENODATA ? 0 : error;
}

static int find_user(struct import *import)
{
	struct image_settings *settings = &import->descriptor.settings;
	char *passwd = NULL, *group = NULL;
	int error;

	if (!import->user)
		return 0;
	error = read_text(import, "etc/passwd", &passwd);
	error = error ? error : read_text(import, "etc/group", &group);
	if (error)
		log_errno(error, "cannot read the accounts of the image");
	else
		error = image_user_find(import->user, passwd, group, &settings->user);
	if (error == -EINVAL || error == -ENOENT)
		log_error("the image is to be run by '%.100s', and has no such user or group",
			  import->user);
	settings->has_user = !error;
	free(passwd);
	free(group);
	return error;
}

/* As tools for containers do, the working directory is made if it is not there. */
static int make_directory(struct import *import)
{
	const char *directory = import->descriptor.settings.directory;
	int error = directory ? merge_make_directories(import->merge, directory) : 0;

	if (error == -EINVAL && strspn(directory, "/.") == strlen(directory))
		return 0;
	return error ? log_errno(error, "cannot make the image's working directory '%.100s'",
				 directory)
		     : 0;
}

static int write_descriptor(const struct import *import)
{
	char *text;
	int error = image_descriptor_format(&import->descriptor, &text);

	error = error ? error : fd_write_full(import->options->descriptor_fd, text, strlen(text));
	free(text);
	return error ? log_errno(error, "cannot write what the image is") : 0;
}

static void report(const struct layer_counts *counts)
{
	if (counts->special)
		log_warning("%llu devices, FIFOs and sockets are left out",
			    (unsigned long long)counts->special);
	if (counts->attributes)
		log_warning("%llu extended attributes are left out: there are too many on one file",
			    (unsigned long long)counts->attributes);
}

static int import_all(struct import *import)
{
	const struct import_options *options = import->options;
	const struct layer_target target = {
		.merge = import->merge, .contents = &import->contents, .counts = &import->counts};
	int error = options->directory_fd >= 0
			    ? directory_apply(options->directory_fd, options->all_root, &target)
			    : read_archive(import, &target);

	if (!error && !import->counts.entries) {
		log_error("there is nothing in it");
		error = -ENODATA;
	}
	error = error ? error : find_user(import);
	error = error ? error : make_directory(import);
	if (!error)
		error = image_write(import->merge, &import->contents, options->image_fd,
				    &import->descriptor);
	error = error ? error : write_descriptor(import);
	if (!error)
		report(&import->counts);
	return error;
}

int import_run(const struct import_options *options)
{
	struct import import = {
		.options = options,
		.contents = {.fd = options->contents_fd, .limit = options->maximum},
	};
	int error = merge_create(&import.merge);

	error = error ? error : image_settings_init(&import.descriptor.settings);
	error = error ? log_errno(error, "cannot begin") : import_all(&import);
	image_descriptor_free(&import.descriptor);
	merge_destroy(import.merge);
	free(import.user);
	return error;
}
