/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that is not trusted: what is not of the expected form is not there. */
#ifndef MVAGENT_IMAGE_JSON_H
#define MVAGENT_IMAGE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Parses @length bytes that are one value, an object or an array. NULL when they are not. Free by
 * cJSON_Delete. */
cJSON *json_parse(const char *text, size_t length);

/* The text of an object's member, or NULL. Empty ones are not there. */
const char *json_text(const cJSON *object, const char *name);

/* A whole number from 0 to @maximum (below 2^53). Whether it is one. */
bool json_number(const cJSON *object, const char *name, uint64_t maximum, uint64_t *number);

/* The texts of an array, copied; of none if the member is not there or null. 0, -EINVAL (anything
 * else, or beyond LIMIT_IMAGE_STRINGS) or -ENOMEM. *@list, which is allocated, is replaced. */
int json_texts(const cJSON *object, const char *name, char ***list);

#endif
