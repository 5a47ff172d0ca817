/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/image_store.h"

static int join_command(struct run_image *image)
{
	const struct image_settings *settings = &image->descriptor.settings;
	unsigned int first = image_strings_count(settings->entrypoint);
	unsigned int second = image_strings_count(settings->arguments);

	image->command = calloc(first + second + 1UL, sizeof(char *));
	if (!image->command)
		return log_errno(-ENOMEM, "cannot begin");
	memcpy(image->command, settings->entrypoint, first * sizeof(char *));
	memcpy(image->command + first, settings->arguments, second * sizeof(char *));
	return 0;
}

/* What has a name, and is not there all the same. */
static int told(int error)
{
	return error == -ENOENT ? -EIO : error;
}

/* -ENOENT without a sentence: there is no image of that name or digest. */
static int open_stored(struct run_image *image, const struct image_reference *reference)
{
	FD_CLEANUP int store_fd = image_store_open(false);
	char text[DIGEST_TEXT_BYTES];
	int error = store_fd;

	if (store_fd >= 0)
		error = image_store_resolve(store_fd, reference, image->digest);
	if (error)
		return error;
	error = image_store_read(store_fd, image->digest, &image->descriptor);
	error = error ? error : join_command(image);
	if (error)
		return told(error);
	image->is_stored = true;
	digest_to_text(image->digest, text);
	log_info("the root is the image %s", text);
	return told(image_store_open_image(store_fd, image->digest));
}

int run_image_open(struct run_image *image, const char *root)
{
	struct image_reference reference;
	int fd;

	*image = (struct run_image){0};
	if (image_reference_parse(root, &reference)) {
		fd = open_stored(image, &reference);
		if (fd != -ENOENT)
			return fd;
		if (reference.is_pinned) {
			log_error("--root %s: there is no such image; 'mvagent image list' shows "
				  "those that there are",
				  root);
			return fd;
		}
	}
	fd = open(root, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT && strstr(root, "@" DIGEST_PREFIX)) {
		log_error("--root %s: a digest is " DIGEST_PREFIX
			  " and 64 hexadecimal digits, as 'mvagent image list' shows it",
			  root);
		return -ENOENT;
	}
	if (errno == ENOENT && !strchr(root, '/')) {
		log_error("--root %s: there is neither an image of that name ('mvagent image "
			  "list') nor a file",
			  root);
		return -ENOENT;
	}
	return log_errno(-errno, "--root %s", root);
}

void run_image_free(struct run_image *image)
{
	image_descriptor_free(&image->descriptor);
	free(image->command);
	image->command = NULL;
	image->is_stored = false;
}

const struct image_settings *run_image_settings(const struct run_image *image)
{
	return image->is_stored ? &image->descriptor.settings : NULL;
}

void run_image_plan(const struct run_image *image, struct process_plan *plan)
{
	char root[DIGEST_TEXT_BYTES];

	if (!image->is_stored)
		return;
	digest_to_text(image->descriptor.verity_root, root);
	process_plan_add(plan, "--image-bytes");
	process_plan_add(plan, "%llu", (unsigned long long)image->descriptor.bytes);
	process_plan_add(plan, "--verity-root");
	process_plan_add(plan, "%s", root + strlen(DIGEST_PREFIX));
}
