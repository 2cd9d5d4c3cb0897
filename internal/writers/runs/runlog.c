/* SPDX-License-Identifier: BSD-3-Clause */
/* Records a run: follow's callbacks, what to record, and where to store it. Until the follower's
 * thread ends, it owns the record and the fields after it; the main thread hands it the totals and
 * the outcome. */
#include <limits.h>
#include <sys/wait.h>

#include "base/log/log.h"
#include "job/scheduler/scheduler.h"
#include "prof/profile/profile.h"
#include "writers/runs/runs.h"

/* Telemetry intervals between writes while a job runs. */
#define BEAT_ROUNDS 6

struct cop_runlog {
	char store[PATH_MAX], job_dir[PATH_MAX];
	uint32_t interval_ms;

	/* Owned by the main thread until the end. */
	enum cop_runrec_status status; /* outcome of the run */
	struct cop_op_exits exits;     /* of the commands */
	uint32_t missing;              /* nodes that did not answer the stop */
	bool has_exits, by_signal;     /* by_signal: a signal stopped the node */
	uint64_t kills;                /* OOM kills before the run */
	struct cop_runrec totals;      /* the job's totals, as one step, and the reason it ended */

	/* Owned by the thread. */
	struct cop_runrec record;
	uint64_t stored_step; /* the store has all points before this step */
	bool kept, kept_beside, complained;
	struct cop_take *take; /* the logs of programs in the job directory */
};

/* ---- the start ---- */

static void add_param(void *arg, const char *name, const char *value)
{
	cop_runrec_pair(arg, COP_RUNREC_PARAM, name, value);
}

static void add_tag(void *arg, const char *key, const char *value)
{
	cop_runrec_pair(arg, COP_RUNREC_TAG, key, value);
}

static void add_resource(void *arg, const char *key, const char *value)
{
	cop_runrec_pair(arg, COP_RUNREC_RESOURCE, key, value);
}

static void add_given_tags(struct cop_runrec *r, const struct cop_opt_list *given)
{
	for (unsigned i = 0; i < given->n; i++) {
		const char *value = strchr(given->at[i], '=') + 1;
		char *key = strndup(given->at[i], (size_t)(value - given->at[i]) - 1);

		if (key)
			add_tag(r, key, value);
		r->failed |= !key;
		free(key);
	}
}

/* Uses the name that the user gave, or else the job's name, or else its directory's name. */
static void name_it(struct cop_runlog *r)
{
	static const char *const jobs[] = {"SLURM_JOB_NAME", "PBS_JOBNAME"};
	const char *name = cop_runrec_value(&r->record, COP_RUNREC_TAG, "name");
	const char *group = cop_runrec_value(&r->record, COP_RUNREC_TAG, "group");
	const char *slash = strrchr(r->job_dir, '/');

	for (size_t i = 0; i < COP_ARRAY_SIZE(jobs) && (!name || !*name); i++)
		name = getenv(jobs[i]);
	if (!name || !*name)
		name = slash ? slash + 1 : "copper";
	cop_runrec_put(&r->record, COP_RUNREC_NAME, name);
	cop_runrec_put(&r->record, COP_RUNREC_GROUP, group ? group : "");
}

/* Fills in what is known at the start. */
static void describe(struct cop_runlog *r, const struct cop_runlog_conf *conf)
{
	struct cop_runrec *record = &r->record;
	char hash[32];

	record->status = COP_RUNREC_RUNNING;
	record->nodes = conf->nodes;
	record->start_s = record->seen_s = (double)cop_wall_ns() / 1e9;
	record->beat_s = r->interval_ms * BEAT_ROUNDS / 1e3;
	cop_runrec_put(record, COP_RUNREC_VERSION, cop_version);
	cop_conf_each_changed(conf->conf, add_param, record);
	if (conf->conf->mountpoint)
		add_param(record, "mountpoint", conf->conf->mountpoint);
	if (*conf->source)
		add_param(record, "source", conf->source);
	cop_resource_all(0, add_resource, record);
	cop_resource_job(add_tag, record);
	snprintf(hash, sizeof(hash), "%016" PRIx64, conf->manifest);
	if (conf->manifest)
		add_tag(record, "manifest.xxh3", hash);
	add_given_tags(record, &conf->conf->tags);
	name_it(r);
}

