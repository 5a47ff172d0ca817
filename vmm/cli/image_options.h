/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of `mvagent image`. */
#ifndef MVAGENT_CLI_IMAGE_OPTIONS_H
#define MVAGENT_CLI_IMAGE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum image_verb { IMAGE_IMPORT, IMAGE_BUILD, IMAGE_LIST, IMAGE_SHOW, IMAGE_REMOVE, IMAGE_VERBS };

struct image_options {
	enum image_verb verb;
	uint64_t maximum; /* bytes of contents */
	bool json;
	bool allow_degraded;
	unsigned int given; /* options, by bits: each verb takes some */
	unsigned int word_count;
	char **words; /* names and sources, as given: argv's */
	unsigned int package_count;
	char **packages; /* of build; allocated, the texts are argv's */
};

/* Parses argv (argv[0] is "image"). 1, 0 when all is done (--help), or -errno with the sentence
 * printed. Free in every case. */
int image_options_parse(struct image_options *options, int argc, char **argv);
void image_options_free(struct image_options *options);

#endif
