/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/container_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/image/json.h"

const char *container_architecture(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#else
#error "no name is known for this architecture"
#endif
}

static int refuse(const char *what)
{
	log_error("the archive's image cannot be read: %s", what);
	return -EINVAL;
}

/* A blob by its digest: the only kind of OCI's that is in use. */
static int take_digest(const cJSON *descriptor, struct container_part *part)
{
	const char *text = json_text(descriptor, "digest");

	if (!text || !digest_from_text(text, part->digest))
		return refuse("a part is not named by a SHA-256 digest");
	part->has_digest = true;
	snprintf(part->name, sizeof(part->name), "blobs/sha256/%s", text + strlen(DIGEST_PREFIX));
	return 0;
}

static bool is_for_this_machine(const cJSON *descriptor)
{
	const cJSON *platform = cJSON_GetObjectItemCaseSensitive(descriptor, "platform");
	const char *architecture = json_text(platform, "architecture");
	const char *system = json_text(platform, "os");

	return architecture && system && strcmp(system, "linux") == 0 &&
	       strcmp(architecture, container_architecture()) == 0;
}

static int choose_manifest(const cJSON *manifests, struct container_part *manifest)
{
	const cJSON *item, *chosen = NULL;
	int count = cJSON_GetArraySize(manifests), fitting = 0;

	cJSON_ArrayForEach(item, manifests)
	{
		if (count > 1 && !is_for_this_machine(item))
			continue;
		chosen = item;
		fitting++;
	}
	if (fitting == 1)
		return take_digest(chosen, manifest);
	if (fitting == 0) {
		log_error("the archive has no image for Linux on %s", container_architecture());
		return -EINVAL;
	}
	log_error("the archive has %d images: make one of the one that is wanted", fitting);
	return -EINVAL;
}

int container_parse_index(const char *text, size_t length, struct container_part *manifest)
{
	cJSON *json = json_parse(text, length);
	int error;

	*manifest = (struct container_part){0};
	error = json ? choose_manifest(cJSON_GetObjectItemCaseSensitive(json, "manifests"),
				       manifest)
		     : refuse("its index is no JSON");
	cJSON_Delete(json);
	return error;
}

bool container_is_index(const char *text, size_t length)
{
	cJSON *json = json_parse(text, length);
	bool is_index = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "manifests"));

	cJSON_Delete(json);
	return is_index;
}

static int too_many_layers(int count)
{
	if (count <= (int)LIMIT_IMAGE_LAYERS)
		return 0;
	log_error("the archive's image has %d layers, at most %u are read", count,
		  LIMIT_IMAGE_LAYERS);
	return -EINVAL;
}

int container_parse_manifest(const char *text, size_t length, struct container_plan *plan)
{
	cJSON *json = json_parse(text, length);
	const cJSON *layers = cJSON_GetObjectItemCaseSensitive(json, "layers"), *item;
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(json, "config");
	int error = cJSON_IsArray(layers) && cJSON_IsObject(config)
			    ? too_many_layers(cJSON_GetArraySize(layers))
			    : refuse("its manifest has no layers or no configuration");

	if (!error)
		error = take_digest(config, &plan->config);
	plan->layer_count = 0;
	cJSON_ArrayForEach(item, layers)
	{
		if (error)
			break;
		error = take_digest(item, &plan->layers[plan->layer_count++]);
	}
	cJSON_Delete(json);
	return error;
}

/* A file by its name in the archive. */
static int take_name(const char *name, struct container_part *part)
{
	part->has_digest = false;
	if (!name ||
	    snprintf(part->name, sizeof(part->name), "%s", name) >= (int)sizeof(part->name))
		return refuse("manifest.json names no file where it should");
	return 0;
}

int container_parse_docker(const char *text, size_t length, struct container_plan *plan)
{
	cJSON *json = json_parse(text, length);
	const cJSON *image = cJSON_GetArrayItem(json, 0), *item;
	const cJSON *layers = cJSON_GetObjectItemCaseSensitive(image, "Layers");
	int error = 0;

	if (!cJSON_IsArray(json) || !cJSON_IsObject(image) || !cJSON_IsArray(layers)) {
		error = refuse("manifest.json is not as docker save writes it");
	} else if (cJSON_GetArraySize(json) != 1) {
		log_error("the archive has %d images: save the one that is wanted",
			  cJSON_GetArraySize(json));
		error = -EINVAL;
	}
	error = error ? error : too_many_layers(cJSON_GetArraySize(layers));
	error = error ? error : take_name(json_text(image, "Config"), &plan->config);
	plan->layer_count = 0;
	cJSON_ArrayForEach(item, layers)
	{
		if (error)
			break;
		error = take_name(cJSON_GetStringValue(item), &plan->layers[plan->layer_count++]);
	}
	cJSON_Delete(json);
	return error;
}

static int check_platform(const cJSON *json)
{
	const char *architecture = json_text(json, "architecture");
	const char *system = json_text(json, "os");

	if ((!architecture || strcmp(architecture, container_architecture()) == 0) &&
	    (!system || strcmp(system, "linux") == 0))
		return 0;
	log_error("the archive's image is for %s on %s, and this machine is Linux on %s",
		  system ? system : "linux", architecture ? architecture : "any machine",
		  container_architecture());
	return -EINVAL;
}

static int take_layer_digests(const cJSON *json, struct container_plan *plan)
{
	const cJSON *rootfs = cJSON_GetObjectItemCaseSensitive(json, "rootfs");
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(rootfs, "diff_ids"), *item;

	plan->unpacked_count = 0;
	if (cJSON_GetArraySize(list) != (int)plan->layer_count)
		return refuse("its configuration is about another number of layers");
	cJSON_ArrayForEach(item, list)
	{
		const char *text = cJSON_GetStringValue(item);

		if (!text || !digest_from_text(text, plan->unpacked[plan->unpacked_count]))
			return refuse("a layer is not named by a SHA-256 digest");
		plan->unpacked_count++;
	}
	return 0;
}

/* Each has a name before its '='. */
static bool variables_are_good(char *const *variables)
{
	for (; *variables; variables++) {
		if (**variables == '=' || !strchr(*variables, '='))
			return false;
	}
	return true;
}

static int copy_text(const cJSON *json, const char *name, char **copy)
{
	const char *text = json_text(json, name);

	free(*copy);
	*copy = text ? strdup(text) : NULL;
	return text && !*copy ? -ENOMEM : 0;
}

static int take_settings(const cJSON *config, struct container_plan *plan)
{
	struct image_settings *settings = &plan->settings;
	int error = json_texts(config, "Env", &settings->variables);

	error = error ? error : json_texts(config, "Entrypoint", &settings->entrypoint);
	error = error ? error : json_texts(config, "Cmd", &settings->arguments);
	error = error ? error : copy_text(config, "WorkingDir", &settings->directory);
	error = error ? error : copy_text(config, "User", &plan->user);
	if (!error && settings->directory && settings->directory[0] != '/')
		error = -EINVAL;
	if (!error && !variables_are_good(settings->variables))
		error = -EINVAL;
	return error == -EINVAL ? refuse("its configuration has no good variables, directory or "
					 "command")
				: error;
}

int container_parse_config(const char *text, size_t length, struct container_plan *plan)
{
	cJSON *json = json_parse(text, length);
	int error = json ? check_platform(json) : refuse("its configuration is no JSON");

	error = error ? error : take_layer_digests(json, plan);
	error = error ? error
		      : take_settings(cJSON_GetObjectItemCaseSensitive(json, "config"), plan);
	cJSON_Delete(json);
	return error;
}
