/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a request, its cache key, its tree, and its encoding. No request can affect the
 * answers to others: the cache key contains everything that an answer depends on, and two different
 * requests never share an answer. */
#include "tree/fetch/fetch_priv.h"

#include <string.h>

/* The fields that a request of each kind depends on, in addition to the path. */
static const struct kind {
	enum cop_table table;
	enum cop_facet facet;
	bool version, size, index, no_path;
} kinds[COP_ASK_LAST + 1] = {
	[COP_ASK_LISTING] = {.table = COP_TABLE_TREE, .facet = COP_FACET_MAIN},
	[COP_ASK_ENTRY] = {.table = COP_TABLE_METADATA, .facet = COP_FACET_MAIN},
	[COP_ASK_CHUNK] = {.table = COP_TABLE_DATA,
		.facet = COP_FACET_MAIN,
		.version = true,
		.size = true,
		.index = true},
	[COP_ASK_NAMES] = {.table = COP_TABLE_TREE, .facet = COP_FACET_NAMES},
	[COP_ASK_HOLES] = {.table = COP_TABLE_METADATA, .facet = COP_FACET_HOLES, .version = true},
	[COP_ASK_STATFS] = {.table = COP_TABLE_METADATA,
		.facet = COP_FACET_STATFS,
		.no_path = true},
	[COP_ASK_CHECK] = {.table = COP_TABLE_TREE, .facet = COP_FACET_CHECK, .version = true},
	[COP_ASK_MANIFEST] = {.table = COP_TABLE_METADATA,
		.facet = COP_FACET_MANIFEST,
		.index = true,
		.no_path = true},
	[COP_ASK_NEWER] = {.table = COP_TABLE_TREE, .facet = COP_FACET_NEWER, .version = true},
	[COP_ASK_PAGE] = {.table = COP_TABLE_TREE,
		.facet = COP_FACET_PAGE,
		.version = true,
		.size = true,
		.index = true},
};

struct cop_fetch_name cop_fetch_split(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return (struct cop_fetch_name){.path = path,
		.dir_len = slash ? (size_t)(slash - path) : 0,
		.name = name,
		.name_len = strlen(name)};
}

struct cop_key cop_fetch_key(const struct cop_ask *ask)
{
	const struct kind *k = &kinds[ask->kind];

	return (struct cop_key){
		.table = k->table,
		.facet = ask->home ? COP_FACET_HOME : k->facet,
		.path = k->no_path ? "" : ask->path,
		.path_len = k->no_path ? 0 : strlen(ask->path),
		.version = k->version ? ask->version : 0,
		.size = k->size ? ask->size : 0,
		.index = k->index ? ask->index : 0,
	};
}

bool cop_fetch_is_proper(const struct cop_ask *ask)
{
	const struct kind *k = &kinds[ask->kind];

	if (ask->kind == COP_ASK_PAGE && (ask->size > COP_PAGES_MAX || ask->index >= ask->size))
		return false;
	return (k->version ? ask->version != 0 : ask->version == 0) &&
	       (k->size || ask->size == 0) && (k->index || ask->index == 0) &&
	       (!k->no_path || !*ask->path);
}

const char *cop_fetch_kind_name(enum cop_ask_kind kind)
{
	static const char *const names[COP_ASK_LAST + 1] = {[COP_ASK_LISTING] = "listing",
		[COP_ASK_ENTRY] = "entry",
		[COP_ASK_CHUNK] = "chunk",
		[COP_ASK_NAMES] = "names",
		[COP_ASK_HOLES] = "holes",
		[COP_ASK_STATFS] = "statfs",
		[COP_ASK_CHECK] = "check",
		[COP_ASK_MANIFEST] = "manifest",
		[COP_ASK_NEWER] = "newer",
		[COP_ASK_PAGE] = "page"};

	return names[kind];
}

bool cop_fetch_is_striped(const struct cop_fetch *c, uint64_t size)
{
	return c->conf.topo.trees > 1 && size >= c->conf.striped_bytes;
}

/* Names and small files use the first tree: the first node to request them fills the caches for the
 * rest. The groups of a large file are striped over all trees: every root reads its share, one
 * whole group at a time, and keeps it for the job (COP_DUTY_HOME); every node forwards a share. */
uint32_t cop_fetch_tree_of(const struct cop_fetch *c, const struct cop_ask *ask)
{
	if (ask->home)
		return cop_fetch_home_of(c, ask);
	if (ask->kind != COP_ASK_CHUNK || !cop_fetch_is_striped(c, ask->size))
		return 0;
	return cop_topo_tree_of(&c->conf.topo, cop_hash64(ask->path, strlen(ask->path), 0),
		ask->index / cop_fetch_group_chunks(c), cop_fetch_groups(c, ask->size));
}

/* ---- encoding ---- */

size_t cop_fetch_request(const struct cop_ask *ask, uint8_t when, void *payload, size_t size)
{
	struct cop_wr w = cop_wr_init(payload, size);

	cop_wr_u64(&w, ask->version);
	cop_wr_u64(&w, ask->size);
	cop_wr_u64(&w, ask->index);
	cop_wr_u8(&w, (uint8_t)(when | (ask->first ? ASK_FIRST : 0) | (ask->home ? ASK_HOME : 0) |
				(ask->peek ? ASK_PEEK : 0)));
	cop_wr_str(&w, ask->path, strlen(ask->path));
	return cop_wr_len(&w);
}

static bool may_be_first(const struct cop_ask *ask, uint8_t when)
{
	if (ask->kind == COP_ASK_CHUNK)
		return ask->index == 0 && when == ASK_NOW;
	return ask->kind == COP_ASK_ENTRY && when <= ASK_BACKGROUND;
}

bool cop_fetch_decode(struct cop_rpc_req *req, char *path, struct cop_ask *ask, bool *raise)
{
	size_t len, path_len;
	const void *payload = cop_rpc_req_payload(req, &len);
	struct cop_rd r = cop_rd_init(payload, len);
	const char *text;
	uint8_t when;

	*ask = (struct cop_ask){.kind = (enum cop_ask_kind)cop_rpc_req_op(req)};
	ask->version = cop_rd_u64(&r);
	ask->size = cop_rd_u64(&r);
	ask->index = cop_rd_u64(&r);
	when = cop_rd_u8(&r);
	ask->first = (when & ASK_FIRST) != 0;
	ask->home = (when & ASK_HOME) != 0;
	ask->peek = (when & ASK_PEEK) != 0;
	when &= (uint8_t) ~(ASK_FIRST | ASK_HOME | ASK_PEEK);
	ask->background = when == ASK_BACKGROUND || when == ASK_GUESS ||
			  (ask->first && ask->kind == COP_ASK_CHUNK);
	ask->guess = when == ASK_GUESS;
	*raise = when == ASK_RAISE_PRIORITY;
	text = cop_rd_str(&r, &path_len);
	if (!cop_rd_done(&r) || when > ASK_GUESS || path_len > 4095 ||
		(path_len && memchr(text, 0, path_len)))
		return false;
	if (path_len)
		memcpy(path, text, path_len);
	path[path_len] = '\0';
	ask->path = path;
	return cop_fetch_is_proper(ask) && (!ask->guess || ask->kind == COP_ASK_LISTING) &&
	       (!ask->first || may_be_first(ask, when)) &&
	       ((!ask->home && !ask->peek) || ask->kind == COP_ASK_CHUNK) &&
	       !(ask->peek && (ask->home || ask->first || *raise));
}
