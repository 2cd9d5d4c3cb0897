/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/walk/walk_priv.h"

#define BLOCK (COP_MIB)
#define ALIGN 8u

struct cop_arena_block {
	struct cop_arena_block *next;
	char data[];
};

/* Gives a large piece a block of its own, linked behind the current one. */
static void *alloc_alone(struct cop_arena *a, size_t bytes)
{
	struct cop_arena_block *b = malloc(sizeof(*b) + bytes);

	if (!b)
		return NULL;
	b->next = a->block ? a->block->next : NULL;
	if (a->block)
		a->block->next = b;
	else
		a->block = b;
	a->bytes += bytes;
	return b->data;
}

void *cop_walk_arena_alloc(struct cop_arena *a, size_t bytes)
{
	struct cop_arena_block *b;
	void *at;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (bytes > BLOCK / 4)
		return alloc_alone(a, bytes);
	if (a->size - a->used < bytes) {
		b = malloc(sizeof(*b) + BLOCK);
		if (!b)
			return NULL;
		b->next = a->block;
		a->block = b;
		a->used = 0;
		a->size = BLOCK;
	}
	at = a->block->data + a->used;
	a->used += bytes;
	a->bytes += bytes;
	return at;
}

char *cop_walk_arena_copy(struct cop_arena *a, const char *text, size_t len)
{
	char *copy = cop_walk_arena_alloc(a, len + 1);

	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

void cop_walk_arena_free(struct cop_arena *a)
{
	while (a->block) {
		struct cop_arena_block *next = a->block->next;

		free(a->block);
		a->block = next;
	}
	*a = (struct cop_arena){0};
}