/* ---- during the run ---- */

static void add_counter(
	struct cop_runrec *into, const struct cop_stats *s, enum cop_counter c, double time_s)
{
	char key[COP_RUNREC_KEY_MAX + 1];

	snprintf(key, sizeof(key), "%s.%s", cop_counter_group(c), cop_counter_name(c));
	cop_runrec_point(into, key, time_s, (double)cop_stats_get(s, c));
}

/* Adds the nodes' CPU time and memory. */
static void add_machine(struct cop_runrec *into, const struct cop_op_machine *m, double time_s)
{
	cop_runrec_point(into, "cpu.seconds", time_s, (double)m->cpu_us / 1e6);
	cop_runrec_point(into, "cpu.seconds_max", time_s, (double)m->cpu_us_most / 1e6);
	cop_runrec_point(into, "memory.resident_bytes", time_s, (double)m->resident_bytes);
	cop_runrec_point(into, "memory.resident_bytes_max", time_s, (double)m->resident_bytes_most);
}

/* Adds the hosts' utilization, under MLflow's names: the mean over all hosts that have the metric
 * and, if there are several, the maximum. */
static void add_hosts(struct cop_runrec *into, const struct cop_machine_sum *s, double time_s)
{
	for (unsigned i = 0; i < COP_MACHINE_METRICS; i++) {
		const struct cop_machine_value *v = &s->of[i];
		char name[COP_MACHINE_NAME_SIZE], key[COP_MACHINE_NAME_SIZE + 16];

		if (!v->hosts)
			continue;
		cop_machine_name(i, name);
		snprintf(key, sizeof(key), "system/%s", name);
		cop_runrec_point(into, key, time_s, (double)v->sum / v->hosts / 1e3);
		snprintf(key, sizeof(key), "system/max/%s", name);
		if (v->hosts > 1)
			cop_runrec_point(into, key, time_s, (double)v->most / 1e3);
	}
}

/* Adds one round's points at the record's current step. */
static void add_round(struct cop_runrec *into, const struct cop_follow_numbers *n)
{
	static const enum cop_counter of[] = {COP_FUSE_READ_BYTES, COP_ORIGIN_OPERATIONS,
		COP_ORIGIN_BYTES, COP_FABRIC_BYTES_IN, COP_FABRIC_BYTES_OUT};
	double t = (double)n->wall_ns / 1e9;

	cop_runrec_point(into, "fuse.requests", t, (double)cop_stats_requests(&n->stats));
	for (size_t i = 0; i < COP_ARRAY_SIZE(of); i++)
		add_counter(into, &n->stats, of[i], t);
	cop_runrec_point(into, "budget.used_bytes", t, (double)n->usage.used_bytes);
	cop_runrec_point(into, "budget.limit_bytes", t, (double)n->usage.limit_bytes);
	cop_runrec_point(into, "nodes.answered", t, n->nodes);
	cop_runrec_point(into, "nodes.missing", t, n->missing);
	add_machine(into, &n->machine, t);
	add_hosts(into, &n->hosts, t);
}

/* ---- the end ---- */

struct adding {
	struct cop_runrec *into;
	double time_s;
};

static int add_profile(void *arg, const char *metric, const char *value)
{
	const struct adding *a = arg;
	char key[COP_RUNREC_KEY_MAX + 1];

	snprintf(key, sizeof(key), "profile.%s", metric);
	cop_runrec_point(a->into, key, a->time_s, strtod(value, NULL));
	return 0;
}

