/* SPDX-License-Identifier: BSD-3-Clause */
/* The profile of one node: created at startup, and written at snapshots and at the end. */
#include "writers/rank/rank_priv.h"

#include <dirent.h>

#include "base/log/log.h"

/* Whether a directory exists and is not empty. */
static bool has_files(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)))
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return found;
}

/* Scripts expect these directories from the start, even if they stay empty. Only rank 0 creates
 * them; other nodes create directories as needed. */
static void make_folders(const struct cop_tally *t)
{
	static const char *const folders[] = {
		"tables/final", "profiling/final", "profiling/cluster"};
	char path[4096 + 32];
	int rc;

	if (t->conf.rank != 0 || !t->conf.job.job_dir[0])
		return;
	for (size_t i = 0; i < COP_ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", t->conf.job.job_dir, folders[i]);
		rc = cop_make_dirs(path, 0755);
		if (rc)
			cop_log_warn("cannot make %s error=\"%s\"", path, strerror(-rc));
	}
}

/* Files of earlier runs are kept, and copper aggregate cannot tell runs apart. */
static void warn_of_earlier_runs(const struct cop_tally *t)
{
	char path[4096 + 32];

	snprintf(path, sizeof(path), "%s/profiling/final", t->conf.job.job_dir);
	if (t->conf.rank == 0 && t->conf.job.job_dir[0] && has_files(path))
		cop_log_warn(
			"reports of an earlier run are in %s, and copper aggregate adds up both: give each run a job directory of its own",
			path);
}

/* Adds the warnings to the node's own summary. */
static void put_further(void *ctx, const struct cop_stats *stats, struct cop_buf *out)
{
	struct cop_advices a;

	cop_tally_judge_own(ctx, stats, &a);
	cop_advice_markdown(&a, out);
}

static struct cop_prof *new_prof(struct cop_tally *t)
{
	const struct cop_tally_conf *conf = &t->conf;
	const struct cop_conf *c = conf->conf;
	const struct cop_job_hosts *hosts = conf->job.hosts;
	char host[256] = "localhost";
	struct cop_prof_conf prof = {
		.level = c->profile_paths_full ? COP_PROF_FULL
			 : c->profile_top_n    ? COP_PROF_TOP
					       : COP_PROF_AGGREGATE,
		.top_n = c->profile_top_n,
		.job_dir = conf->job.job_dir,
		.host = host,
		.pid = (int)getpid(),
		.enoent_ttl_ms = c->enoent_ttl_ms,
		.rank = conf->rank,
		.source = conf->job.source,
		.stats = conf->stats,
		.observe = c->observe,
		.further = put_further,
		.ctx = t,
	};

	gethostname(host, sizeof(host) - 1);
	if (hosts->count)
		prof.host = hosts->host[conf->rank].name;
	return cop_prof_new(&prof);
}

int cop_tally_new(const struct cop_tally_conf *conf, struct cop_tally **out, struct cop_err *err)
{
	struct cop_tally *t = calloc(1, sizeof(*t));

	if (!t)
		return cop_err_set(err, ENOMEM, "out of memory for the profile");
	t->conf = *conf;
	if (conf->conf->profile)
		warn_of_earlier_runs(t);
	make_folders(t);
	if (conf->conf->profile)
		t->prof = new_prof(t);
	if (conf->conf->profile && !t->prof) {
		free(t);
		return cop_err_set(err, ENOMEM, "out of memory for the profile");
	}
	*out = t;
	return 0;
}

void cop_tally_free(struct cop_tally *t)
{
	if (!t)
		return;
	cop_prof_free(t->prof);
	free(t);
}

struct cop_prof *cop_tally_prof(struct cop_tally *t)
{
	return t->prof;
}

void cop_tally_use_cache(struct cop_tally *t, struct cop_cache *cache)
{
	t->cache = cache;
}

/* ---- sizes ---- */

struct emitting {
	cop_prof_emit *emit;
	void *arg;
};

static void emit_one(void *arg, const struct cop_key *key, size_t bytes)
{
	struct emitting *e = arg;

	e->emit(e->arg, key->path, key->path_len, bytes);
}

