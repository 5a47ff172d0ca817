/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent review verify`: needs nothing but the file and a public key. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/sha256.h"
#include "vmm/checklist/page.h"
#include "vmm/cli/checklist_command.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/verify_key.h"
#include "vmm/record/store.h"

static const char usage[] =
	"usage: mvagent review verify FILE [--key PUB]\n"
	"Says whether a review (HTML or JSON) is as it was made and signed.\n"
	"  --key FILE   the public key that must have signed it, if it is not yours\n"
	"  -h, --help   this text\n"
	"Exit status: 0 it is; 1 altered, another's key, or another version's page; 125 it cannot "
	"be read.\n";

enum { OPTION_KEY = OPTION_FIRST };

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"key", required_argument, NULL, OPTION_KEY},
	{NULL, 0, NULL, 0},
};

static int apply(void *context, int option, char *value)
{
	const char **key = context;

	(void)option;
	*key = value;
	return 0;
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent review verify --help",
	.letters = "+:h",
	.options = long_options,
	.takes_words = true,
	.apply = apply,
};

static int check_file(const char *path, const uint8_t key[KEY_BYTES])
{
	struct page_check check;
	char hex[SHA256_HEX_SIZE] = "", *text;
	size_t length;
	bool running;
	int error = record_read_file(AT_FDCWD, path, &text, &length, &running);

	if (!error)
		error = page_verify(&check, text, length, key);
	free(text);
	if (error) {
		log_errno(error, "cannot read the review %s", path);
		return EXIT_MVAGENT;
	}
	if (check.verdict != PAGE_ALTERED)
		sha256_format(check.key, hex);
	printf("%s: %s%s%s\n", path, check.sentence, *hex ? ": key " : "", hex);
	cJSON_Delete(check.page);
	return check.verdict == PAGE_WHOLE ? 0 : EXIT_REVIEW_OPEN;
}

int checklist_verify_command(int argc, char **argv)
{
	const char *given = NULL;
	uint8_t key[KEY_BYTES];
	int first = option_set_parse(&option_set, argc, argv, &given);

	if (first <= 0)
		return first ? EXIT_MVAGENT : 0;
	if (first != argc - 1) {
		log_error("review verify: give one file; see 'mvagent review verify --help'");
		return EXIT_MVAGENT;
	}
	return verify_key_find(given, "review", key) ? EXIT_MVAGENT : check_file(argv[first], key);
}
