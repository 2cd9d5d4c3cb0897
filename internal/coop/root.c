/* SPDX-License-Identifier: BSD-3-Clause */
/* A root's end of a flight: the origin. */
#include "coop/coop_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void blob_read(void *arg, int rc, void *data, size_t len)
{
	cop_coop_land(arg, &(struct cop_landing){.rc = rc, .data = data, .len = len});
}

static void checked(void *arg, int rc, void *data, size_t len)
{
	struct flight *f = arg;
	struct cop_attr attr;

	(void)len;
	if (!rc) {
		cop_entry_get(data, &attr, NULL, NULL);
		rc = attr.version == f->ask.version ? 0 : -ESTALE;
	}
	free(data);
	cop_coop_fail(f, rc);
}

/* One chunk of a group has its bytes, or the group failed. Packing and the checksum happen here, on the origin's worker, once for the
 * whole tree. */
static void land_chunk(struct flight *f, int rc, size_t got)
{
	struct cop_landing l = {.data = f->buf, .len = f->buf_len};

	/* Fewer bytes than the version promises: the file is not that version any more. */
	if (!rc && got != f->buf_len)
		rc = -ESTALE;
	if (rc) {
		cop_coop_fail(f, rc);
		return;
	}
	l.packed = f->coop->conf.compress && cop_pack(f->buf, f->buf_len, &l.data, &l.len) == 0;
	l.sum = cop_hash64(l.data, l.len, 0);
	cop_coop_land(f, &l);
}

static void group_read(void *arg, int rc, void *data, size_t len)
{
	struct flight *f = arg, *group[GROUP_MAX];
	unsigned count = f->group_count;

	(void)data;
	memcpy(group, f->group, sizeof(group));
	for (unsigned i = 0; i < count; i++) {
		size_t got = COP_MIN(len, group[i]->buf_len);

		len -= got;
		land_chunk(group[i], rc, got);
	}
}

/* Takes the chunks that follow into the same read, as long as nobody has them and memory is at hand. Only with
 * one tree: with several, the following chunks belong to other roots. */
static void gather(struct flight *f)
{
	struct cop_coop *c = f->coop;
	struct cop_ask ask = f->ask;

	f->group[0] = f;
	f->group_count = 1;
	while (c->conf.topo.stripes == 1 && f->group_count < GROUP_MAX) {
		size_t len = cop_coop_chunk_len(c, ask.size, ++ask.index);
		struct flight *g;

		if (len == 0 || !cop_cache_spare(c->conf.cache, len))
			break;
		g = cop_coop_lead_quiet(c, &ask);
		if (!g)
			break;
		if (!cop_cache_room_now(c->conf.cache, g->obj, len)) {
			/* Somebody may have joined already, so it flies all the same, on its own. */
			cop_coop_wait_for_room(g);
			break;
		}
		g->buf = malloc(len);
		if (!g->buf) {
			cop_coop_fail(g, -ENOMEM);
			break;
		}
		f->group[f->group_count++] = g;
	}
}

static void read_chunks(struct flight *f)
{
	struct iovec iov[GROUP_MAX];

	gather(f);
	for (unsigned i = 0; i < f->group_count; i++)
		iov[i] = (struct iovec){f->group[i]->buf, f->group[i]->buf_len};
	cop_origin_read(f->coop->conf.origin, f->ask.path, f->ask.version,
		f->ask.index * f->coop->conf.chunk_bytes, iov, (int)f->group_count, group_read, f);
}

void cop_coop_read_origin(struct flight *f)
{
	struct cop_origin *o = f->coop->conf.origin;

	switch (f->ask.kind) {
	case COP_ASK_LISTING:
		cop_origin_list(o, f->ask.path, blob_read, f);
		break;
	case COP_ASK_NAMES:
		cop_origin_names(o, f->ask.path, blob_read, f);
		break;
	case COP_ASK_ENTRY:
		cop_origin_stat(o, f->ask.path, blob_read, f);
		break;
	case COP_ASK_CHUNK:
		read_chunks(f);
		break;
	case COP_ASK_HOLES:
		cop_origin_holes(o, f->ask.path, f->ask.version, blob_read, f);
		break;
	case COP_ASK_STATFS:
		cop_origin_statfs(o, blob_read, f);
		break;
	case COP_ASK_CHECK:
		cop_origin_stat(o, f->ask.path, checked, f);
		break;
	}
}
