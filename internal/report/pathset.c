/* SPDX-License-Identifier: BSD-3-Clause */
/* Open addressing with pointers into an arena: a path costs its bytes and 60 more, and is stored
 * once. The seed differs from run to run, so that a table cannot be written to make all its paths
 * collide. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/observed_priv.h"

#define FIRST_SLOTS 4096u

static void add_up(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

uint64_t cop_report_pathset_hash(const struct pathset *s, const char *text, size_t len)
{
	return cop_hash64(text, len, s->seed);
}

/* The path's slot, or the free one where it belongs. */
static struct observed_path **slot_of(
	const struct pathset *s, const char *text, size_t len, uint64_t hash)
{
	for (size_t i = hash & (s->slots - 1);; i = (i + 1) & (s->slots - 1)) {
		struct observed_path *p = s->slot[i];

		if (!p || (p->hash == hash && p->len == len && memcmp(p->text, text, len) == 0))
			return &s->slot[i];
	}
}

/* The seed stays as it is: threads hash without the lock that is held here. */
static int grow(struct pathset *s)
{
	struct pathset bigger = {.slots = s->slots ? 2 * s->slots : FIRST_SLOTS};

	bigger.slot = calloc(bigger.slots, sizeof(*bigger.slot));
	if (!bigger.slot)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots; i++)
		if (s->slot[i])
			*slot_of(&bigger, s->slot[i]->text, s->slot[i]->len, s->slot[i]->hash) =
				s->slot[i];
	free(s->slot);
	s->slot = bigger.slot;
	s->slots = bigger.slots;
	return 0;
}

int cop_report_pathset_add(
	struct pathset *s, const char *text, size_t len, uint64_t hash, const struct path_counts *c)
{
	struct observed_path **slot, *p;
	int rc = s->n < s->slots / 4 * 3 ? 0 : grow(s);

	if (rc)
		return rc;
	slot = slot_of(s, text, len, hash);
	p = *slot;
	if (!p) {
		if (s->n == PATHSET_MAX || s->arena.bytes > PATHSET_BYTES_MAX ||
			len > PATHSET_LEN_MAX) {
			s->full = true;
			return 0;
		}
		p = cop_report_arena_alloc(&s->arena, sizeof(*p) + len + 1);
		if (!p)
			return -ENOMEM;
		*p = (struct observed_path){.hash = hash, .len = (uint32_t)len};
		memcpy(p->text, text, len);
		p->text[len] = '\0';
		*slot = p;
		s->n++;
	}
	add_up(&p->events, c->events);
	add_up(&p->absent, c->absent);
	add_up(&p->ttl, c->ttl);
	return 0;
}

const struct observed_path *cop_report_pathset_find(
	const struct pathset *s, const char *text, size_t len)
{
	return s->slots ? *slot_of(s, text, len, cop_report_pathset_hash(s, text, len)) : NULL;
}

void cop_report_pathset_free(struct pathset *s)
{
	free(s->slot);
	cop_report_arena_free(&s->arena);
	*s = (struct pathset){0};
}
