/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no guest may be told, and what it is told instead: each secret as it is, and in the forms in
 * which servers say again what they were told, with the same form of its placeholder. Pure.
 */
#ifndef MVAGENT_SECRET_MASK_TABLE_H
#define MVAGENT_SECRET_MASK_TABLE_H

#include "vmm/secret/secret.h"

/* The longest: every byte as &quot; or \u0026. */
#define MASK_FORM_BYTES (6U * LIMIT_SECRET_BYTES)

struct mask_table;

/* A form of a secret that begins somewhere. */
struct mask_match {
	unsigned int secret; /* its index: secret_owner */
	size_t length;       /* of what is there of it; 0: nothing */
	bool whole;          /* all of it is there */
	bool open;           /* all bytes are the start of one that is longer */
	bool telling;        /* so much of it that it must not be told */
	const char *instead; /* as many bytes as there are of it, and more */
};

/* 0 or -ENOMEM. */
int mask_table_create(struct mask_table **table, const struct secret_set *set);

/* One more of @set, which was not there before. 0 or -ENOMEM: then it is not all there. */
int mask_table_add(struct mask_table *table, const struct secret_set *set, unsigned int index);

/* Wipes and frees it. */
void mask_table_destroy(struct mask_table *table);

/* The longest that @bytes (at least one) begin with; of those as long one that is whole. */
struct mask_match mask_table_match(const struct mask_table *table, const char *bytes,
				   size_t length);

#endif
