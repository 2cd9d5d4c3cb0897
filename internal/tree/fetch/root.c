/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a flight's path: a root reads the object from the origin. */
#include "tree/fetch/fetch_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"

/* A reader counts as sequential if this many preceding chunks are cached or in flight. */
#define BEFORE 2

/* A blob longer than its reservation is freed, and read again once enough bytes are reserved,
 * because the number of such blobs is unbounded. */
void cop_fetch_blob_read(void *arg, int rc, void *data, size_t len)
{
	struct flight *f = arg;

	cop_fetch_pass(f, FLIGHT_ACTIVE);
	cop_fetch_waited(f, COP_ORIGIN_WAIT_US);
	cop_fetch_trace_answered(f, rc, len);
	if (rc || cop_fetch_reserve_up_to(f, len)) {
		cop_fetch_complete(f, &(struct cop_completion){.rc = rc, .data = data, .len = len});
		return;
	}
	free(data);
	cop_fetch_reserve_again(f, len);
}

/* A young listing gets a new version if its timestamps are unchanged and old enough. It is read
 * again, because it may lack names created in the same tick as the last change. */
static void checked(void *arg, int rc, void *data, size_t len)
{
	struct flight *f = arg;
	struct cop_attr attr;

	cop_fetch_pass(f, FLIGHT_ACTIVE);
	cop_fetch_waited(f, COP_ORIGIN_WAIT_US);
	cop_fetch_trace_answered(f, rc, len);
	if (!rc) {
		cop_entry_get(data, &attr, NULL, NULL);
		rc = attr.version == f->ask.version ? 0 : -ESTALE;
	}
	free(data);
	cop_fetch_fail(f, rc);
}

/* A chunk of a group has its bytes, or the group failed. The origin's worker compresses the chunk
 * and computes its checksum, once for the whole tree. */
static void complete_chunk(struct flight *f, int rc, size_t got)
{
	struct cop_completion l = {.data = f->buf, .len = f->buf_len};

	/* The check after the read found the requested version and size, so the storage contradicts
	 * itself. */
	if (!rc && got != f->buf_len)
		rc = -EIO;
	if (rc) {
		cop_fetch_fail(f, rc);
		return;
	}
	l.packed = f->fetch->conf.compress && cop_pack(f->buf, f->buf_len, &l.data, &l.len) == 0;
	l.sum = cop_hash64(l.data, l.len, f->fetch->conf.sum_seed);
	cop_fetch_complete(f, &l);
}

static void group_read(void *arg, int rc, void *data, size_t len)
{
	struct flight *f = arg;

	(void)data;
	cop_fetch_pass(f, FLIGHT_ACTIVE);
	cop_fetch_waited(f, COP_ORIGIN_WAIT_US);
	cop_fetch_trace_answered(f, rc, len);
	for (struct flight *g = cop_fetch_group(f), *next; g; g = next) {
		size_t got = COP_MIN(len, g->buf_len);

		next = g->group_next;
		len -= got;
		complete_chunk(g, rc, got);
	}
}

/* Leads another chunk of f's group; NULL at the end of the run of missing chunks. */
static struct flight *extend(struct flight *f, uint64_t index)
{
	struct cop_ask ask = f->ask;

	ask.index = index;
	/* A read never mixes chunks from the pack with chunks from the source. */
	if (cop_fetch_is_packed(f->fetch, &f->ask) != cop_fetch_is_packed(f->fetch, &ask))
		return NULL;
	if (!cop_fetch_chunk_len(f->fetch, ask.size, index) ||
		!(f->spread ? cop_cache_can_home(f->fetch->conf.cache, COP_FETCH_GROUP_BYTES)
			    : cop_cache_can_reserve(f->fetch->conf.cache, COP_FETCH_GROUP_BYTES)))
		return NULL;
	return cop_fetch_lead_member(f->fetch, &ask, f->local);
}

uint64_t cop_fetch_groups(const struct cop_fetch *c, uint64_t size)
{
	return (size - 1) / (cop_fetch_group_chunks(c) * c->conf.chunk_bytes) + 1;
}

uint64_t cop_fetch_group_chunks(const struct cop_fetch *c)
{
	return COP_MIN(COP_MAX(COP_FETCH_GROUP_BYTES / c->conf.chunk_bytes, 1u), GROUP_MAX);
}

/* Whether this chunk's group and the group T positions before it have different roots, where T is
 * the number of trees: the last groups of a file, if fewer than T, go to other roots (topo.h). */
static bool is_among_last(const struct flight *f)
{
	uint64_t trees = f->fetch->conf.topo.trees,
		 groups = cop_fetch_groups(f->fetch, f->ask.size);

	return f->ask.index / cop_fetch_group_chunks(f->fetch) >= groups - groups % trees;
}

/* Index of the nth preceding chunk that this root reads; UINT64_MAX: none, or unknown. */
static uint64_t index_before(const struct flight *f, uint64_t n)
{
	uint64_t per_group = cop_fetch_group_chunks(f->fetch), at = f->ask.index;

	if (f->spread && at % per_group < n) {
		if (is_among_last(f))
			return UINT64_MAX;
		n += (f->fetch->conf.topo.trees - 1) * per_group;
	}
	return at < n ? UINT64_MAX : at - n;
}