static void each_row(void *ctx, enum cop_prof_table table, cop_prof_emit *emit, void *arg)
{
	static const enum cop_table tables[COP_PROF_TABLES] = {
		[COP_PROF_METADATA] = COP_TABLE_METADATA,
		[COP_PROF_DATA] = COP_TABLE_DATA,
		[COP_PROF_TREE] = COP_TABLE_TREE};
	struct cop_tally *t = ctx;
	struct emitting e = {emit, arg};

	cop_cache_each(t->cache, tables[table], emit_one, &e);
}

static struct cop_prof_sizes sizes_of(struct cop_tally *t)
{
	return (struct cop_prof_sizes){.ctx = t, .each = each_row};
}

void cop_tally_sizes(struct cop_tally *t, struct cop_buf *out)
{
	static const struct {
		const char *name;
		enum cop_prof_table table;
	} files[] = {{"data", COP_PROF_DATA}, {"tree", COP_PROF_TREE}, {"md", COP_PROF_METADATA}};
	struct cop_prof_sizes all = sizes_of(t);
	struct cop_cache_usage u;

	cop_cache_usage(t->cache, &u);
	cop_buf_printf(out, "budget %" PRIu64 " %" PRIu64 "\n", u.limit_bytes, u.used_bytes);
	for (size_t i = 0; i < COP_ARRAY_SIZE(files); i++) {
		struct cop_buf text = {0};
		int rc = cop_prof_sizes_text(files[i].table, t->conf.job.source, &all, &text);

		out->failed |= rc != 0;
		cop_buf_printf(out, "table %s %zu\n", files[i].name, text.len);
		cop_buf_add(out, text.data ? text.data : "", text.len);
		cop_buf_free(&text);
	}
}

/* ---- reports ---- */

/* Whether this node writes its own files, which dominate the cost of a report in a large job. */
static bool writes_profile(const struct cop_tally *t)
{
	return t->prof &&
	       (t->conf.conf->rank_files == COP_CONF_RANK_FILES_ALL ||
		       (t->conf.conf->rank_files == COP_CONF_RANK_FILES_ROOT && t->conf.rank == 0));
}

static int write_profile(
	struct cop_tally *t, struct cop_prof *p, const char *tag, struct cop_err *err)
{
	struct cop_prof_sizes sizes = sizes_of(t);
	bool full = cop_prof_level(p) == COP_PROF_FULL;
	struct cop_err own = {0};
	int rc;

	/* Reports that a user requested include sizes at any level; others only at the full
	 * level. */
	sizes.asked = tag && strcmp(tag, COP_TALLY_ASKED_TAG) == 0;
	rc = cop_prof_snapshot(p, tag, full || sizes.asked ? &sizes : NULL, &own);
	if (rc)
		cop_log_error("profile not written: %s", own.text);
	if (rc && err)
		*err = own;
	return rc == -ENOENT ? -EIO : rc;
}

/* A report that fails does not stop the node. */
int cop_tally_write(struct cop_tally *t, const char *tag, struct cop_err *err)
{
	return writes_profile(t) ? write_profile(t, t->prof, tag, err) : -ENOENT;
}

int cop_tally_reset(struct cop_tally *t, struct cop_err *err)
{
	struct cop_stats before = {0};
	struct cop_prof *taken;
	int rc = cop_prof_drain(t->prof, &before, &taken);

	if (rc)
		return cop_err_set(err, ENOMEM,
			"no memory to set the counters aside; they continue as before");
	cop_stats_drain(t->conf.stats, &before);
	if (writes_profile(t))
		rc = write_profile(t, taken, "pre-reset", err);
	if (rc) {
		cop_prof_put_back(t->prof, taken);
		cop_stats_sum(t->conf.stats, &before);
	} else {
		cop_log_info("counters set to zero");
	}
	cop_prof_free(taken);
	return rc;
}

void cop_tally_add(struct cop_tally *t, struct cop_op_sum *sum)
{
	cop_stats_sum(&sum->stats, t->conf.stats);
	cop_tally_add_facts(t, sum);
	if (!t->prof)
		return;
	if (!sum->prof)
		sum->prof = cop_prof_sum_new();
	if (!sum->prof || cop_prof_sum_add(sum->prof, t->prof))
		cop_log_error("no memory for the sums: this node's counts are missing in them");
}
