/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/profile/profile_priv.h"

static const char *const op_names[COP_PROF_OPS] = {
#define COP_PROF_OP(id, name) name,
#include "prof/profile/ops.def"
#undef COP_PROF_OP
};

static const char *const category_names[CATEGORIES] = {
	[CATEGORY_METADATA] = "metadata",
	[CATEGORY_DATA] = "data",
	[CATEGORY_TREE] = "tree",
	[CATEGORY_TTL] = "metadata_ttl",
};

const char *cop_prof_op_name(enum cop_prof_op op)
{
	return op_names[op];
}

const char *cop_prof_category_name(enum category c)
{
	return category_names[c];
}

/* The hostname becomes part of file names, so it must not contain a path to another directory. */
static char *make_stem(const char *host, int pid)
{
	char *clean = cop_prof_text_reduce(host, ".", 255), *stem = NULL;

	if (clean && clean[0] == '.')
		clean[0] = '_';
	if (clean && asprintf(&stem, "%s-%d", clean, pid) < 0)
		stem = NULL;
	free(clean);
	return stem;
}

static bool copy_strings(struct cop_prof *p, const struct cop_prof_conf *conf)
{
	if (conf->job_dir)
		p->job_dir = strdup(conf->job_dir);
	p->stem = make_stem(conf->host, conf->pid);
	if (conf->source)
		p->root = cop_prof_root_dup(conf->source);
	return (p->job_dir || !conf->job_dir) && p->stem && (p->root || !conf->source);
}

static bool make_counters(struct cop_prof *p, uint64_t max_path_bytes)
{
	p->shards = calloc(OP_SHARDS, sizeof(*p->shards));
	if (!p->shards)
		return false;
	if (p->level == COP_PROF_FULL) {
		p->paths =
			cop_prof_paths_new(max_path_bytes ? max_path_bytes : COP_PROF_PATH_BYTES);
		return p->paths;
	}
	for (unsigned c = 0; c < CATEGORIES && p->level == COP_PROF_TOP; c++) {
		p->top[c] = cop_prof_top_new(cop_prof_top_counters(p->top_n));
		if (!p->top[c])
			return false;
	}
	return true;
}

struct cop_prof *cop_prof_new(const struct cop_prof_conf *conf)
{
	struct cop_prof *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->level = conf->level;
	p->top_n = conf->level < COP_PROF_TOP ? 0 : COP_MIN(conf->top_n, COP_PROF_TOP_N_MAX);
	if (p->level == COP_PROF_TOP && !p->top_n)
		p->level = COP_PROF_AGGREGATE;
	p->enoent_ttl_ms = conf->enoent_ttl_ms;
	p->rank = conf->rank;
	p->stats = conf->stats;
	p->observe = conf->observe;
	p->further = conf->further;
	p->ctx = conf->ctx;
	if (p->level == COP_PROF_OFF)
		return p;
	if (!copy_strings(p, conf) || !make_counters(p, conf->max_path_bytes)) {
		cop_prof_free(p);
		return NULL;
	}
	return p;
}

void cop_prof_free(struct cop_prof *p)
{
	if (!p)
		return;
	for (unsigned c = 0; c < CATEGORIES; c++)
		cop_prof_top_free(p->top[c]);
	cop_prof_paths_free(p->paths);
	free(p->shards);
	free(p->stem);
	free(p->root);
	free(p->job_dir);
	free(p);
}

enum cop_prof_level cop_prof_level(const struct cop_prof *p)
{
	return p ? p->level : COP_PROF_OFF;
}

void cop_prof_op(
	struct cop_prof *p, enum cop_prof_op op, enum cop_prof_outcome outcome, uint64_t latency_ns)
{
	if (p && p->shards)
		cop_prof_op_count(&cop_prof_op_shard(p->shards)->op[op], outcome, latency_ns);
}

static void count_path(struct cop_prof *p, enum category c, const char *path, size_t len, int slot)
{
	if (p->paths)
		cop_prof_paths_touch(p->paths, c, path, len, slot, NULL);
	else if (p->top[c])
		cop_prof_top_count(p->top[c], path, len, slot);
}

static int slot_of(enum cop_prof_outcome outcome)
{
	switch (outcome) {
	case COP_PROF_HIT:
		return 0;
	case COP_PROF_MISS:
		return 1;
	case COP_PROF_NEGATIVE:
		return 2;
	default:
		return SLOT_NONE;
	}
}

void cop_prof_path(struct cop_prof *p, enum cop_prof_table table, const char *path, size_t len,
	enum cop_prof_outcome outcome)
{
	if (p && p->level >= COP_PROF_TOP)
		count_path(p, (enum category)table, path, len, slot_of(outcome));
}

void cop_prof_read(struct cop_prof *p, const char *path, size_t len, enum cop_prof_outcome outcome,
	uint64_t offset, uint64_t bytes)
{
	struct cop_range read = {offset, offset > UINT64_MAX - bytes ? UINT64_MAX : offset + bytes};

	if (p && p->paths)
		cop_prof_paths_touch(p->paths, CATEGORY_DATA, path, len, slot_of(outcome), &read);
	else
		cop_prof_path(p, COP_PROF_DATA, path, len, outcome);
}

void cop_prof_ttl(struct cop_prof *p, const char *path, size_t len, enum cop_prof_ttl event)
{
	if (!p || !p->shards)
		return;
	atomic_fetch_add_explicit(
		&cop_prof_op_shard(p->shards)->ttl[event], 1, memory_order_relaxed);
	count_path(p, CATEGORY_TTL, path, len, (int)event);
}

int cop_prof_each_touch(
	struct cop_prof *p, int (*fn)(void *arg, const struct cop_prof_touch *touch), void *arg)
{
	return p && p->paths ? cop_prof_paths_each_touch(p->paths, fn, arg) : 0;
}