/* Whether the file seems to be read sequentially. If a file larger than the cache is read at
 * random, the surrounding chunks are evicted before use. */
static bool goes_through(const struct flight *f)
{
	struct cop_cache *cache = f->fetch->conf.cache;
	struct cop_ask before = f->ask;
	struct cop_cache_usage usage;
	struct cop_key key;

	cop_cache_usage(cache, &usage);
	if (f->ask.size <= usage.limit_bytes / 2)
		return true;
	for (uint64_t n = 1; n <= BEFORE; n++) {
		before.index = index_before(f, n);
		if (before.index == UINT64_MAX)
			return true;
		key = cop_fetch_key(&before);
		if (!cop_cache_has(cache, &key))
			return false;
	}
	return true;
}

void cop_fetch_lead_group(struct flight *f)
{
	uint64_t per_group = cop_fetch_group_chunks(f->fetch);
	uint64_t base = f->ask.index - f->ask.index % per_group, end = base + per_group;
	struct flight *first = f, *last = f, *g;

	if (per_group == 1 || f->ask.size <= f->fetch->conf.chunk_bytes || !goes_through(f))
		return;
	if (f->ask.run_end) {
		base = f->ask.index;
		end = COP_MIN(end, f->ask.run_end);
	}
	while (first->ask.index > base && (g = extend(f, first->ask.index - 1))) {
		g->group_next = first;
		first = g;
	}
	while (last->ask.index + 1 < end && (g = extend(f, last->ask.index + 1)))
		last = last->group_next = g;
	if (first == last)
		return;
	f->group = first;
	for (g = first; g; g = g->group_next)
		if (g != f)
			cop_fetch_pass(g, FLIGHT_MEMBER);
}

void cop_fetch_read_chunks(struct flight *f, struct cop_origin *o)
{
	struct flight *first = cop_fetch_group(f);
	struct iovec iov[GROUP_MAX];
	int count = 0;

	for (struct flight *g = first; g; g = g->group_next)
		iov[count++] = (struct iovec){g->buf, g->buf_len};
	cop_origin_read(o, f->ask.path, f->ask.version, f->ask.size,
		first->ask.index * f->fetch->conf.chunk_bytes, iov, count, group_read, f);
}

static void own_manifest(struct flight *f)
{
	const struct cop_fetch_conf *conf = &f->fetch->conf;
	struct cop_completion l = {.rc = -ENODATA};

	if (conf->manifest)
		l.rc = conf->manifest(conf->ctx, f->ask.index, &l.data, &l.len);
	cop_fetch_blob_read(f, l.rc, l.data, l.len);
}

void cop_fetch_read_origin(struct flight *f)
{
	bool background = atomic_load(&f->obj->background);
	struct cop_origin *o = f->fetch->conf.origin;

	if (f->ask.guess && !cop_guess_is_likely(f->fetch->guess, f->ask.path) &&
		cop_cache_withdraw(f->fetch->conf.cache, f->obj)) {
		cop_fetch_fail(f, -ENOENT);
		return;
	}
	if (background && f->ask.guess)
		o = cop_origin_soon(o);
	else if (background && !cop_fetch_is_first_chunk(&f->ask))
		o = cop_origin_background(o);
	/* Stands in for a dead home. */
	if (f->spread)
		cop_cache_set_duty(f->fetch->conf.cache, f->obj, COP_DUTY_HOME);
	for (struct flight *g = cop_fetch_group(f); g; g = g->group_next)
		atomic_store(&g->obj->reading, true);
	f->asked_ns = cop_now_ns();
	cop_fetch_pass(f, FLIGHT_READING);
	cop_fetch_trace_origin(f);
	cop_log_debug("reading the source kind=%s path=\"/%s\" index=%llu",
		cop_fetch_kind_name(f->ask.kind), f->ask.path, (unsigned long long)f->ask.index);
	switch (f->ask.kind) {
	case COP_ASK_LISTING:
		if (!cop_fetch_list_packed(f, o))
			cop_origin_list(o, f->ask.path, cop_fetch_blob_read, f);
		break;
	case COP_ASK_NEWER:
		cop_origin_list(o, f->ask.path, cop_fetch_blob_read, f);
		break;
	case COP_ASK_NAMES:
		cop_origin_names(o, f->ask.path, cop_fetch_blob_read, f);
		break;
	case COP_ASK_ENTRY:
		cop_origin_stat(o, f->ask.path, cop_fetch_blob_read, f);
		break;
	case COP_ASK_CHUNK:
		if (cop_fetch_is_packed(f->fetch, &f->ask))
			cop_fetch_read_packed(f, o);
		else
			cop_fetch_read_chunks(f, o);
		break;
	case COP_ASK_HOLES:
		cop_origin_holes(o, f->ask.path, f->ask.version, cop_fetch_blob_read, f);
		break;
	case COP_ASK_STATFS:
		cop_origin_statfs(o, cop_fetch_blob_read, f);
		break;
	case COP_ASK_CHECK:
		cop_origin_stat(o, f->ask.path, checked, f);
		break;
	case COP_ASK_MANIFEST:
		own_manifest(f);
		break;
	case COP_ASK_PAGE:
		cop_fetch_read_page(f, o);
		break;
	}
}
