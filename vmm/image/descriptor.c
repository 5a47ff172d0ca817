/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/descriptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/image/container_json.h"
#include "vmm/image/json.h"
#include "vmm/root/verity.h"

#define KIND "mvagent image 1"

static bool add_texts(cJSON *object, const char *name, char *const *texts)
{
	cJSON *array = cJSON_AddArrayToObject(object, name);
	bool good = array != NULL;

	for (; good && *texts; texts++)
		good = cJSON_AddItemToArray(array, cJSON_CreateString(*texts));
	return good;
}

static bool add_user(cJSON *object, const struct image_user *user)
{
	cJSON *added = cJSON_AddObjectToObject(object, "user");

	return added && cJSON_AddStringToObject(added, "name", user->name) &&
	       cJSON_AddNumberToObject(added, "uid", user->uid) &&
	       cJSON_AddNumberToObject(added, "gid", user->gid) &&
	       cJSON_AddStringToObject(added, "home", user->home);
}

static bool add_settings(cJSON *object, const struct image_settings *settings)
{
	return (!settings->has_user || add_user(object, &settings->user)) &&
	       (!settings->directory ||
		cJSON_AddStringToObject(object, "directory", settings->directory)) &&
	       add_texts(object, "variables", settings->variables) &&
	       add_texts(object, "entrypoint", settings->entrypoint) &&
	       add_texts(object, "arguments", settings->arguments);
}

int image_descriptor_format(const struct image_descriptor *descriptor, char **text)
{
	char root[DIGEST_TEXT_BYTES];
	cJSON *json = cJSON_CreateObject();
	bool good;

	digest_to_text(descriptor->verity_root, root);
	*text = NULL;
	good = json && cJSON_AddStringToObject(json, "kind", KIND) &&
	       cJSON_AddStringToObject(json, "architecture", container_architecture()) &&
	       cJSON_AddNumberToObject(json, "bytes", (double)descriptor->bytes) &&
	       cJSON_AddStringToObject(json, "verity", root) &&
	       add_settings(json, &descriptor->settings);
	if (good)
		*text = cJSON_Print(json);
	cJSON_Delete(json);
	return *text ? 0 : -ENOMEM;
}

static int copy_member(const cJSON *object, const char *name, char *copy, size_t size)
{
	const char *text = json_text(object, name);

	if (!text || strlen(text) >= size)
		return -EINVAL;
	memcpy(copy, text, strlen(text) + 1);
	return 0;
}

static int take_user(const cJSON *json, struct image_settings *settings)
{
	const cJSON *user = cJSON_GetObjectItemCaseSensitive(json, "user");
	uint64_t uid, gid;

	settings->has_user = cJSON_IsObject(user);
	if (!settings->has_user)
		return user ? -EINVAL : 0;
	if (!json_number(user, "uid", UINT32_MAX - 1, &uid) ||
	    !json_number(user, "gid", UINT32_MAX - 1, &gid) ||
	    copy_member(user, "name", settings->user.name, sizeof(settings->user.name)) ||
	    copy_member(user, "home", settings->user.home, sizeof(settings->user.home)) ||
	    settings->user.home[0] != '/')
		return -EINVAL;
	settings->user.uid = (uint32_t)uid;
	settings->user.gid = (uint32_t)gid;
	return 0;
}

static int take_settings(const cJSON *json, struct image_settings *settings)
{
	const char *directory = json_text(json, "directory");
	int error = take_user(json, settings);

	error = error ? error : json_texts(json, "variables", &settings->variables);
	error = error ? error : json_texts(json, "entrypoint", &settings->entrypoint);
	error = error ? error : json_texts(json, "arguments", &settings->arguments);
	for (char *const *variable = settings->variables; !error && *variable; variable++) {
		if (**variable == '=' || !strchr(*variable, '='))
			error = -EINVAL;
	}
	if (error || !directory)
		return error;
	settings->directory = strdup(directory);
	if (!settings->directory)
		return -ENOMEM;
	return directory[0] == '/' ? 0 : -EINVAL;
}

int image_descriptor_parse(const char *text, size_t length, struct image_descriptor *descriptor)
{
	cJSON *json = length <= LIMIT_IMAGE_DESCRIPTOR_BYTES ? json_parse(text, length) : NULL;
	const char *kind = json_text(json, "kind"), *root = json_text(json, "verity");
	const char *architecture = json_text(json, "architecture");
	int error;

	*descriptor = (struct image_descriptor){0};
	error = image_settings_init(&descriptor->settings);
	if (!error && (!kind || strcmp(kind, KIND) != 0 || !architecture ||
		       strcmp(architecture, container_architecture()) != 0 ||
		       !json_number(json, "bytes", LIMIT_IMAGE_BYTES, &descriptor->bytes) ||
		       !descriptor->bytes || descriptor->bytes % VERITY_BLOCK_BYTES || !root ||
		       !digest_from_text(root, descriptor->verity_root)))
		error = -EINVAL;
	error = error ? error : take_settings(json, &descriptor->settings);
	cJSON_Delete(json);
	return error;
}

void image_descriptor_free(struct image_descriptor *descriptor)
{
	image_settings_free(&descriptor->settings);
}
