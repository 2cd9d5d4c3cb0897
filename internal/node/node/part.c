/* SPDX-License-Identifier: BSD-3-Clause */
/* There is no lock, because fields that are set after the start are atomic. */
#include "node/node/part_priv.h"

#include "base/log/log.h"
#include "node/node/programs.h"

/* The tree's identity in the job's files. */
static struct cop_tally_job tally_job(const struct cop_record *r)
{
	return (struct cop_tally_job){
		.job_dir = r->job_dir, .source = r->source, .topo = r->topo, .hosts = r->hosts};
}

/* ---- status ---- */

static struct cop_status current_status(struct cop_part *p)
{
	struct cop_status s = p->conf.status;

	s.ready = cop_start_is_ready(p->conf.join);
	s.rpc = *p->conf.rpc;
	s.fetch = atomic_load(&p->fetch);
	s.fs = atomic_load(&p->fs);
	s.prefetch = atomic_load(&p->prefetch);
	return s;
}

static struct cop_rpc *rpc_of(void *ctx)
{
	struct cop_part *p = ctx;

	return *p->conf.rpc;
}

static const char *host_of(void *ctx, uint32_t rank)
{
	struct cop_part *p = ctx;

	return cop_job_host_name(p->conf.record->hosts, rank);
}

static void own(void *ctx, struct cop_op_sum *out, uint8_t op)
{
	struct cop_part *p = ctx;
	struct cop_status s = current_status(p);

	cop_cache_usage(s.cache, &out->usage);
	out->nodes = 1;
	cop_stats_sum(&out->stats, s.stats);
	cop_op_sum_machine(out);
	if (op == COP_OP_TELEMETRY)
		cop_machine_add_own(&out->hosts, p->conf.machine);
	if (op == COP_OP_TABLE)
		cop_status_line(&s, &out->text);
	else if (op == COP_OP_STATS)
		cop_status_json(&s, &out->text);
}

/* ---- invalidation ---- */

static void names_forgotten(void *arg)
{
	(void)arg;
}

/* Returns the mount if the kernel may have cached data from it. If there is no mount yet, sets a
 * flag for cop_part_use_mount and checks again, so that at least one of the two functions sees what
 * the other has done. */
static struct cop_fuse *find_mount(struct cop_part *p)
{
	if (!atomic_load(&p->fs))
		atomic_store(&p->forgot_early, true);
	return atomic_load(&p->fs);
}

/* Clears the tables first, then the kernel. A starting node may not have a mount or fetch yet, and
 * then has no stale data there. */
int cop_part_forget(void *ctx, const char *path, void (*then)(void *arg), void *arg)
{
	struct cop_part *p = ctx;
	struct cop_fetch *fetch = atomic_load(&p->fetch);
	struct cop_fuse *fs = find_mount(p);
	size_t dropped = cop_cache_drop_under(p->conf.status.cache, path);

	cop_spill_forget(p->conf.status.spill);
	if (fetch)
		cop_fetch_forget_name(fetch, path);
	cop_log_info("invalidated path=\"%s\" objects=%zu", path, dropped);
	if (fs)
		return cop_fuse_invalidate(fs, path, then, arg);
	then(arg);
	return 0;
}

int cop_part_forget_names(void *ctx, const char *dir, void (*then)(void *arg), void *arg)
{
	struct cop_part *p = ctx;
	struct cop_fuse *fs = atomic_load(&p->fs);

	if (fs)
		return cop_fuse_forget_in(fs, dir, then, arg);
	then(arg);
	return 0;
}

int cop_part_manifest_piece(void *ctx, uint64_t index, void **data, size_t *len)
{
	struct cop_part *p = ctx;

	return cop_prefetch_manifest_piece(p->conf.manifest, index, data, len);
}

void cop_part_use_fetch(struct cop_part *p, struct cop_fetch *fetch)
{
	atomic_store(&p->fetch, fetch);
}

/* Programs may already have used the mount, so an earlier invalidation is made up for. */
void cop_part_use_mount(struct cop_part *p, struct cop_fuse *fs)
{
	atomic_store(&p->fs, fs);
	if (fs && atomic_load(&p->forgot_early))
		cop_fuse_invalidate(fs, "", names_forgotten, NULL);
}

void cop_part_use_prefetch(struct cop_part *p, struct cop_prefetch *prefetch)
{
	atomic_store(&p->prefetch, prefetch);
}

/* ---- main thread ---- */

/* Records the current counters in the telemetry. */
static void look(struct cop_part *p)
{
	struct cop_cache_usage usage;

	if (!p->conf.telemetry)
		return;
	cop_cache_usage(p->conf.status.cache, &usage);
	cop_telemetry_look(
		p->conf.telemetry, p->conf.status.stats, usage.used_bytes, usage.limit_bytes);
}

/* Writes the current reports, as cop_tally_write does, and on rank 0 also the node's own
 * telemetry. */
