/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/image_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/data_directory.h"

#define NEW_IMAGE      ".new.image"
#define NEW_DESCRIPTOR ".new.json"
#define NEW_NAME       ".new.name"
#define NEW_SCRATCH    ".new.scratch"

#define NAME_SUFFIX ".name"

#define FILE_NAME_BYTES (LIMIT_IMAGE_NAME_BYTES + 16U)

/* "DIGEST.SUFFIX" */
static void file_name(const uint8_t digest[SHA256_BYTES], const char *suffix,
		      char name[FILE_NAME_BYTES])
{
	char text[DIGEST_TEXT_BYTES];

	digest_to_text(digest, text);
	snprintf(name, FILE_NAME_BYTES, "%s.%s", text + strlen(DIGEST_PREFIX), suffix);
}

static int open_file(int store_fd, const char *name)
{
	int fd = openat(store_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int image_store_open(bool make)
{
	return data_directory_open("images", make);
}

int image_store_lock(int store_fd)
{
	int result = flock(store_fd, LOCK_EX | LOCK_NB);

	if (result < 0 && errno == EWOULDBLOCK) {
		log_warning("another mvagent is at work on the images; waiting for it");
		do {
			result = flock(store_fd, LOCK_EX);
		} while (result < 0 && errno == EINTR);
	}
	return result < 0 ? log_errno(-errno, "cannot lock the directory of images") : 0;
}

/* A small file, whole; allocated, with a NUL behind it. */
static int read_file(int store_fd, const char *name, size_t maximum, char **text, size_t *length)
{
	FD_CLEANUP int fd = open_file(store_fd, name);
	struct stat status;
	int error;

	*text = NULL;
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > (off_t)maximum)
		return -EINVAL;
	*length = (size_t)status.st_size;
	*text = calloc(1, *length + 1);
	error = *text ? fd_pread_full(fd, *text, *length, 0) : -ENOMEM;
	if (error) {
		free(*text);
		*text = NULL;
	}
	return error;
}

int image_store_find_name(int store_fd, const char *name, uint8_t digest[SHA256_BYTES])
{
	char file[FILE_NAME_BYTES];
	char *text;
	size_t length;
	int error;

	snprintf(file, sizeof(file), "%s" NAME_SUFFIX, name);
	error = read_file(store_fd, file, DIGEST_TEXT_BYTES, &text, &length);
	if (error == -ENOENT)
		return error;
	if (text)
		text[strcspn(text, "\n")] = '\0';
	if (!error && (!text || !digest_from_text(text, digest)))
		error = -EINVAL;
	free(text);
	return error ? log_errno(error, "the name '%s' of an image cannot be read", name) : 0;
}

int image_store_resolve(int store_fd, const struct image_reference *reference,
			uint8_t digest[SHA256_BYTES])
{
	char file[FILE_NAME_BYTES], found[DIGEST_TEXT_BYTES], wanted[DIGEST_TEXT_BYTES];
	int error;

	memcpy(digest, reference->digest, SHA256_BYTES);
	if (!reference->name[0]) {
		file_name(digest, "json", file);
		return faccessat(store_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	}
	error = image_store_find_name(store_fd, reference->name, digest);
	if (error || !reference->is_pinned || memcmp(digest, reference->digest, SHA256_BYTES) == 0)
		return error;
	digest_to_text(digest, found);
	digest_to_text(reference->digest, wanted);
	log_error("the image '%s' is %s, and not the %s that was asked for", reference->name, found,
		  wanted);
	return -EBADMSG;
}

/* A text that is what its digest says. */
static int take_descriptor(const char *text, size_t length, const uint8_t digest[SHA256_BYTES],
			   struct image_descriptor *descriptor)
{
	uint8_t found[SHA256_BYTES];

	sha256_of(text, length, found);
	if (memcmp(found, digest, SHA256_BYTES) != 0)
		return -EBADMSG;
	return image_descriptor_parse(text, length, descriptor);
}

int image_store_read(int store_fd, const uint8_t digest[SHA256_BYTES],
		     struct image_descriptor *descriptor)
{
	char file[FILE_NAME_BYTES], name[DIGEST_TEXT_BYTES];
	char *text;
	size_t length = 0;
	int error;

	*descriptor = (struct image_descriptor){0};
	file_name(digest, "json", file);
	digest_to_text(digest, name);
	error = read_file(store_fd, file, LIMIT_IMAGE_DESCRIPTOR_BYTES, &text, &length);
	error = error ? error : take_descriptor(text, length, digest, descriptor);
	free(text);
	if (error == -EBADMSG || error == -EINVAL)
		log_error("the description of the image %s was changed after it was imported: "
			  "import it again",
			  name);
	else if (error)
		log_errno(error, "cannot read the image %s", name);
	return error;
}

int image_store_open_image(int store_fd, const uint8_t digest[SHA256_BYTES])
{
	char file[FILE_NAME_BYTES], name[DIGEST_TEXT_BYTES];
	int fd;

	file_name(digest, "image", file);
	digest_to_text(digest, name);
	fd = open_file(store_fd, file);
	return fd < 0 ? log_errno(fd, "cannot open the image %s", name) : fd;
}

static int create_file(int store_fd, const char *name, int flags)
{
	int fd;

	/* Of one who was killed: nobody else is at work. */
	unlinkat(store_fd, name, 0);
	fd = openat(store_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? log_errno(-errno, "cannot make a file for the image") : fd;
}

int image_store_begin(int store_fd, struct image_store_new *files)
{
	*files = (struct image_store_new){-1, -1};
	files->image_fd = create_file(store_fd, NEW_IMAGE, O_RDWR);
	if (files->image_fd < 0)
		return files->image_fd;
	files->descriptor_fd = create_file(store_fd, NEW_DESCRIPTOR, O_RDWR);
	if (files->descriptor_fd >= 0)
		return 0;
	image_store_abort(store_fd, files);
	return files->descriptor_fd;
}

int image_store_scratch(int store_fd)
{
	int fd = create_file(store_fd, NEW_SCRATCH, O_RDWR);

	if (fd >= 0)
		unlinkat(store_fd, NEW_SCRATCH, 0);
	return fd;
}

void image_store_abort(int store_fd, struct image_store_new *files)
{
	if (files->image_fd < 0 && files->descriptor_fd < 0)
		return;
	fd_close(&files->image_fd);
	fd_close(&files->descriptor_fd);
	unlinkat(store_fd, NEW_IMAGE, 0);
	unlinkat(store_fd, NEW_DESCRIPTOR, 0);
}

/* What the maker of the image has said of it, which is checked here for the first time. */
static int judge_new(int store_fd, uint8_t digest[SHA256_BYTES])
{
	struct image_descriptor descriptor = {0};
	char *text;
	size_t length = 0;
	int error =
		read_file(store_fd, NEW_DESCRIPTOR, LIMIT_IMAGE_DESCRIPTOR_BYTES, &text, &length);

	if (!error) {
		sha256_of(text, length, digest);
		error = image_descriptor_parse(text, length, &descriptor);
	}
	image_descriptor_free(&descriptor);
	free(text);
	return error;
}

/* On the disk before it has its name: a name never leads to half a file. */
static int put_in_place(int store_fd, int fd, const char *from, const char *to)
{
	if (fsync(fd) < 0 || renameat(store_fd, from, store_fd, to) < 0)
		return -errno;
	return 0;
}

int image_store_finish(int store_fd, struct image_store_new *files, uint8_t digest[SHA256_BYTES])
{
	char image[FILE_NAME_BYTES], descriptor[FILE_NAME_BYTES];
	int error = judge_new(store_fd, digest);

	file_name(digest, "image", image);
	file_name(digest, "json", descriptor);
	error = error ? error : put_in_place(store_fd, files->image_fd, NEW_IMAGE, image);
	error = error ? error
		      : put_in_place(store_fd, files->descriptor_fd, NEW_DESCRIPTOR, descriptor);
	if (error)
		return log_errno(error, "cannot keep the image");
	fd_close(&files->image_fd);
	fd_close(&files->descriptor_fd);
	return 0;
}

/* Removes the files of a digest that no name stands for. */
static int remove_unnamed(int store_fd, const uint8_t digest[SHA256_BYTES])
{
	char file[FILE_NAME_BYTES];
	char **names = image_store_names(store_fd);
	bool is_named = !names;

	for (char **name = names; name && *name && !is_named; name++) {
		uint8_t other[SHA256_BYTES];

		/* One that cannot be read might be the one. */
		is_named = image_store_find_name(store_fd, *name, other) != 0 ||
			   memcmp(other, digest, SHA256_BYTES) == 0;
	}
	image_strings_free(names);
	if (is_named)
		return 0;
	file_name(digest, "json", file);
	unlinkat(store_fd, file, 0);
	file_name(digest, "image", file);
	return unlinkat(store_fd, file, 0) && errno != ENOENT
		       ? log_errno(-errno, "cannot remove an image")
		       : 0;
}

int image_store_set_name(int store_fd, const char *name, const uint8_t digest[SHA256_BYTES])
{
	FD_CLEANUP int fd = create_file(store_fd, NEW_NAME, O_WRONLY);
	char file[FILE_NAME_BYTES], text[DIGEST_TEXT_BYTES];
	uint8_t old[SHA256_BYTES];
	bool had_name = image_store_find_name(store_fd, name, old) == 0;
	int error;

	if (fd < 0)
		return fd;
	digest_to_text(digest, text);
	snprintf(file, sizeof(file), "%s" NAME_SUFFIX, name);
	error = fd_write_full(fd, text, strlen(text));
	error = error ? error : put_in_place(store_fd, fd, NEW_NAME, file);
	if (!error && fsync(store_fd) < 0)
		error = -errno;
	if (error) {
		unlinkat(store_fd, NEW_NAME, 0);
		return log_errno(error, "cannot keep the name '%s'", name);
	}
	return had_name && memcmp(old, digest, SHA256_BYTES) != 0 ? remove_unnamed(store_fd, old)
								  : 0;
}

int image_store_remove_name(int store_fd, const char *name)
{
	char file[FILE_NAME_BYTES];
	uint8_t digest[SHA256_BYTES];
	int found = image_store_find_name(store_fd, name, digest);

	snprintf(file, sizeof(file), "%s" NAME_SUFFIX, name);
	if (found == -ENOENT)
		return found;
	if (unlinkat(store_fd, file, 0) < 0)
		return log_errno(-errno, "cannot remove '%s'", name);
	return found ? 0 : remove_unnamed(store_fd, digest);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_name_file(const char *name, size_t *length)
{
	size_t suffix = strlen(NAME_SUFFIX), whole = strlen(name);

	if (name[0] == '.' || whole <= suffix || strcmp(name + whole - suffix, NAME_SUFFIX) != 0)
		return false;
	*length = whole - suffix;
	return *length <= LIMIT_IMAGE_NAME_BYTES;
}

char **image_store_names(int store_fd)
{
	int fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	char **names = calloc(LIMIT_IMAGE_NAMES + 1U, sizeof(char *));
	const struct dirent *entry;
	unsigned int count = 0;
	size_t length;

	while (directory && names && count < LIMIT_IMAGE_NAMES && (entry = readdir(directory))) {
		if (!is_name_file(entry->d_name, &length))
			continue;
		names[count] = strndup(entry->d_name, length);
		if (!names[count])
			break;
		count++;
	}
	if (directory)
		closedir(directory);
	else
		fd_close(&fd);
	if (names && count)
		qsort(names, count, sizeof(*names), compare_names);
	return names;
}

uint64_t image_store_usage(int store_fd, const uint8_t digest[SHA256_BYTES], int64_t *imported)
{
	char file[FILE_NAME_BYTES];
	struct stat status;

	file_name(digest, "image", file);
	*imported = 0;
	if (fstatat(store_fd, file, &status, AT_SYMLINK_NOFOLLOW))
		return 0;
	*imported = status.st_mtim.tv_sec;
	return (uint64_t)status.st_blocks * 512;
}
