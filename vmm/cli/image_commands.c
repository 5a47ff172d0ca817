/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/image_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/image_build.h"
#include "vmm/cli/image_import.h"
#include "vmm/cli/image_options.h"
#include "vmm/cli/image_print.h"
#include "vmm/cli/image_store.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/supervisor.h"

#define BUILD_NAME "base"

/* A name that a new image can have. */
static int check_name(const char *name)
{
	struct image_reference reference;

	if (strcmp(name, "host") == 0) {
		log_error("no image can be called 'host': that is this host's own tools");
		return -EINVAL;
	}
	if (image_reference_parse(name, &reference) && !reference.is_pinned)
		return 0;
	log_error("'%s' is no name for an image: letters, digits and . _ : + - make one, of at "
		  "most %u, and the first is a letter or a digit",
		  name, LIMIT_IMAGE_NAME_BYTES);
	return -EINVAL;
}

static int open_source(const char *source)
{
	bool is_input = strcmp(source, "-") == 0;
	int fd;

	if (is_input && isatty(STDIN_FILENO)) {
		log_error("standard input is a terminal; for instance: docker save IMAGE | mvagent "
			  "image import NAME -");
		return -EINVAL;
	}
	fd = is_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
		      : open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return log_errno(-errno, "%s", source);
	/* Taken for a root file system it would make an image of blobs. */
	if (faccessat(fd, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		log_error(
			"%s is an image's layout (OCI), and no root file system; as an archive it "
			"can be imported: tar -C %s -c . | mvagent image import NAME -",
			source, source);
		fd_close(&fd);
		return -EINVAL;
	}
	return fd;
}

static int import_command(const struct image_options *options)
{
	uint8_t digest[SHA256_BYTES];
	FD_CLEANUP int store_fd = -1;
	FD_CLEANUP int source_fd = -1;
	int error = check_name(options->words[0]);

	if (error)
		return error;
	source_fd = open_source(options->words[1]);
	if (source_fd < 0)
		return source_fd;
	store_fd = image_import_begin();
	if (store_fd < 0)
		return store_fd;
	error = image_import(store_fd,
			     &(struct image_import){
				     .name = options->words[0],
				     .source_fd = source_fd,
				     .maximum = options->maximum,
				     .allow_degraded = options->allow_degraded,
			     },
			     digest);
	return error ? error : image_print_pin(options->words[0], digest);
}

static int build_command(const struct image_options *options)
{
	const char *name = options->word_count ? options->words[0] : BUILD_NAME;
	uint8_t digest[SHA256_BYTES];
	FD_CLEANUP int store_fd = -1;
	FD_CLEANUP int source_fd = -1;
	int error = check_name(name);

	if (error)
		return error;
	store_fd = image_import_begin();
	if (store_fd < 0)
		return store_fd;
	source_fd = image_store_scratch(store_fd);
	if (source_fd < 0)
		return source_fd;
	error = image_build_archive(source_fd, options->packages, options->package_count);
	if (error)
		return error;
	error = image_import(store_fd,
			     &(struct image_import){
				     .name = name,
				     .source_fd = source_fd,
				     .maximum = options->maximum,
				     .allow_degraded = options->allow_degraded,
			     },
			     digest);
	return error ? error : image_print_pin(name, digest);
}

static int list_command(const struct image_options *options)
{
	FD_CLEANUP int store_fd = image_store_open(false);

	if (store_fd < 0 && store_fd != -ENOENT)
		return store_fd;
	return image_print_list(store_fd, options->json);
}

static int not_there(const char *name)
{
	log_error("there is no image '%s'; 'mvagent image list' shows those that there are", name);
	return -ENOENT;
}

static int show_command(const struct image_options *options)
{
	FD_CLEANUP int store_fd = image_store_open(false);
	struct image_reference reference;
	uint8_t digest[SHA256_BYTES];
	int error = store_fd < 0 ? store_fd : 0;

	if (!image_reference_parse(options->words[0], &reference))
		error = -ENOENT;
	error = error ? error : image_store_resolve(store_fd, &reference, digest);
	if (error)
		return error == -ENOENT ? not_there(options->words[0]) : error;
	return image_print_image(store_fd, options->words[0], digest, options->json);
}

static int remove_command(const struct image_options *options)
{
	FD_CLEANUP int store_fd = image_store_open(false);
	int error = store_fd < 0 ? store_fd : image_store_lock(store_fd);

	for (unsigned int i = 0; i < options->word_count && !error; i++) {
		struct image_reference reference;

		error = -ENOENT;
		if (image_reference_parse(options->words[i], &reference) && !reference.is_pinned)
			error = image_store_remove_name(store_fd, reference.name);
		if (error == -ENOENT)
			not_there(options->words[i]);
	}
	if (store_fd == -ENOENT)
		not_there(options->words[0]);
	return error;
}

int image_command(int argc, char **argv)
{
	static int (*const commands[IMAGE_VERBS])(const struct image_options *options) = {
		[IMAGE_IMPORT] = import_command, [IMAGE_BUILD] = build_command,
		[IMAGE_LIST] = list_command,     [IMAGE_SHOW] = show_command,
		[IMAGE_REMOVE] = remove_command,
	};
	struct image_options options;
	int result = image_options_parse(&options, argc, argv);

	if (result > 0)
		result = commands[options.verb](&options);
	if (!result && fflush(stdout))
		result = log_errno(-errno, "cannot write to standard output");
	image_options_free(&options);
	/* As a shell would say it. */
	if (result == -EINTR)
		return 128 + supervisor_pending_signal();
	return result ? EXIT_MVAGENT : 0;
}