static int write_snapshot(struct cop_part *p, const char *tag, struct cop_err *err)
{
	struct cop_tally_job job = tally_job(p->conf.record);
	int rc = cop_tally_write(p->conf.tally, tag, err);
	struct cop_telemetry_sum *own;

	if (rc || p->conf.status.rank != 0 || !p->conf.telemetry)
		return rc;
	look(p);
	own = cop_telemetry_sum_new(1);
	if (own && !cop_telemetry_sum_add(own, p->conf.telemetry, 0))
		cop_tally_write_telemetry(&job, own, tag);
	cop_telemetry_sum_free(own);
	return 0;
}

static uint64_t next_snapshot_ms(const struct cop_part *p, uint64_t now_ms)
{
	uint64_t every_ms = p->conf.record->conf->profile_interval_s * 1000ULL;

	return every_ms ? now_ms + every_ms : UINT64_MAX;
}

int cop_part_tend(struct cop_part *p)
{
	uint64_t now_ms = cop_now_ms(), next_ms;

	if (!p->snapshot_ms) {
		p->snapshot_ms = next_snapshot_ms(p, now_ms);
		p->look_ms = p->conf.telemetry ? now_ms : UINT64_MAX;
	}
	if (now_ms >= p->snapshot_ms) {
		write_snapshot(p, "runtime-snapshot", NULL);
		p->snapshot_ms = next_snapshot_ms(p, now_ms);
	}
	if (now_ms >= p->look_ms) {
		look(p);
		p->look_ms = now_ms + cop_telemetry_pause_ms(p->conf.telemetry);
	}
	next_ms = COP_MIN(p->snapshot_ms, p->look_ms);
	next_ms = COP_MIN(next_ms, cop_machine_look(p->conf.machine, now_ms, false));
	return next_ms == UINT64_MAX ? -1 : (int)(next_ms - now_ms);
}

/* Called at the end of this node. */
static void add_telemetry(struct cop_part *p, struct cop_op_sum *sum)
{
	int rc;

	if (!p->conf.telemetry)
		return;
	look(p);
	if (!sum->telemetry)
		sum->telemetry = cop_telemetry_sum_new(p->conf.record->topo.nodes);
	rc = sum->telemetry
		     ? cop_telemetry_sum_add(sum->telemetry, p->conf.telemetry, p->conf.status.rank)
		     : -ENOMEM;
	if (rc)
		cop_log_error("telemetry of this node is missing error=\"%s\"", strerror(-rc));
}

static int report(void *ctx, struct cop_err *err)
{
	return write_snapshot(ctx, COP_TALLY_ASKED_TAG, err);
}

/* Does not reset the telemetry, because it covers the whole job. */
static int reset(void *ctx, struct cop_err *err)
{
	struct cop_part *p = ctx;

	look(p);
	return cop_tally_reset(p->conf.tally, err);
}

static void on_end(void *ctx)
{
	struct cop_part *p = ctx;

	cop_waker_end(p->conf.waker);
}

/* Drops what has already been written to files, so that the requester does not receive it. */
static void drop_written(struct cop_op_sum *sum)
{
	cop_prof_sum_free(sum->prof);
	cop_telemetry_sum_free(sum->telemetry);
	sum->prof = NULL;
	sum->telemetry = NULL;
}

/* A short job has only two samples: one from its start, and this one. */
static void add_machine(struct cop_part *p, struct cop_op_sum *sum)
{
	(void)cop_machine_look(p->conf.machine, cop_now_ms(), true);
	cop_machine_add_own(&sum->hosts, p->conf.machine);
	cop_op_sum_machine(sum);
}

static void add_exits(struct cop_part *p, struct cop_op_sum *sum)
{
	struct cop_op_exits own;

	cop_programs_exits(p->conf.programs, &own);
	cop_op_exits_add(&sum->exits, &own);
}

static int complete_sum(void *ctx, struct cop_op_sum *sum, struct cop_err *err)
{
	struct cop_part *p = ctx;
	const struct cop_record *r = p->conf.record;
	struct cop_tally_job job = tally_job(r);
	uint32_t rank = p->conf.status.rank;
	int rc = 0;

	cop_tally_add(p->conf.tally, sum);
	add_telemetry(p, sum);
	add_machine(p, sum);
	add_exits(p, sum);
	if (rank == cop_topo_root(&r->topo, 0)) {
		cop_tally_warn(sum, &sum->text);
		rc = cop_tally_write_sums(&job, sum, err);
	}
	cop_follow_totals(*p->conf.follow, sum);
	if (rank == cop_topo_root(&r->topo, 0))
		drop_written(sum);
	if (rank == 0)
		cop_record_stopped(r, sum);
	return rc;
}

/* ---- on the control socket ---- */

static void status(void *ctx, struct cop_buf *out)
{
	struct cop_status s = current_status(ctx);

	cop_status_json(&s, out);
}

static void table(void *ctx, struct cop_buf *out)
{
	struct cop_status s = current_status(ctx);

	cop_status_table(&s, out);
}

static void watch(void *ctx, struct cop_buf *out)
{
	struct cop_status s = current_status(ctx);

	cop_stats_lines(s.stats, out);
	cop_status_table_head(&s, out);
}

