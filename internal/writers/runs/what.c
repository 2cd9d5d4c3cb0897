/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/runlog_priv.h"

#include "prof/profile/profile.h"
#include "job/scheduler/scheduler.h"

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

/* The user's name for the run, else the job's name, else its directory's name. */
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

void cop_runlog_describe(struct cop_runlog *r, const struct cop_runlog_conf *conf)
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

/* CPU time and memory of the nodes. */
static void add_machine(struct cop_runrec *into, const struct cop_op_machine *m, double time_s)
{
	cop_runrec_point(into, "cpu.seconds", time_s, (double)m->cpu_us / 1e6);
	cop_runrec_point(into, "cpu.seconds_max", time_s, (double)m->cpu_us_most / 1e6);
	cop_runrec_point(into, "memory.resident_bytes", time_s, (double)m->resident_bytes);
	cop_runrec_point(into, "memory.resident_bytes_max", time_s, (double)m->resident_bytes_most);
}

/* Utilization of hosts, under MLflow's names: the mean over hosts with the metric and, if there are
 * several, the maximum. */
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

void cop_runlog_add_round(struct cop_runrec *into, const struct cop_follow_numbers *n)
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

void cop_runlog_add_totals(struct cop_runrec *into, const struct cop_op_sum *sum, double time_s)
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
