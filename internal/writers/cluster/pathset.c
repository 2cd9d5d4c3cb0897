/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores each path once, in an arena, with 60 bytes of overhead. A random seed per run prevents
 * crafted collisions. */
#include "writers/cluster/cluster.h"

uint64_t cop_observed_pathset_hash(const struct cop_pathset *s, const char *text, size_t len)
{
	return cop_hash64(text, len, s->seed);
}

static struct cop_observed_path *path_at(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct cop_observed_path, link) : NULL;
}

static struct cop_observed_path *find_path(
	const struct cop_pathset *s, const char *text, size_t len, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(&s->table, hash);

	while (l && (path_at(l)->len != len || memcmp(path_at(l)->text, text, len) != 0))
		l = cop_htab_next(l);
	return path_at(l);
}

int cop_observed_pathset_add(struct cop_pathset *s, const char *text, size_t len, uint64_t hash,
	const struct cop_path_counts *c)
{
	struct cop_observed_path *p = find_path(s, text, len, hash);

	if (!p) {
		if (s->table.count == COP_PATHSET_MAX || s->arena.bytes > COP_PATHSET_BYTES_MAX ||
			len > COP_PATHSET_LEN_MAX) {
			s->full = true;
			return 0;
		}
		p = cop_walk_arena_alloc(&s->arena, sizeof(*p) + len + 1);
		if (!p)
			return -ENOMEM;
		*p = (struct cop_observed_path){.len = (uint32_t)len};
		memcpy(p->text, text, len);
		p->text[len] = '\0';
		cop_htab_add(&s->table, &p->link, hash);
	}
	p->events = cop_add_saturating(p->events, c->events);
	p->absent = cop_add_saturating(p->absent, c->absent);
	p->ttl = cop_add_saturating(p->ttl, c->ttl);
	return 0;
}

const struct cop_observed_path *cop_observed_pathset_next(
	const struct cop_pathset *s, const struct cop_observed_path *p)
{
	return path_at(cop_htab_after(&s->table, p ? &p->link : NULL));
}

void cop_observed_pathset_free(struct cop_pathset *s)
{
	cop_htab_fini(&s->table);
	cop_walk_arena_free(&s->arena);
	*s = (struct cop_pathset){0};
}
