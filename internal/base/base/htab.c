/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/htab.h"

#include <assert.h>

#define FIRST_HEADS 64u

static void push_link(struct cop_htab *t, struct cop_hlink *l)
{
	struct cop_hlink **head = cop_htab_head(t, l->hash);

	l->next = *head;
	*head = l;
}

static void grow_heads(struct cop_htab *t)
{
	struct cop_htab old = *t;
	size_t heads = old.head ? 2 * (old.mask + 1) : FIRST_HEADS;
	struct cop_hlink *next;

	if (heads > COP_HTAB_HEADS_MAX || !(t->head = calloc(heads, sizeof(struct cop_hlink *)))) {
		t->head = old.head;
		return;
	}
	t->mask = heads - 1;
	t->one = NULL;
	for (size_t i = 0; i <= old.mask; i++)
		for (struct cop_hlink *l = *cop_htab_head(&old, i); l; l = next) {
			next = l->next;
			push_link(t, l);
		}
	free(old.head);
}

void cop_htab_add(struct cop_htab *t, struct cop_hlink *l, uint64_t hash)
{
	if (!t->head || t->count > t->mask)
		grow_heads(t);
	l->hash = hash;
	push_link(t, l);
	t->count++;
}

void cop_htab_remove(struct cop_htab *t, struct cop_hlink *l)
{
	struct cop_hlink **at = cop_htab_head(t, l->hash);

	while (*at != l) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = l->next;
	l->next = NULL;
	t->count--;
}

struct cop_hlink *cop_htab_after(const struct cop_htab *t, const struct cop_hlink *l)
{
	size_t i = l ? (l->hash & t->mask) + 1 : 0;

	if (l && l->next)
		return l->next;
	for (; i <= t->mask; i++)
		if (*cop_htab_head(t, i))
			return *cop_htab_head(t, i);
	return NULL;
}

void cop_htab_fini(struct cop_htab *t)
{
	free(t->head);
	*t = (struct cop_htab){0};
}
