/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/image_print.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/cli/image_store.h"

int image_print_pin(const char *name, const uint8_t digest[SHA256_BYTES])
{
	char text[DIGEST_TEXT_BYTES];

	digest_to_text(digest, text);
	printf("%s@%s\n", name, text);
	return 0;
}

/* What an image says of itself is not ours: it must not act on the terminal. */
static void print_line(const char *label, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return;
	for (char *c = copy; *c; c++)
		*c = *c == '\n' || *c == '\r' ? '?' : *c;
	text_make_printable(copy, strlen(copy));
	printf("%-12s%s\n", label, copy);
	free(copy);
}

static void print_lines(const char *label, char *const *texts)
{
	for (; *texts; texts++, label = "")
		print_line(label, *texts);
}

static void format_time(int64_t second, char text[32])
{
	time_t time = second;
	struct tm parts;

	if (!localtime_r(&time, &parts) || !strftime(text, 32, "%Y-%m-%d %H:%M", &parts))
		snprintf(text, 32, "?");
}

static int print_json(cJSON *json)
{
	char *text = cJSON_Print(json);

	cJSON_Delete(json);
	if (!text)
		return log_errno(-ENOMEM, "cannot print it");
	puts(text);
	cJSON_free(text);
	return 0;
}

static cJSON *entry_to_json(const char *name, const char *digest, uint64_t usage, int64_t imported)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "name", name);
	cJSON_AddStringToObject(json, "digest", digest);
	cJSON_AddNumberToObject(json, "disk_bytes", (double)usage);
	cJSON_AddNumberToObject(json, "imported", (double)imported);
	return json;
}

static void list_entry(int store_fd, const char *name, cJSON *array)
{
	uint8_t digest[SHA256_BYTES];
	char text[DIGEST_TEXT_BYTES], when[32];
	uint64_t usage;
	int64_t imported;

	if (image_store_find_name(store_fd, name, digest))
		return;
	digest_to_text(digest, text);
	usage = image_store_usage(store_fd, digest, &imported);
	if (array) {
		cJSON_AddItemToArray(array, entry_to_json(name, text, usage, imported));
		return;
	}
	format_time(imported, when);
	printf("%-20s %6llu MiB  %s  %s\n", name, (unsigned long long)(usage + (1U << 19)) >> 20,
	       when, text);
}

int image_print_list(int store_fd, bool json)
{
	char **names = store_fd < 0 ? NULL : image_store_names(store_fd);
	cJSON *array = json ? cJSON_CreateArray() : NULL;

	if (store_fd >= 0 && !names) {
		cJSON_Delete(array);
		return log_errno(-ENOMEM, "cannot list the images");
	}
	for (char **name = names; name && *name; name++)
		list_entry(store_fd, *name, array);
	image_strings_free(names);
	return json ? print_json(array) : 0;
}

static void print_settings(const struct image_settings *settings)
{
	char user[96];

	if (settings->has_user) {
		snprintf(user, sizeof(user), "%s (%u:%u)", settings->user.name, settings->user.uid,
			 settings->user.gid);
		print_line("user", user);
	}
	if (settings->directory)
		print_line("directory", settings->directory);
	print_lines("variables", settings->variables);
	print_lines("entrypoint", settings->entrypoint);
	print_lines("arguments", settings->arguments);
}

static cJSON *texts_to_json(char *const *texts)
{
	return cJSON_CreateStringArray((const char *const *)texts, (int)image_strings_count(texts));
}

static void add_settings(cJSON *json, const struct image_settings *settings)
{
	cJSON *user;

	if (settings->has_user) {
		user = cJSON_AddObjectToObject(json, "user");
		cJSON_AddStringToObject(user, "name", settings->user.name);
		cJSON_AddNumberToObject(user, "uid", settings->user.uid);
		cJSON_AddNumberToObject(user, "gid", settings->user.gid);
		cJSON_AddStringToObject(user, "home", settings->user.home);
	}
	if (settings->directory)
		cJSON_AddStringToObject(json, "directory", settings->directory);
	cJSON_AddItemToObject(json, "variables", texts_to_json(settings->variables));
	cJSON_AddItemToObject(json, "entrypoint", texts_to_json(settings->entrypoint));
	cJSON_AddItemToObject(json, "arguments", texts_to_json(settings->arguments));
}

int image_print_image(int store_fd, const char *name, const uint8_t digest[SHA256_BYTES], bool json)
{
	struct image_descriptor descriptor;
	char text[DIGEST_TEXT_BYTES], root[DIGEST_TEXT_BYTES], size[48], when[32];
	int64_t imported;
	uint64_t usage = image_store_usage(store_fd, digest, &imported);
	int error = image_store_read(store_fd, digest, &descriptor);

	digest_to_text(digest, text);
	digest_to_text(descriptor.verity_root, root);
	if (!error && json) {
		cJSON *object = entry_to_json(name, text, usage, imported);

		cJSON_AddNumberToObject(object, "bytes", (double)descriptor.bytes);
		cJSON_AddStringToObject(object, "verity", root);
		add_settings(object, &descriptor.settings);
		error = print_json(object);
	} else if (!error) {
		format_time(imported, when);
		snprintf(size, sizeof(size), "%llu bytes", (unsigned long long)descriptor.bytes);
		print_line("name", name);
		print_line("digest", text);
		print_line("size", size);
		print_line("imported", when);
		print_settings(&descriptor.settings);
	}
	image_descriptor_free(&descriptor);
	return error;
}
