/* SPDX-License-Identifier: BSD-3-Clause */
/* The manifest in memory: concatenated paths, arrays of items and ranges. */
#include "tree/prefetch/prefetch_priv.h"

struct item *cop_prefetch_item(const struct cop_prefetch *p, size_t index)
{
	return (struct item *)(void *)p->items.data + index;
}

const char *cop_prefetch_path(const struct cop_prefetch *p, const struct item *i)
{
	return p->text.data + i->path;
}

static void add_item(struct cop_prefetch *p, const struct cop_manifest_item *m)
{
	struct item i = {.kind = (uint8_t)m->kind,
		.path = p->text.len,
		.part = (uint8_t)m->part,
		.ranges = (uint8_t)m->ranges,
		.range = p->ranges.len / sizeof(m->range[0]),
		.size = m->size,
		.mtime_s = m->mtime_s,
		.mtime_nsec = m->mtime_nsec};

	cop_buf_add(&p->text, m->path, m->len + 1);
	cop_buf_add(&p->ranges, m->range, m->ranges * sizeof(m->range[0]));
	cop_buf_add(&p->items, &i, sizeof(i));
	p->n_items++;
	atomic_store(&p->count, p->n_items);
}

bool cop_prefetch_parse_piece(struct cop_prefetch *p, const char *data, size_t len)
{
	struct cop_manifest_reader *r = &p->reader;
	struct cop_manifest_item m;

	if (p->text.len + len > COP_MANIFEST_BYTES_MAX)
		return false;
	r->data = data;
	r->len = len;
	r->at = 0;
	while (cop_manifest_next(r, &m)) {
		/* A manifest that lists no parts has a single one, with no first file. */
		if (r->parts)
			p->part[m.part] = cop_hash64(r->part_path, strlen(r->part_path), 0) | 1;
		add_item(p, &m);
	}
	return !p->text.failed && !p->items.failed && !p->ranges.failed;
}
