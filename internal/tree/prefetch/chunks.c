/* SPDX-License-Identifier: BSD-3-Clause */
/* Selects the next chunk: first those in the manifest, file by file as versions become known, then
 * the remaining chunks of small files, which their first reader would fetch whole anyway. */
#include <sys/stat.h>

#include "tree/prefetch/prefetch_priv.h"

void cop_prefetch_file_ready(struct cop_prefetch *p, struct item *i, const struct cop_attr *attr)
{
	if (!S_ISREG(attr->mode))
		cop_stats_add(p->conf.stats, COP_PREFETCH_CHANGED, 1);
	if (!S_ISREG(attr->mode) || attr->size == 0 ||
		(p->conf.max_cacheable && attr->size > p->conf.max_cacheable))
		return;
	i->version = attr->version;
	i->size_now = attr->size;
	if (attr->size != i->size || attr->mtime_s != i->mtime_s ||
		attr->mtime_nsec != i->mtime_nsec)
		cop_stats_add(p->conf.stats, COP_PREFETCH_CHANGED, 1);
	p->ready[p->n_ready++] = i;
}

static const struct cop_range *range_of(
	const struct cop_prefetch *p, const struct item *i, unsigned index)
{
	return (const struct cop_range *)(const void *)p->ranges.data + i->range + index;
}

/* If a file was read to its end and has grown since, it is fetched up to its new end. */
static uint64_t end_of(const struct item *i, const struct cop_range *r)
{
	return r->end >= i->size ? i->size_now : COP_MIN(r->end, i->size_now);
}

/* The next chunk of this file, starting at the cursor. */
static bool named_chunk(struct cop_prefetch *p, const struct item *i, uint64_t *index)
{
	uint64_t chunk = cop_fetch_chunk_bytes(p->conf.fetch);

	for (; p->at_range < i->ranges; p->at_range++) {
		const struct cop_range *r = range_of(p, i, p->at_range);
		uint64_t end = end_of(i, r);

		p->at_chunk = COP_MAX(p->at_chunk, r->start / chunk);
		if (r->start < end && p->at_chunk <= (end - 1) / chunk) {
			*index = p->at_chunk++;
			return true;
		}
	}
	return false;
}

/* End of the run of contiguous chunks in the manifest that starts at the cursor. */
static uint64_t run_end(const struct cop_prefetch *p, const struct item *i)
{
	uint64_t chunk = cop_fetch_chunk_bytes(p->conf.fetch), run = 0;

	for (unsigned n = p->at_range; n < i->ranges; n++) {
		const struct cop_range *r = range_of(p, i, n);
		uint64_t end = end_of(i, r);

		if (r->start >= end)
			continue;
		if (run && r->start / chunk > run)
			break;
		run = COP_MAX(run, (end - 1) / chunk + 1);
	}
	return run;
}

static bool is_streamed(const struct cop_prefetch *p, const struct item *i)
{
	struct cop_cache_usage u;

	if (i->size_now <= cop_fetch_chunk_bytes(p->conf.fetch) ||
		i->size_now > p->conf.whole_file_max || !i->ranges)
		return false;
	cop_cache_usage(p->conf.cache, &u);
	return i->size_now <= u.limit_bytes / 4;
}

static bool rest_chunk(struct cop_prefetch *p, const struct item *i, uint64_t *index)
{
	if (p->at_chunk == 0 && !is_streamed(p, i))
		return false;
	*index = p->at_chunk++;
	return cop_fetch_chunk_len(p->conf.fetch, i->size_now, *index) > 0;
}

void cop_prefetch_have_chunk(struct cop_prefetch *p, const struct item *i, uint64_t index)
{
	uint64_t chunk = cop_fetch_chunk_bytes(p->conf.fetch);

	for (unsigned n = 0; n < i->ranges; n++) {
		const struct cop_range *r = range_of(p, i, n);
		uint64_t start = COP_MAX(r->start, index * chunk);
		uint64_t end = COP_MIN(end_of(i, r), (index + 1) * chunk);

		if (start < end)
			p->conf.have(p->conf.arg, COP_MANIFEST_FILE, cop_prefetch_path(p, i), start,
				end);
	}
}

void cop_prefetch_more_files(struct cop_prefetch *p)
{
	if (!p->rest)
		return;
	p->rest = false;
	p->at_file = p->named;
	p->at_range = 0;
	p->at_chunk = 0;
}

bool cop_prefetch_next_chunk(struct cop_prefetch *p, struct cop_ask *ask, struct item **of)
{
	uint64_t index;

	while (p->at_file < p->n_ready) {
		struct item *i = p->ready[p->at_file];

		if (p->rest ? rest_chunk(p, i, &index) : named_chunk(p, i, &index)) {
			*ask = (struct cop_ask){.kind = COP_ASK_CHUNK,
				.path = cop_prefetch_path(p, i),
				.version = i->version,
				.size = i->size_now,
				.index = index,
				.background = true};
			/* Smaller files are fetched whole. */
			if (!p->rest && i->size_now > p->conf.whole_file_max)
				ask->run_end = run_end(p, i);
			*of = i;
			return true;
		}
		p->at_file++;
		p->at_range = 0;
		p->at_chunk = 0;
		atomic_fetch_add(&p->files, !p->rest);
	}
	return false;
}
