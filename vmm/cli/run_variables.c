/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_variables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"

/* [A-Za-z_][A-Za-z0-9_]*: what POSIX lets a shell name. */
static bool is_name(const char *text, size_t length)
{
	static const char letters[] = "_0123456789"
				      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return length && !(*text >= '0' && *text <= '9') && strspn(text, letters) >= length;
}

static int insert(struct run_variables *variables, const char *value, const char *file)
{
	const unsigned int place = file ? variables->from_files : variables->count;
	struct run_variable *grown =
		reallocarray(variables->list, variables->count + 1, sizeof(*grown));
	char *text = strdup(value);

	if (grown)
		variables->list = grown;
	if (!grown || !text) {
		free(text);
		return log_errno(-ENOMEM, "cannot keep variables");
	}
	memmove(grown + place + 1, grown + place, (variables->count - place) * sizeof(*grown));
	grown[place] = (struct run_variable){.text = text, .file = file};
	variables->count++;
	variables->from_files += file != NULL;
	return 0;
}

int run_variables_add(struct run_variables *variables, const char *value)
{
	const size_t length = strcspn(value, "=");

	if (length == 0) {
		log_error("--env %s: a variable needs a name", value);
		return -EINVAL;
	}
	if (!is_name(value, length)) {
		log_error("--env %.*s: a variable's name is of letters, digits and _, and does not "
			  "begin with a digit",
			  (int)length, value);
		return -EINVAL;
	}
	if (!value[length] && !getenv(value)) {
		log_error("--env %s: it is not set in your environment; set it, or give --env "
			  "%s=VALUE",
			  value, value);
		return -EINVAL;
	}
	return insert(variables, value, NULL);
}

/* Of a line that is none: nothing of the line itself, which may be a secret. */
static const char *what_is_wrong(const char *text, size_t length)
{
	if (strncmp(text, "export ", 7) == 0)
		return "leave out 'export', which is for shells";
	if (text[length] == '=' && length && strchr(" \t", text[length - 1]))
		return "no blanks come before the =";
	return "a name is of letters, digits and _, and does not begin with a digit";
}

static int add_line(struct run_variables *variables, const char *path, unsigned int number,
		    const char *line)
{
	const char *text = line + strspn(line, " \t");
	const size_t length = strcspn(text, "=");

	if (!*text || *text == '#')
		return 0;
	if (!is_name(text, length)) {
		log_error("--env-file %s, line %u: %s; a line is NAME=VALUE or NAME", path, number,
			  what_is_wrong(text, length));
		return -EINVAL;
	}
	if (!text[length] && !getenv(text)) {
		log_error("--env-file %s, line %u: %s is not set in your environment; set it, or "
			  "write %s=VALUE",
			  path, number, text, text);
		return -EINVAL;
	}
	return insert(variables, text, path);
}

/* @text: the whole file, with a NUL behind its @length bytes; its lines are made strings. */
static int add_lines(struct run_variables *variables, const char *path, char *text, size_t length)
{
	const char *const end = text + length;
	unsigned int number = 0;
	int error = 0;

	while (!error && text < end) {
		char *line = text;
		const size_t bytes = strcspn(line, "\n");

		number++;
		text += bytes + 1;
		if (line + bytes < end && line[bytes] != '\n') {
			log_error("--env-file %s, line %u: there is a NUL in it", path, number);
			return -EINVAL;
		}
		line[bytes] = '\0';
		if (bytes && line[bytes - 1] == '\r') /* of a file from Windows */
			line[bytes - 1] = '\0';
		error = add_line(variables, path, number, line);
	}
	return error;
}

int run_variables_add_file(struct run_variables *variables, const char *path)
{
	char *text = malloc(RUN_VARIABLES_FILE_BYTES + 1);
	FILE *file = text ? fopen(path, "re") : NULL;
	size_t length = 0;
	int error = text ? 0 : -ENOMEM;

	if (text && !file)
		error = -errno;
	if (!error) {
		errno = 0;
		length = fread(text, 1, RUN_VARIABLES_FILE_BYTES + 1, file);
		if (ferror(file))
			error = errno ? -errno : -EIO;
	}
	if (error) {
		log_errno(error, "--env-file %s: cannot read it", path);
	} else if (length > RUN_VARIABLES_FILE_BYTES) {
		log_error("--env-file %s: it has more than %u KiB", path,
			  RUN_VARIABLES_FILE_BYTES >> 10);
		error = -EFBIG;
	} else {
		text[length] = '\0';
		error = add_lines(variables, path, text, length);
	}
	if (file)
		fclose(file);
	free(text);
	return error;
}

const char *run_variable_value(const struct run_variable *variable)
{
	const char *sign = strchr(variable->text, '=');

	return sign ? sign + 1 : getenv(variable->text);
}

void run_variables_free(struct run_variables *variables)
{
	for (unsigned int i = 0; i < variables->count; i++)
		free(variables->list[i].text);
	free(variables->list);
	*variables = (struct run_variables){0};
}
