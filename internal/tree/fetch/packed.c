/* SPDX-License-Identifier: BSD-3-Clause */
/* A root reads objects from the pack if the source still has the same version. A file's version
 * comes from attributes that the storage returned in this job, and origin compares a directory's
 * version; the pack is never consulted about the present state. */
#include "tree/fetch/fetch_priv.h"

#include "base/log/log.h"

/* A pack contains no young versions. */
static const struct cop_packfile_record *record_of(
	const struct cop_fetch *c, const struct cop_ask *ask)
{
	if (!c->conf.pack || atomic_load(&c->unpacked))
		return NULL;
	return cop_packfile_chunk(c->conf.pack, ask->path, ask->version, ask->size, ask->index);
}

bool cop_fetch_is_packed(const struct cop_fetch *c, const struct cop_ask *ask)
{
	return record_of(c, ask) != NULL;
}

/* Moves a compressed body into the flight's buffer. */
static int unpack(struct flight *f, struct cop_completion *l)
{
	int rc = cop_pack_read(l->data, 0, f->buf_len, f->buf);

	free(l->data);
	l->data = f->buf;
	l->len = f->buf_len;
	l->packed = false;
	return rc;
}

/* Reads and validates the body of a flight's chunk. */
static int read_body(struct flight *f, struct cop_completion *l)
{
	const struct cop_packfile_record *r = record_of(f->fetch, &f->ask);
	int rc;

	if (!r || (r->packed ? r->len > f->buf_len : r->len != f->buf_len))
		return -EBADMSG;
	*l = (struct cop_completion){.data = f->buf, .len = r->len, .packed = r->packed};
	if (r->packed)
		l->data = malloc(r->len);
	if (!l->data)
		return -ENOMEM;
	rc = cop_packfile_read(f->fetch->conf.pack, r, l->data);
	if (!rc && r->packed)
		rc = cop_pack_check(l->data, l->len, f->buf_len);
	if (rc) {
		if (r->packed)
			free(l->data);
		return rc;
	}
	return l->packed && !f->fetch->conf.compress ? unpack(f, l) : 0;
}

/* Logs one line; the pack is not used from then on. */
static void give_up_pack(struct cop_fetch *c, int rc)
{
	if (!atomic_exchange(&c->unpacked, true))
		cop_log_warn(
			"the pack of the last job is damaged or cannot be read, and is not used error=\"%s\"",
			strerror(-rc));
}

struct packed_read {
	struct flight *f;
	struct cop_origin *o;
};

static void complete(struct flight *f, struct cop_completion *l)
{
	struct cop_fetch *c = f->fetch;

	cop_stats_add(c->conf.stats, COP_PREFETCH_PACKED, 1);
	cop_stats_add(c->conf.stats, COP_PREFETCH_PACKED_BYTES, l->len);
	l->sum = cop_hash64(l->data, l->len, c->conf.sum_seed);
	l->from = COP_FROM_PACK;
	cop_fetch_complete(f, l);
}

/* Reads the bodies of all chunks of a group, or none. */
static int read_bodies(struct flight *f, struct cop_completion l[GROUP_MAX])
{
	struct flight *g = cop_fetch_group(f);
	unsigned n = 0;
	int rc = 0;

	for (; g && !rc; g = g->group_next)
		rc = read_body(g, &l[n++]);
	if (!rc)
		return 0;
	for (g = cop_fetch_group(f), n--; n > 0; g = g->group_next, n--, l++)
		if (l->data != g->buf)
			free(l->data);
	return rc;
}

/* Runs on a worker of the origin. */
static void read_group(void *arg, int rc)
{
	struct packed_read *p = arg;
	struct cop_completion l[GROUP_MAX];
	struct flight *f = p->f, *next;
	struct cop_origin *o = p->o;
	unsigned n = 0;

	free(p);
	if (!rc && (rc = read_bodies(f, l))) {
		give_up_pack(f->fetch, rc);
		cop_fetch_read_chunks(f, o);
		return;
	}
	cop_fetch_pass(f, FLIGHT_ACTIVE);
	cop_fetch_waited(f, COP_ORIGIN_WAIT_US);
	cop_fetch_trace_answered(f, rc, rc ? 0 : l[0].len);
	for (struct flight *g = cop_fetch_group(f); g; g = next) {
		next = g->group_next;
		if (rc)
			cop_fetch_fail(g, rc);
		else
			complete(g, &l[n++]);
	}
}

void cop_fetch_read_packed(struct flight *f, struct cop_origin *o)
{
	struct packed_read *p = malloc(sizeof(*p));

	if (!p) {
		cop_fetch_read_chunks(f, o);
		return;
	}
	*p = (struct packed_read){f, o};
	cop_origin_run(o, read_group, p);
}

bool cop_fetch_list_packed(struct flight *f, struct cop_origin *o)
{
	const struct cop_fetch_conf *conf = &f->fetch->conf;
	const void *known = conf->pack && !atomic_load(&f->fetch->unpacked)
				    ? cop_packfile_listing(conf->pack, f->ask.path)
				    : NULL;

	if (!known)
		return false;
	cop_stats_add(conf->stats, COP_PREFETCH_PACKED, 1);
	cop_origin_list_known(o, f->ask.path, known, cop_fetch_blob_read, f);
	return true;
}
