/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http2_memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

/* Counts what was given. */
static void *count(struct http2_memory *memory, void *given)
{
	memory->used += malloc_usable_size(given);
	return given;
}

static void *allocate(size_t size, void *user)
{
	struct http2_memory *memory = user;

	return size > memory->limit - bytes_minimum(memory->used, memory->limit)
		       ? NULL
		       : count(memory, malloc(size ? size : 1));
}

static void *allocate_zeroed(size_t number, size_t size, void *user)
{
	struct http2_memory *memory = user;
	size_t length;

	if (__builtin_mul_overflow(number, size, &length) ||
	    length > memory->limit - bytes_minimum(memory->used, memory->limit))
		return NULL;
	return count(memory, calloc(number, size));
}

static void give_back(void *given, void *user)
{
	struct http2_memory *memory = user;
	const size_t length = malloc_usable_size(given);

	if (!given)
		return;
	memory->used -= length;
	explicit_bzero(given, length);
	free(given);
}

/* Never in its place: what it leaves behind is wiped. */
static void *allocate_again(void *given, size_t size, void *user)
{
	void *other;

	if (!given)
		return allocate(size, user);
	if (malloc_usable_size(given) >= size)
		return given;
	other = allocate(size, user);
	if (!other)
		return NULL;
	memcpy(other, given, malloc_usable_size(given));
	give_back(given, user);
	return other;
}

void http2_memory_begin(struct http2_memory *memory, size_t limit)
{
	*memory = (struct http2_memory){
		.limit = limit,
		.functions = {memory, allocate, give_back, allocate_zeroed, allocate_again},
	};
}
