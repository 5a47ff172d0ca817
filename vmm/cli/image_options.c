/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/image_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/base/option.h"

static const char usage[] =
	"usage: mvagent image import NAME ARCHIVE|DIR|-   keep an image under a name\n"
	"       mvagent image build [NAME]                make one of Debian packages\n"
	"       mvagent image list                        see what is there\n"
	"       mvagent image show NAME                   see what one is, and its digest\n"
	"       mvagent image remove NAME...              throw it away\n"
	"Images are root file systems for 'mvagent run --root NAME'; as NAME@sha256:DIGEST\n"
	"nothing but that very content is run. An archive is one of the OCI, of 'docker save', or\n"
	"of a root file system (tar; also compressed by gzip, bzip2, xz or zstd); '-' reads it "
	"from\n"
	"standard input:\n"
	"  docker save python:3.12 | mvagent image import python -\n"
	"\n"
	"  --max-size SIZE   import: the files may have that much in them, in MiB or with suffix "
	"M\n"
	"                    or G (default: 32G)\n"
	"  --package NAME    build: one more package; may be given several times\n"
	"  --json            list, show: as JSON\n"
	"  --allow-degraded  import: even where the host allows neither namespaces nor Landlock\n"
	"  -h, --help        this text\n";

enum { OPTION_MAX_SIZE = OPTION_FIRST, OPTION_PACKAGE, OPTION_JSON, OPTION_ALLOW_DEGRADED };

#define OPTION_BIT(option) (1U << ((option)-OPTION_FIRST))

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"max-size", required_argument, NULL, OPTION_MAX_SIZE},
	{"package", required_argument, NULL, OPTION_PACKAGE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{NULL, 0, NULL, 0},
};

static int set_maximum(struct image_options *options, const char *value)
{
	uint64_t mib;

	if (number_parse_mib(value, LIMIT_IMAGE_BYTES >> 20, &mib) == 0 && mib > 0) {
		options->maximum = mib << 20;
		return 0;
	}
	log_error("--max-size %s: give a size from 1M to %lluG", value, LIMIT_IMAGE_BYTES >> 30);
	return -EINVAL;
}

/* It goes to apt: nothing that means more there than a name. */
static int add_package(struct image_options *options, char *value)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";

	if (*value && strchr("abcdefghijklmnopqrstuvwxyz0123456789", *value) &&
	    value[strspn(value, letters)] == '\0') {
		options->packages[options->package_count++] = value;
		return 0;
	}
	log_error("--package %s: that is no name of a Debian package", value);
	return -EINVAL;
}

static int apply(void *context, int option, char *value)
{
	struct image_options *options = context;

	options->given |= OPTION_BIT(option);
	switch (option) {
	case OPTION_MAX_SIZE:
		return set_maximum(options, value);
	case OPTION_PACKAGE:
		return add_package(options, value);
	case OPTION_JSON:
		options->json = true;
		return 0;
	default:
		options->allow_degraded = true;
		return 0;
	}
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent image --help",
	.letters = "+:h",
	.options = long_options,
	.takes_words = true,
	.apply = apply,
};

struct verb {
	const char *name;
	unsigned int minimum; /* of words after it */
	unsigned int maximum;
	unsigned int options;
	const char *wanted;
};

static const struct verb verbs[IMAGE_VERBS] = {
	[IMAGE_IMPORT] = {"import", 2, 2,
			  OPTION_BIT(OPTION_MAX_SIZE) | OPTION_BIT(OPTION_ALLOW_DEGRADED),
			  "NAME and an archive, a directory or '-'"},
	[IMAGE_BUILD] = {"build", 0, 1, OPTION_BIT(OPTION_PACKAGE), "one NAME, or none"},
	[IMAGE_LIST] = {"list", 0, 0, OPTION_BIT(OPTION_JSON), "no NAME"},
	[IMAGE_SHOW] = {"show", 1, 1, OPTION_BIT(OPTION_JSON), "one NAME"},
	[IMAGE_REMOVE] = {"remove", 1, UINT32_MAX, 0, "at least one NAME"},
};

/* An option of another verb would do nothing here. */
static int check_given(const struct image_options *options, const struct verb *verb)
{
	for (const struct option *option = long_options; option->name; option++) {
		if (option->val < OPTION_FIRST || (verb->options & OPTION_BIT(option->val)) ||
		    !(options->given & OPTION_BIT(option->val)))
			continue;
		log_error("image %s: --%s has no place here; see 'mvagent image --help'",
			  verb->name, option->name);
		return -EINVAL;
	}
	return 0;
}

/* The first word is the verb; which others it takes. */
static int check(struct image_options *options)
{
	const char *word = options->word_count ? options->words[0] : NULL;
	const struct verb *verb;

	for (options->verb = 0; word && options->verb < IMAGE_VERBS; options->verb++) {
		if (strcmp(word, verbs[options->verb].name) == 0)
			break;
	}
	if (!word || options->verb == IMAGE_VERBS) {
		log_error("image: say what to do: import, build, list, show or remove (see "
			  "'mvagent image --help')");
		return -EINVAL;
	}
	verb = &verbs[options->verb];
	options->word_count--;
	options->words++;
	if (check_given(options, verb) < 0)
		return -EINVAL;
	if (options->word_count >= verb->minimum && options->word_count <= verb->maximum)
		return 1;
	log_error("image %s: give %s (see 'mvagent image --help')", verb->name, verb->wanted);
	return -EINVAL;
}

int image_options_parse(struct image_options *options, int argc, char **argv)
{
	int first;

	*options = (struct image_options){.maximum = LIMIT_IMAGE_DEFAULT_BYTES};
	options->packages = calloc((size_t)argc + 1, sizeof(char *));
	if (!options->packages)
		return log_errno(-ENOMEM, "cannot read the command line");
	first = option_set_parse(&option_set, argc, argv, options);
	if (first <= 0)
		return first;
	options->words = argv + first;
	options->word_count = (unsigned int)(argc - first);
	return check(options);
}

void image_options_free(struct image_options *options)
{
	free(options->packages);
	options->packages = NULL;
}
