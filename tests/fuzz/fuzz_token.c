/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says that gives out tokens. It leaves as long as it came and the same however it is
 * cut, but for the placeholders; and where it is JSON, as another reader understands it, no token
 * in it is there afterwards, and all else is as it was. */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/token_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VALUE "S3CRET-S3CRET-S3CRET"
#define PLACE "PLACE-HOLDER-1-2-3-4"

#define REQUIRE(condition)        \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void begin(struct token_store *store)
{
	static struct secret_set set;
	struct secret *secret = &set.secrets[0];

	memset(&set, 0, sizeof(set));
	set.count = 1;
	secret->length = strlen(VALUE);
	memcpy(secret->value, VALUE, sizeof(VALUE));
	memcpy(secret->placeholder, PLACE, sizeof(PLACE));
	memcpy(secret->endpoint_path, "/token", 7);
	memcpy(secret->hosts[0].name, "a.test", 7);
	secret->hosts[0].port = 443;
	secret->host_count = 1;
	*store = (struct token_store){.set = &set, .given = 1};
	REQUIRE(mask_table_create(&store->masks, &set) == 0);
}

/* What leaves, in pieces; @out has room. Whether it was stopped. */
static bool pass(struct token_store *store, const uint8_t *data, size_t size, size_t piece,
		 char *out, size_t *length)
{
	struct token_scope scope = {store, "a.test", 443, {0}};
	struct token_scan *scan = calloc(1, sizeof(*scan));
	static char room[TOKEN_SCAN_ROOM];
	ssize_t made = 0;
	bool stopped;

	REQUIRE(scan);
	scan->scope = &scope;
	*length = 0;
	for (size_t done = 0; made >= 0 && done < size; done += piece) {
		const size_t count = (size_t)bytes_minimum(piece, size - done);

		made = token_scan_put(scan, (const char *)data + done, count, room);
		REQUIRE(made <= (ssize_t)sizeof(room));
		if (made > 0)
			memcpy(out + *length, room, (size_t)made);
		*length += made > 0 ? (size_t)made : 0;
	}
	stopped = token_scan_end(scan) < 0 || made < 0;
	REQUIRE(!stopped || scan->reason);
	free(scan);
	return stopped;
}

static bool is_name(const char *key)
{
	static const char *const names[] = {"accesstoken", "refreshtoken", "idtoken"};
	char word[16];
	size_t length = 0;

	for (; key && *key && length < sizeof(word) - 1; key++) {
		if (*key != '_' && *key != '-')
			word[length++] = *key;
	}
	word[length] = '\0';
	for (size_t i = 0; key && !*key && i < ARRAY_SIZE(names); i++) {
		if (strcasecmp(word, names[i]) == 0)
			return true;
	}
	return false;
}

static void compare(const cJSON *was, const cJSON *is)
{
	for (; was && is; was = was->next, is = is->next) {
		REQUIRE(was->type == is->type);
		REQUIRE(!was->string == !is->string);
		REQUIRE(!was->string || strcmp(was->string, is->string) == 0);
		if (cJSON_IsString(was)) {
			const size_t length = strlen(was->valuestring);

			REQUIRE(strlen(is->valuestring) == length);
			if (was->string && is_name(was->string) && length)
				REQUIRE(strcmp(was->valuestring, PLACE) == 0 ||
					strcmp(was->valuestring, is->valuestring) != 0);
		}
		compare(was->child, is->child);
	}
	REQUIRE(!was && !is);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *end;
	struct token_store store;
	char *out = malloc(size + 1), *other = malloc(size + 1);
	size_t length, other_length;
	bool stopped, other_stopped;
	cJSON *was, *is;

	REQUIRE(out && other);
	begin(&store);
	stopped = pass(&store, data, size, TOKEN_SCAN_BYTES, out, &length);
	/* Its tokens are known now. */
	other_stopped = pass(&store, data, size, 1 + size % 13, other, &other_length);
	REQUIRE(stopped == other_stopped && length <= size && other_length <= size);
	REQUIRE(memcmp(out, other, (size_t)bytes_minimum(length, other_length)) == 0);
	REQUIRE(stopped || (length == size && other_length == size));
	/* The other reader takes a NUL for the end of a text. */
	if (!stopped && !memchr(data, '\0', size)) {
		was = cJSON_ParseWithLengthOpts((const char *)data, size, &end, false);
		is = was ? cJSON_ParseWithLengthOpts(out, length, &end, false) : NULL;
		REQUIRE(!was == !is);
		compare(was, is);
		cJSON_Delete(was);
		cJSON_Delete(is);
	}
	mask_table_destroy(store.masks);
	free(out);
	free(other);
	return 0;
}