static bool view_of(void *ctx, const char **source, int *user_ns)
{
	struct cop_part *p = ctx;

	*source = p->conf.status.source;
	*user_ns = p->conf.user_ns;
	return cop_start_is_ready(p->conf.join) && atomic_load(&p->fs);
}

/* Such requests arrive only after the tree is ready. */
static void program(void *ctx, pid_t pid, struct cop_buf *out)
{
	struct cop_part *p = ctx;

	const struct cop_conf *conf = p->conf.record->conf;

	if (cop_programs_add(p->conf.programs, pid))
		cop_buf_printf(out, COP_CTL_EXIT "=%s\n",
			conf->otel || cop_runlog_is_wanted(conf) ? "wanted" : "untold");
	if (*p->conf.job_dir)
		cop_buf_printf(out, "COPPER_JOB_DIR=%s\n", p->conf.job_dir);
	if (p->conf.environment->len)
		cop_buf_add(out, p->conf.environment->data, p->conf.environment->len);
}

static void ended(void *ctx, pid_t pid, int status)
{
	struct cop_part *p = ctx;

	cop_programs_ended(p->conf.programs, pid, status);
}

/* Warn only once, because there may be thousands of commands. */
static void fallback(void *ctx, const char *why)
{
	struct cop_part *p = ctx;

	if (!*cop_stats_first(p->conf.stats, COP_EXAMPLE_FALLBACK))
		cop_log_warn(
			"copper run gives commands only variables that lead to the tree, and their absolute paths read the storage past Copper why=\"%s\"",
			why);
	cop_stats_example(p->conf.stats, COP_EXAMPLE_FALLBACK, why);
	cop_stats_add(p->conf.stats, COP_VIEW_FALLBACKS, 1);
}

static void sizes(void *ctx, struct cop_buf *out)
{
	struct cop_part *p = ctx;

	cop_tally_sizes(p->conf.tally, out);
}

/* The root is dead, so no node has written the sums or the list of remaining nodes yet. */
static int write_late(void *ctx, struct cop_op_sum *sum, struct cop_err *err)
{
	struct cop_part *p = ctx;
	struct cop_tally_job job = tally_job(p->conf.record);

	cop_record_stopped(p->conf.record, sum);
	cop_tally_warn(sum, &sum->text);
	return cop_tally_write_sums(&job, sum, err);
}

static void wake(void *ctx)
{
	struct cop_part *p = ctx;

	cop_waker_wake(p->conf.waker);
}

const struct cop_command_ops cop_part_commands = {.status = status,
	.table = table,
	.watch = watch,
	.view = view_of,
	.program = program,
	.ended = ended,
	.fallback = fallback,
	.sizes = sizes,
	.write_late = write_late,
	.wake = wake};

/* ---- for rank 0's record of the job ---- */

bool cop_part_ask_telemetry(void *ctx, cop_op_done *done, void *arg)
{
	struct cop_part *p = ctx;
	struct cop_op_request telemetry = {.op = COP_OP_TELEMETRY, .argument = ""};

	if (!cop_gate_enter(p->conf.gate, COP_GATE_OPEN))
		return false;
	cop_op_all(p->treeop, &telemetry, done, arg);
	cop_gate_leave(p->conf.gate);
	return true;
}

bool cop_part_is_ending(void *ctx)
{
	struct cop_part *p = ctx;

	return cop_op_is_ending(p->treeop);
}

void cop_part_own_totals(struct cop_part *p)
{
	struct cop_op_sum own = {.nodes = 1, .telemetry = cop_telemetry_sum_new(1)};

	/* If memory is short, report the rest without the telemetry. */
	if (own.telemetry && cop_telemetry_sum_add(own.telemetry, p->conf.telemetry, 0) == 0)
		cop_telemetry_finish(own.telemetry);
	cop_tally_add(p->conf.tally, &own);
	add_machine(p, &own);
	add_exits(p, &own);
	cop_follow_totals(*p->conf.follow, &own);
	cop_op_sum_free(&own);
}

/* ---- from start to stop ---- */

static struct cop_op *new_treeop(struct cop_part *p)
{
	static const struct cop_op_ops ops = {.rpc = rpc_of,
		.host = host_of,
		.own = own,
		.forget = cop_part_forget,
		.report = report,
		.reset = reset,
		.end = on_end,
		.complete_sum = complete_sum};
	struct cop_op_conf conf = {.topo = p->conf.record->topo,
		.rank = p->conf.status.rank,
		.peer_timeout_ms = p->conf.record->conf->peer_timeout_ms,
		.alive_op = COP_START_OP_STATE,
		.ops = &ops,
		.ctx = p,
		.gate = p->conf.gate,
		.deferred = p->conf.deferred};

	return cop_op_new(&conf);
}

struct cop_part *cop_part_new(const struct cop_part_conf *conf)
{
	struct cop_part *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->conf = *conf;
	p->treeop = new_treeop(p);
	if (!p->treeop) {
		free(p);
		return NULL;
	}
	return p;
}

struct cop_op *cop_part_treeop(struct cop_part *p)
{
	return p->treeop;
}

void cop_part_free(struct cop_part *p)
{
	if (p)
		cop_op_free(p->treeop);
	free(p);
}
