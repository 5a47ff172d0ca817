/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/image/container_json.h"
#include "vmm/image/members.h"

struct archive_of_layers {
	const struct container_input *input;
	struct members members;
	struct container_plan *plan;
};

static const struct member *find(const struct archive_of_layers *archive, const char *name)
{
	const struct member *member = members_find(&archive->members, name);

	if (!member) {
		log_error("the archive has no '%s', which its image needs", name);
		return NULL;
	}
	if (bytes_range_fits(member->offset, member->size, archive->input->bytes))
		return member;
	log_error("the archive is cut off");
	return NULL;
}

static int check_digest(const struct container_part *part, const uint8_t digest[SHA256_BYTES])
{
	if (!part->has_digest || memcmp(part->digest, digest, SHA256_BYTES) == 0)
		return 0;
	log_error("'%s' in the archive is not what its digest says: it is damaged or was changed",
		  part->name);
	return -EBADMSG;
}

/* A description, whole and checked; allocated. */
static int read_text(const struct archive_of_layers *archive, const struct container_part *part,
		     char **text, size_t *length)
{
	const struct member *member = find(archive, part->name);
	uint8_t digest[SHA256_BYTES];
	int error;

	*text = NULL;
	if (!member)
		return -ENOENT;
	if (member->size > LIMIT_IMAGE_JSON_BYTES) {
		log_error("'%s' in the archive has more than %u bytes", part->name,
			  LIMIT_IMAGE_JSON_BYTES);
		return -EFBIG;
	}
	*length = member->size;
	*text = calloc(1, member->size + 1);
	error = *text ? fd_pread_full(archive->input->fd, *text, *length, (off_t)member->offset)
		      : -ENOMEM;
	if (error)
		return log_errno(error, "cannot read '%s' in the archive", part->name);
	sha256_of(*text, *length, digest);
	return check_digest(part, digest);
}

/* From index.json to the manifest, over the indexes between. */
static int read_manifest(const struct archive_of_layers *archive)
{
	struct container_part part = {.name = "index.json"};
	int error = 0;

	for (unsigned int i = 0; i <= LIMIT_IMAGE_INDEXES && !error; i++) {
		struct container_part next = {0};
		char *text;
		size_t length;

		error = read_text(archive, &part, &text, &length);
		if (!error && i && !container_is_index(text, length)) {
			error = container_parse_manifest(text, length, archive->plan);
			free(text);
			return error;
		}
		error = error ? error : container_parse_index(text, length, &next);
		free(text);
		part = next;
	}
	if (!error)
		log_error("the archive's indexes lead to more than %u others", LIMIT_IMAGE_INDEXES);
	return error ? error : -EINVAL;
}

static int read_docker(const struct archive_of_layers *archive)
{
	const struct container_part part = {.name = "manifest.json"};
	char *text;
	size_t length;
	int error = read_text(archive, &part, &text, &length);

	error = error ? error : container_parse_docker(text, length, archive->plan);
	free(text);
	return error;
}

static int read_config(const struct archive_of_layers *archive)
{
	char *text;
	size_t length;
	int error = read_text(archive, &archive->plan->config, &text, &length);

	error = error ? error : container_parse_config(text, length, archive->plan);
	free(text);
	return error;
}

static int apply_layer(const struct archive_of_layers *archive, unsigned int index,
		       const struct layer_target *target)
{
	const struct container_part *part = &archive->plan->layers[index];
	const struct member *member = find(archive, part->name);
	uint8_t packed[SHA256_BYTES], unpacked[SHA256_BYTES];
	struct stream *stream;
	int error;

	if (!member)
		return -ENOENT;
	error = stream_open(&stream,
			    &(struct stream_source){.fd = archive->input->fd,
						    .offset = member->offset,
						    .end = member->offset + member->size},
			    archive->input->left);
	if (error)
		return error;
	error = layer_apply(target, stream, true);
	stream_digests(stream, packed, unpacked);
	stream_close(stream);
	error = error ? error : check_digest(part, packed);
	if (!error && memcmp(unpacked, archive->plan->unpacked[index], SHA256_BYTES) != 0) {
		log_error("layer %u of the archive's image is not the one that its configuration "
			  "names",
			  index + 1);
		error = -EBADMSG;
	}
	return error;
}

static int apply_layers(struct archive_of_layers *archive, bool is_oci,
			const struct layer_target *target)
{
	int error = is_oci ? read_manifest(archive) : read_docker(archive);

	error = error ? error : read_config(archive);
	for (unsigned int i = 0; i < archive->plan->layer_count && !error; i++)
		error = apply_layer(archive, i, target);
	return error;
}

/* The archive is itself the one layer. */
static int apply_rootfs(const struct container_input *input, const struct layer_target *target)
{
	struct stream *stream;
	int error =
		stream_open(&stream, &(struct stream_source){.fd = input->fd, .end = input->bytes},
			    input->left);

	if (error)
		return error;
	error = layer_apply(target, stream, false);
	stream_close(stream);
	return error;
}

int container_apply(const struct container_input *input, const struct layer_target *target,
		    struct image_settings *settings, char **user)
{
	struct archive_of_layers archive = {.input = input,
					    .plan = calloc(1, sizeof(*archive.plan))};
	bool is_oci, is_docker;
	int error = archive.plan ? image_settings_init(&archive.plan->settings) : -ENOMEM;

	*user = NULL;
	if (error) {
		free(archive.plan);
		return log_errno(error, "cannot read the archive");
	}
	error = members_scan(&archive.members, input->fd, input->bytes);
	is_oci = members_find(&archive.members, "oci-layout") &&
		 members_find(&archive.members, "index.json");
	is_docker = members_find(&archive.members, "manifest.json") != NULL;
	if (!error && (is_oci || is_docker))
		error = apply_layers(&archive, is_oci, target);
	else if (!error)
		error = apply_rootfs(input, target);
	members_free(&archive.members);
	*user = archive.plan->user;
	*settings = archive.plan->settings;
	free(archive.plan);
	return error;
}