static void add_op(const struct adding *a, enum cop_prof_op op, const struct cop_prof_op_sum *sum)
{
	const struct {
		const char *name;
		double value;
	} values[] = {{"calls", (double)sum->calls}, {"hits", (double)sum->outcome[COP_PROF_HIT]},
		{"misses", (double)sum->outcome[COP_PROF_MISS]},
		{"negatives", (double)sum->outcome[COP_PROF_NEGATIVE]},
		{"seconds", (double)sum->latency_us / 1e6}, {"p50_us", (double)sum->p50_ns / 1e3},
		{"p99_us", (double)sum->p99_ns / 1e3}, {"max_us", (double)sum->max_ns / 1e3}};
	char key[COP_RUNREC_KEY_MAX + 1];

	for (size_t i = 0; i < COP_ARRAY_SIZE(values); i++) {
		snprintf(key, sizeof(key), "operation.%s.%s", cop_prof_op_name(op), values[i].name);
		cop_runrec_point(a->into, key, a->time_s, values[i].value);
	}
}

/* Adds the final points: every counter and, with a profile, every operation. */
static void add_totals(struct cop_runrec *into, const struct cop_op_sum *sum, double time_s)
{
	struct adding a = {into, time_s};

	for (unsigned c = 0; c < COP_COUNTERS; c++)
		add_counter(into, &sum->stats, c, time_s);
	cop_runrec_point(into, "fuse.requests", time_s, (double)cop_stats_requests(&sum->stats));
	cop_runrec_point(into, "nodes.answered", time_s, sum->nodes);
	cop_runrec_point(into, "nodes.missing", time_s, sum->missing);
	if (sum->machine.cpu_us)
		add_machine(into, &sum->machine, time_s);
	add_hosts(into, &sum->hosts, time_s);
	if (!sum->prof)
		return;
	(void)cop_prof_each_metric(sum->prof, add_profile, &a);
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum one;

		cop_prof_sum_op(sum->prof, op, &one);
		if (one.calls)
			add_op(&a, op, &one);
	}
}

/* Writing: to the store or, while that is unavailable, the whole record to a file. */

static void file_in(const struct cop_runlog *r, char out[PATH_MAX + 64])
{
	snprintf(out, PATH_MAX + 64, "%s/runs/%s" COP_RUNREC_SUFFIX, r->job_dir, r->record.id);
}

static int keep_in_job_dir(struct cop_runlog *r, struct cop_err *err)
{
	char dir[PATH_MAX + 16], file[PATH_MAX + 64];
	struct cop_buf text = {0};
	int rc;

	snprintf(dir, sizeof(dir), "%s/runs", r->job_dir);
	rc = cop_make_dirs_said(dir, 0755, err);
	if (rc)
		return rc;
	file_in(r, file);
	cop_runrec_write(&r->record, &text);
	rc = text.failed ? -ENOMEM : cop_write_file(file, text.data, text.len, 0644);
	cop_buf_free(&text);
	r->kept |= rc == 0;
	return rc ? cop_err_set(err, -rc, "%s: %s", file, strerror(-rc)) : 0;
}

/* Logs only the first failure: a later write may succeed. */
static void log_failure(struct cop_runlog *r, const struct cop_err *why, const char *where)
{
	if (!r->complained)
		cop_log_warn("the run is not recorded in its store: %s; %s", why->text, where);
	r->complained = true;
}

/* Saves the record in the job directory. If the store could not be locked, saves it in STORE.d,
 * too, because the next reader can probably import it from there. */
static void keep_elsewhere(struct cop_runlog *r, int why, const struct cop_err *err)
{
	struct cop_err ignored;

	if (why == -EBUSY || why == -ENOLCK)
		r->kept_beside |= cop_store_put_beside(r->store, &r->record, &ignored) == 0;
	if (*r->job_dir && keep_in_job_dir(r, &ignored) == 0)
		log_failure(r, err, "copper runs import JOBDIR takes it from the job directory");
	else if (r->kept_beside)
		log_failure(
			r, err, "the next copper runs takes it from the folder beside the store");
	else
		log_failure(r, err, "and nothing else keeps it");
}

