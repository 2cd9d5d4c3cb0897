/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's profile: made at the start, written at snapshots and at the end. */
#include "node/node_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether a directory is there and something is in it. */
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

/* Scripts look for these from the start on, whatever will be in them. One node is enough: the
 * others make what they miss. */
static void make_folders(const struct cop_node *n)
{
	static const char *const folders[] = {
		"tables/final", "profiling/final", "profiling/cluster"};
	char path[sizeof(n->job_dir) + 32];
	int rc;

	if (n->rank != 0 || !n->job_dir[0])
		return;
	for (size_t i = 0; i < COP_ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", n->job_dir, folders[i]);
		rc = cop_make_dirs(path, 0755);
		if (rc)
			cop_log_warn("cannot make %s error=\"%s\"", path, strerror(-rc));
	}
}

/* What they left stays, and copper aggregate cannot tell whose is whose. */
static void warn_of_earlier_runs(const struct cop_node *n)
{
	char path[sizeof(n->job_dir) + 32];

	snprintf(path, sizeof(path), "%s/profiling/final", n->job_dir);
	if (n->rank == 0 && n->job_dir[0] && has_files(path))
		cop_log_warn(
			"reports of an earlier run are in %s, and copper aggregate adds up both: give each run a job directory of its own",
			path);
}

int cop_node_profile_start(struct cop_node *n, struct cop_err *err)
{
	const struct cop_conf *c = n->conf;
	char host[256] = "localhost";
	struct cop_prof_conf conf = {
		.level = c->profile_paths_full ? COP_PROF_FULL
			 : c->profile_top_n    ? COP_PROF_TOP
					       : COP_PROF_AGGREGATE,
		.top_n = c->profile_top_n,
		.job_dir = n->job_dir,
		.host = host,
		.pid = (int)getpid(),
		.enoent_ttl_ms = c->enoent_ttl_ms,
		.source = n->source,
		.stats = &n->stats,
		.observe = c->observe,
	};

	if (c->profile)
		warn_of_earlier_runs(n);
	make_folders(n);
	if (!c->profile)
		return 0;
	gethostname(host, sizeof(host) - 1);
	if (n->hosts.count)
		conf.host = cop_node_host(n, n->rank);
	n->prof = cop_prof_new(&conf);
	return n->prof ? 0 : cop_err_set(err, ENOMEM, "out of memory for the profile");
}

struct emitting {
	cop_prof_emit *emit;
	void *arg;
};

static void emit_one(void *arg, const struct cop_key *key, size_t bytes)
{
	struct emitting *e = arg;

	e->emit(e->arg, key->path, key->path_len, bytes);
}

static void each(void *ctx, enum cop_prof_table table, cop_prof_emit *emit, void *arg)
{
	static const enum cop_table tables[COP_PROF_TABLES] = {
		[COP_PROF_METADATA] = COP_TABLE_METADATA,
		[COP_PROF_DATA] = COP_TABLE_DATA,
		[COP_PROF_TREE] = COP_TABLE_TREE};
	struct cop_node *n = ctx;
	struct emitting e = {emit, arg};

	cop_cache_each(n->cache, tables[table], emit_one, &e);
}

struct cop_prof_sizes cop_node_sizes(struct cop_node *n)
{
	return (struct cop_prof_sizes){.ctx = n, .each = each};
}

/* With thousands of ranks their files are what a report costs. */
static bool writes(const struct cop_node *n)
{
	return n->prof &&
	       (n->conf->rank_files == COP_CONF_RANK_FILES_ALL ||
		       (n->conf->rank_files == COP_CONF_RANK_FILES_ROOT && n->rank == 0));
}

static int write_profile(
	struct cop_node *n, struct cop_prof *p, const char *tag, struct cop_err *err)
{
	struct cop_prof_sizes sizes = cop_node_sizes(n);
	bool full = cop_prof_level(p) == COP_PROF_FULL;
	struct cop_err own = {0};
	int rc;

	/* Whoever asks may want to know the sizes, at whatever level; unasked they stand beside the
	 * full paths. */
	sizes.asked = tag && strcmp(tag, COP_NODE_ASKED_TAG) == 0;
	rc = cop_prof_snapshot(p, tag, full || sizes.asked ? &sizes : NULL, &own);
	if (rc)
		cop_log_error("profile not written: %s", own.text);
	if (rc && err)
		*err = own;
	return rc == -ENOENT ? -EIO : rc;
}

/* A report that cannot be written is no reason to stop anything. */
int cop_node_profile_write(struct cop_node *n, const char *tag, struct cop_err *err)
{
	return writes(n) ? write_profile(n, n->prof, tag, err) : -ENOENT;
}

int cop_node_profile_reset(struct cop_node *n, struct cop_err *err)
{
	struct cop_stats before = {0};
	struct cop_prof *taken;
	int rc = cop_prof_take(n->prof, &before, &taken);

	if (rc)
		return cop_err_set(err, ENOMEM,
			"no memory to take the counters aside; they go on as they were");
	cop_stats_take(&n->stats, &before);
	if (writes(n))
		rc = write_profile(n, taken, "pre-reset", err);
	if (rc) {
		cop_prof_put_back(n->prof, taken);
		cop_stats_sum(&n->stats, &before);
	} else {
		cop_log_info("counters set to zero");
	}
	cop_prof_free(taken);
	return rc;
}
