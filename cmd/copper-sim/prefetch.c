/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefetch of a manifest with the trace's objects in order: first the manifest itself from
 * rank 0, then concurrently listings and chunks of files whose directory has arrived, each in
 * its own window; all as background work. */
#include "sim.h"

#define LISTINGS 32u /* the windows of internal/tree/prefetch */
#define CHUNKS 16u
#define PIECE COP_MIB
#define LINE_BYTES 48 /* of a manifest, without the path */

struct slot {
	struct cop_waiter waiter;
	struct sim_node *node;
	int32_t line; /* -1: a piece of the manifest */
};

struct sim_prefetch {
	int32_t next_name, next_chunk;
	unsigned names, chunks; /* in progress */
	uint64_t piece;
	uint8_t *here; /* by line: whether a reply has arrived */
};

static void start_fetches(struct sim_node *n);
static void ask_piece(struct sim_node *n);

static bool is_chunk(const struct sim_node *n, int32_t line)
{
	return n->sim->conf.trace->line[line].kind == COP_ASK_CHUNK;
}

static void note_arrival(struct sim_node *n, int32_t line, int rc)
{
	struct sim_prefetch *p = n->prefetch;

	if (cop_sim_is_dead(n))
		return;
	if (line < 0) {
		p->piece++;
		if (rc)
			start_fetches(n);
		else
			ask_piece(n);
		return;
	}
	p->here[line] = 1;
	if (is_chunk(n, line))
		p->chunks--;
	else
		p->names--;
}

static void fetch_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct slot *s = COP_CONTAINER_OF(w, struct slot, waiter);
	struct sim_node *n = s->node;
	int32_t line = s->line;

	(void)obj;
	free(s);
	note_arrival(n, line, rc);
	if (line >= 0 && !cop_sim_is_dead(n))
		start_fetches(n);
}

static void ask_for(struct sim_node *n, const struct cop_ask *ask, int32_t line)
{
	struct slot *s = cop_sim_alloc(1, sizeof(*s));
	struct cop_obj *obj;
	int rc;

	*s = (struct slot){.waiter.completed = fetch_completed, .node = n, .line = line};
	rc = cop_fetch_get(n->fetch, ask, &s->waiter, &obj);
	if (rc == 0)
		return;
	free(s);
	if (rc > 0) {
		rc = obj->error;
		cop_obj_put(n->cache, obj);
	}
	note_arrival(n, line, rc);
}

static void ask_piece(struct sim_node *n)
{
	struct cop_ask ask = {.kind = COP_ASK_MANIFEST,
		.path = "",
		.index = n->prefetch->piece,
		.background = true};

	ask_for(n, &ask, -1);
}

/* Advances to the next line of this kind; false at the end. */
static bool next_line(struct sim_node *n, int32_t *at, bool chunk)
{
	const struct sim_trace *t = n->sim->conf.trace;

	while (*at < t->lines - 1 && (t->line[*at].use || is_chunk(n, *at) != chunk))
		++*at;
	return *at < t->lines - 1;
}

static void ask_name(struct sim_node *n, int32_t line)
{
	const struct sim_line *l = &n->sim->conf.trace->line[line];
	struct cop_ask ask = {.kind = l->kind, .path = l->path, .background = true};

	n->prefetch->names++;
	if (l->kind == COP_ASK_LISTING || l->kind == COP_ASK_ENTRY)
		ask_for(n, &ask, line);
	else
		note_arrival(n, line, 0);
}

static void ask_chunk(struct sim_node *n, int32_t line)
{
	const struct sim_line *l = &n->sim->conf.trace->line[line];
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = l->path,
		.version = SIM_VERSION,
		.size = l->size,
		.index = l->index,
		.background = true};

	n->prefetch->chunks++;
	ask_for(n, &ask, line);
}

static void start_fetches(struct sim_node *n)
{
	const struct sim_trace *t = n->sim->conf.trace;
	struct sim_prefetch *p = n->prefetch;

	while (p->names < LISTINGS && next_line(n, &p->next_name, false))
		ask_name(n, p->next_name++);
	while (p->chunks < CHUNKS && next_line(n, &p->next_chunk, true)) {
		int32_t dir = t->line[p->next_chunk].dir;

		if (dir >= 0 && !p->here[dir])
			break;
		ask_chunk(n, p->next_chunk++);
	}
}

void cop_sim_prefetch_start(struct sim_node *n)
{
	n->prefetch = cop_sim_alloc(1, sizeof(*n->prefetch));
	n->prefetch->here = cop_sim_alloc((size_t)n->sim->conf.trace->lines, 1);
	ask_piece(n);
}

void cop_sim_prefetch_free(struct sim_node *n)
{
	if (n->prefetch)
		free(n->prefetch->here);
	free(n->prefetch);
}

static size_t manifest_bytes(const struct sim_trace *t)
{
	size_t bytes = 0;

	for (int32_t i = 0; i < t->lines - 1; i++)
		if (!t->line[i].use)
			bytes += LINE_BYTES + strlen(t->line[i].path);
	return bytes;
}

int cop_sim_manifest(void *ctx, uint64_t index, void **data, size_t *len)
{
	const struct sim_node *n = ctx;
	size_t bytes = manifest_bytes(n->sim->conf.trace);

	if (index * PIECE >= bytes)
		return -ENODATA;
	*len = COP_MIN(bytes - index * PIECE, PIECE);
	*data = cop_sim_memory_blob(*len);
	return *data ? 0 : -ENOMEM;
}
