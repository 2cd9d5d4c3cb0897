/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of the parts in the file. The file is append-only: nothing is moved or freed
 * individually, and an obsolete part stays until the file is restarted. */
#include "storage/spill/spill_priv.h"

/* Parts are page-aligned, so that no write has to read a page first. */
#define ALIGN 4096u

/* Two independent hashes of the complete key: 128 bits that identify a part. */
static uint64_t hash_of(const struct cop_key *key, uint64_t seed)
{
	uint64_t rest[] = {key->version, key->size, key->index, key->facet, seed};

	return cop_hash64(key->path, key->path_len, cop_hash64(rest, sizeof(rest), seed));
}

#define FIRST(key) hash_of(key, 1)
#define SECOND(key) hash_of(key, 2)

static struct spill_entry *entry_at(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct spill_entry, link) : NULL;
}

struct spill_entry *cop_spill_find(struct cop_spill *s, const struct cop_key *key)
{
	struct cop_hlink *l = cop_htab_first(&s->index, FIRST(key));
	uint64_t second = l ? SECOND(key) : 0;

	while (l && entry_at(l)->second != second)
		l = cop_htab_next(l);
	return entry_at(l);
}

static uint64_t aligned(size_t len)
{
	return (len + ALIGN - 1) / ALIGN * (uint64_t)ALIGN;
}

/* The file can be restarted at offset 0 once it is empty and no write is in progress. */
static void rewind_if_empty(struct cop_spill *s)
{
	if (!s->index.count && !s->writing)
		s->end = 0;
}

void cop_spill_empty(struct cop_spill *s)
{
	struct cop_hlink *l = cop_htab_after(&s->index, NULL), *next;

	for (; l; l = next) {
		struct spill_entry *e = entry_at(l);

		next = cop_htab_after(&s->index, l);
		if (e->write)
			e->write->entry = NULL;
		cop_htab_remove(&s->index, l);
		free(e);
	}
	s->age++;
	s->passed = 0;
	rewind_if_empty(s);
}

/* The file is restarted once it has turned away this many times its size without a single read. If
 * programs cycle through more data than that, the part that fits is not worth keeping. */
#define PASSES 4

/* Turns away this many bytes for lack of room. If that was too much since the last read, empties
 * the file. */
static void turn_away(struct cop_spill *s, size_t len)
{
	s->passed += len;
	if (s->passed > PASSES * s->end)
		cop_spill_empty(s);
}

static struct spill_write *new_write(struct cop_spill *s, struct cop_obj *obj)
{
	struct spill_write *w = malloc(sizeof(*w));
	struct spill_entry *e = malloc(sizeof(*e));

	if (!w || !e) {
		free(w);
		free(e);
		return NULL;
	}
	*w = (struct spill_write){.entry = e, .obj = obj, .offset = s->end};
	*e = (struct spill_entry){.second = SECOND(&obj->key),
		.offset = s->end,
		.sum = obj->sum,
		.write = w,
		.len = (uint32_t)obj->len,
		.packed = obj->packed};
	cop_list_init(&w->link);
	return w;
}

bool cop_spill_take(struct cop_spill *s, struct cop_obj *obj)
{
	struct spill_write *w;

	if (s->pending + obj->len > s->pending_max)
		return false;
	if (s->index.count >= s->entries_max || s->end + aligned(obj->len) > s->conf.size)
		turn_away(s, obj->len);
	if (s->index.count >= s->entries_max || s->end + aligned(obj->len) > s->conf.size)
		return false;
	w = new_write(s, obj);
	if (!w)
		return false;
	cop_htab_add(&s->index, &w->entry->link, FIRST(&obj->key));
	s->end += aligned(obj->len);
	s->pending += obj->len;
	s->writing++;
	cop_list_push_back(&s->writes, &w->link);
	return true;
}

void cop_spill_written(struct cop_spill *s, struct spill_write *w)
{
	if (w->entry)
		w->entry->write = NULL;
	s->pending -= w->obj->len;
	s->writing--;
	rewind_if_empty(s);
}