static void drop_kept(struct cop_runlog *r)
{
	char file[PATH_MAX + 64];

	file_in(r, file);
	if (r->kept)
		cop_unlink(file);
	if (r->kept_beside)
		cop_store_drop_beside(r->store, r->record.id);
	r->kept = r->kept_beside = false;
}

/* Writes new data to the store. If that keeps failing until the deadline, saves the whole record
 * elsewhere; err has the store's error. */
static void keep(struct cop_runlog *r, uint64_t deadline_ms, struct cop_err *err)
{
	int rc;

	r->record.seen_s = (double)cop_wall_ns() / 1e9;
	rc = cop_store_put(r->store, &r->record, r->stored_step, deadline_ms, err);
	if (rc) {
		keep_elsewhere(r, rc, err);
		return;
	}
	drop_kept(r);
	r->complained = false;
	r->stored_step = r->record.step + 1;
}

/* Imports program logs into the store. After a failure, the next call or copper runs import
 * retries. */
static void take_logs(struct cop_runlog *r, uint64_t deadline_ms)
{
	struct cop_buf notes = {0};
	char dir[PATH_MAX + 16];
	struct cop_err ignored;
	char *rest, *line;

	if (!*r->job_dir || !r->take || r->complained)
		return;
	snprintf(dir, sizeof(dir), "%s/runs", r->job_dir);
	(void)cop_take_logs(r->take, dir, r->record.id, r->store, deadline_ms, &notes, &ignored);
	for (rest = notes.data; rest && (line = strsep(&rest, "\n"));)
		if (*line)
			cop_log_warn("%s", line);
	cop_buf_free(&notes);
}

/* How long to wait for Slurm's answer. */
#define ASK_MS 2000

_Static_assert(COP_RUNLOG_STORE == PATH_MAX, "a store has an absolute name");

static void destroy(void *ctx)
{
	struct cop_runlog *r = ctx;

	cop_runrec_free(&r->record);
	cop_runrec_free(&r->totals);
	cop_take_free(r->take);
	free(r);
}

/* ---- the thread ---- */

static void begin(void *ctx, uint64_t deadline_ms, struct cop_err *err)
{
	struct cop_err why = {0};

	keep(ctx, deadline_ms, &why);
	if (why.code)
		cop_err_set(err, why.code, "this run is not in its store: %.900s", why.text);
}

static void record_round(void *ctx, const struct cop_follow_numbers *n)
{
	struct cop_runlog *r = ctx;

	if (cop_runrec_next(&r->record))
		add_round(&r->record, n);
}

static void beat(void *ctx, uint64_t deadline_ms)
{
	struct cop_err ignored = {0};

	keep(ctx, deadline_ms, &ignored);
	take_logs(ctx, deadline_ms);
}

/* Asks Slurm why the job is ending, because Slurm ends a job with just a signal. */
static void ask_slurm(struct cop_runlog *r)
{
	bool by_signal = r->by_signal || (r->exits.failed && WIFSIGNALED(r->exits.worst));
	const char *why = by_signal ? cop_slurm_why(ASK_MS) : NULL;
	const char *known = cop_runrec_get(&r->totals, COP_RUNREC_REASON);
	struct cop_buf text = {0};

	if (!why)
		return;
	cop_buf_str(&text, why);
	if (strncmp(known, "signal; ", 8) == 0)
		known += 8;
	if (strcmp(known, "signal") != 0 && strncmp(known, why, strlen(why)) != 0)
		cop_buf_printf(&text, "; %s", known);
	r->status = COP_RUNREC_FAILED;
	cop_runrec_put(&r->totals, COP_RUNREC_REASON, text.failed ? why : text.data);
	cop_buf_free(&text);
}

/* Adds the totals as one last step, and the outcome. */
static void take_end(struct cop_runlog *r)
{
	struct cop_runrec *record = &r->record;

	record->status = r->status;
	record->end_s = (double)cop_wall_ns() / 1e9;
	cop_runrec_put(record, COP_RUNREC_REASON, cop_runrec_get(&r->totals, COP_RUNREC_REASON));
	cop_runrec_last(record);
	for (size_t i = 0; i < r->totals.series_n; i++) {
		const struct cop_runrec_series *s = &r->totals.series[i];

		cop_runrec_point(record, s->key, s->point[0].time_s, s->point[0].value);
	}
}

