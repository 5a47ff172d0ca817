/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mvagent-image. */
#ifndef MVAGENT_IMAGE_OPTIONS_H
#define MVAGENT_IMAGE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct import_options {
	int archive_fd;    /* an archive: a file or a pipe */
	int directory_fd;  /* or a directory; -1: the archive */
	int plain_fd;      /* as the next three, empty and open for reading and writing: the
			      archive, unpacked once */
	int contents_fd;   /* what files have in them */
	int image_fd;      /* the image and its tree of hashes */
	int descriptor_fd; /* its descriptor */
	uint64_t maximum;  /* bytes of contents */
	bool all_root;     /* who owns the directory's files owns them as root there */
	bool allow_degraded;
};

/* As blk_options_parse. */
int import_options_parse(struct import_options *options, int argc, char **argv);

#endif