static void end(void *ctx, uint64_t deadline_ms)
{
	struct cop_runlog *r = ctx;

	ask_slurm(r);
	take_end(r);
	if (r->take)
		cop_take_quickly(r->take, false);
	beat(ctx, deadline_ms);
}

/* ---- the main thread ---- */

static void take_totals(void *ctx, const struct cop_op_sum *sum)
{
	struct cop_runlog *r = ctx;

	r->totals.step = 1;
	r->exits = sum->exits;
	r->missing = sum->missing;
	r->has_exits = true;
	add_totals(&r->totals, sum, (double)cop_wall_ns() / 1e9);
}

static void ending(void *ctx, const struct cop_follow_end *how)
{
	struct cop_runlog *r = ctx;

	struct cop_buf reason = {0};

	r->by_signal = strcmp(how->reason, "signal") == 0;
	if (!r->has_exits)
		r->exits = how->exits;
	r->status = cop_judge_end(&(struct cop_judge){.failed = how->failed,
					  .reason = how->reason,
					  .exits = r->exits,
					  .nodes = r->record.nodes,
					  .missing = r->missing,
					  .all_asked = r->has_exits,
					  .kills = r->kills},
			    &reason)
			    ? COP_RUNREC_FAILED
			    : COP_RUNREC_FINISHED;
	cop_runrec_put(&r->totals, COP_RUNREC_REASON, reason.failed ? how->reason : reason.data);
	cop_buf_free(&reason);
}

static const struct cop_follower_ops ops = {.thread = "runlog",
	.beats = BEAT_ROUNDS,
	.begin = begin,
	.round = record_round,
	.beat = beat,
	.end = end,
	.totals = take_totals,
	.ending = ending,
	.free = destroy};

/* ---- the start ---- */

static const char *store_of(const struct cop_conf *conf)
{
	const char *store = conf->store ? conf->store : getenv("COPPER_STORE");

	return store && *store ? store : NULL;
}

bool cop_runlog_is_wanted(const struct cop_conf *conf)
{
	return store_of(conf) != NULL;
}

static int make_absolute(const char *path, char out[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	int len;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	len = snprintf(out, PATH_MAX, "%s%s%s", cwd, *cwd ? "/" : "", path);
	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int fill_runlog(struct cop_runlog *r, const struct cop_runlog_conf *conf)
{
	int rc = make_absolute(store_of(conf->conf), r->store);

	snprintf(r->record.id, sizeof(r->record.id), "%s", conf->id);

	r->take = cop_take_new();
	if (r->take)
		cop_take_quickly(r->take, true);
	r->kills = cop_memory_kills("");
	r->interval_ms = conf->conf->store_interval_ms;
	snprintf(r->job_dir, sizeof(r->job_dir), "%s", conf->job_dir);
	describe(r, conf);
	return rc || !r->record.failed ? rc : -ENOMEM;
}

bool cop_runlog_new(
	const struct cop_conf *conf, char id[COP_RUNREC_ID_LEN + 1], char store[COP_RUNLOG_STORE])
{
	int rc;

	*id = '\0';
	if (!store_of(conf))
		return false;
	rc = make_absolute(store_of(conf), store);
	rc = rc ? rc : cop_runrec_new_id(id);
	if (rc)
		cop_log_warn("this run is not recorded error=\"%s\"", strerror(-rc));
	return !rc;
}

void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf)
{
	struct cop_runlog *r;
	int rc;

	if (!store_of(conf->conf) || !*conf->id)
		return;
	r = calloc(1, sizeof(*r));
	rc = r ? fill_runlog(r, conf) : -ENOMEM;
	if (!rc)
		rc = cop_follow_add(f, &ops, r);
	else if (r)
		destroy(r);
	if (rc)
		cop_log_warn("this run is not recorded error=\"%s\"", strerror(-rc));
}
