/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/otel/otel_priv.h"

#include "base/log/log.h"
#include "job/scheduler/scheduler.h"

static void destroy(void *ctx)
{
	struct cop_otel *o = ctx;

	for (size_t i = 0; i < o->resource.n; i++) {
		free((char *)o->resource.at[i].key);
		free((char *)o->resource.at[i].text);
	}
	cop_otel_free_facts(&o->facts);
	free(o->reason);
	free(o);
}

/* ---- the thread ---- */

static struct cop_otlp_source source_of(const struct cop_otel *o)
{
	return (struct cop_otlp_source){{o->resource.at, o->resource.n}, cop_version};
}

typedef void writer(
	const struct cop_otel *o, const struct cop_otlp_source *from, struct cop_buf *out);
typedef void end_writer(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out);

static void put_line(struct cop_otel *o, enum file which, writer *write)
{
	struct cop_otlp_source from = source_of(o);
	struct cop_buf line = {0};

	if (which == TRACES && !cop_otel_is_sampled(&o->place))
		return;
	write(o, &from, &line);
	cop_otel_append(&o->files, which, &line);
	cop_buf_free(&line);
}

static void put_end(struct cop_otel *o, enum file which, end_writer *write, int64_t now_ns)
{
	struct cop_otlp_source from = source_of(o);
	struct cop_buf line = {0};

	if (which == TRACES && !cop_otel_is_sampled(&o->place))
		return;
	write(o, &from, now_ns, &line);
	cop_otel_append(&o->files, which, &line);
	cop_buf_free(&line);
}

static void put_numbers(
	struct cop_otel *o, const struct cop_follow_numbers *n, const struct totals *totals)
{
	struct cop_otlp_source from = source_of(o);
	struct cop_buf line = {0};

	cop_otel_metrics(&line, &from, &o->series, n, totals);
	cop_otel_append(&o->files, METRICS, &line);
	cop_buf_free(&line);
	o->has_latest = false;
}

static void begin(void *ctx, uint64_t deadline_ms, struct cop_err *err)
{
	struct cop_otel *o = ctx;
	struct cop_err why = {0};

	(void)deadline_ms;
	for (unsigned f = 0; f < FILES && !why.code; f++)
		if (f != TRACES || cop_otel_is_sampled(&o->place))
			(void)cop_otel_make(&o->files, f, &why);
	if (why.code)
		cop_err_set(err, why.code, "the OpenTelemetry files cannot be written: %.900s",
			why.text);
	o->begun = true;
	put_line(o, TRACES, cop_otel_start_span);
	put_line(o, LOGS, cop_otel_start_record);
}

static void take_round(void *ctx, const struct cop_follow_numbers *n)
{
	struct cop_otel *o = ctx;

	o->latest = *n;
	o->has_latest = true;
	if (cop_otel_is_due(&o->pace))
		put_numbers(o, n, NULL);
}

/* Without the sums of the stop, the last known numbers are final. */
static void end(void *ctx, uint64_t deadline_ms)
{
	struct cop_otel *o = ctx;
	int64_t now_ns = cop_wall_ns();

	(void)deadline_ms;
	/* The job never started. */
	if (!o->begun)
		put_line(o, TRACES, cop_otel_start_span);
	if (o->totals.has)
		put_numbers(o, &o->totals.numbers, &o->totals);
	else if (o->has_latest)
		put_numbers(o, &o->latest, NULL);
	put_end(o, LOGS, cop_otel_end_records, now_ns);
	put_end(o, TRACES, cop_otel_end_spans, now_ns);
}

/* ---- the main thread ---- */

static void take_totals(void *ctx, const struct cop_op_sum *sum)
{
	struct cop_otel *o = ctx;

	cop_otel_take_totals(&o->totals, sum);
	if (sum->telemetry)
		cop_otel_take_facts(&o->facts, sum->telemetry, o->host, o->ctx);
}

static void ending(void *ctx, const struct cop_follow_end *how)
{
	struct cop_otel *o = ctx;

	struct cop_buf reason = {0};

	o->stop_ns = how->stop_ns;
	o->start_failed = how->failed && !how->stop_ns;
	o->failed = cop_judge_end(&(struct cop_judge){.failed = how->failed,
					  .reason = how->reason,
					  .exits = o->totals.has ? o->totals.exits : how->exits,
					  .nodes = o->nodes,
					  .missing = o->totals.numbers.missing,
					  .all_asked = o->totals.has,
					  .kills = o->kills},
		&reason);
	o->reason = reason.failed ? strdup(how->reason) : strdup(reason.data);
	cop_buf_free(&reason);
}

static const struct cop_follower_ops ops = {.thread = "otel",
	.begin = begin,
	.round = take_round,
	.end = end,
	.totals = take_totals,
	.ending = ending,
	.free = destroy};

/* ---- the start ---- */

/* The only attribute that the semantic conventions define as a number. */
static bool is_number(const char *key)
{
	return strcmp(key, "process.pid") == 0;
}

/* Truncates long values: a list of thousands of nodes would be repeated in every line. */
static void add_resource(void *arg, const char *key, const char *value)
{
	struct resource *r = arg;
	struct cop_otlp_attribute *a = &r->at[r->n];

	if (r->n == RESOURCE_MAX)
		return;
	r->n++;
	*a = (struct cop_otlp_attribute){.key = strdup(key)};
	if (is_number(key))
		a->number = atoll(value);
	else
		a->text = strndup(value, VALUE_MAX);
	r->failed |= !a->key || (!a->text && !is_number(key));
}

static int fill_otel(struct cop_otel *o, const struct cop_otel_conf *conf)
{
	int len = snprintf(o->files.dir, sizeof(o->files.dir), "%s/otel", conf->job_dir);

	if (len >= (int)sizeof(o->files.dir))
		return -ENAMETOOLONG;
	snprintf(o->source, sizeof(o->source), "%s", conf->source);
	o->nodes = conf->nodes;
	o->host = conf->host;
	o->ctx = conf->ctx;
	o->started_ns = conf->started_ns;
	o->ready_ns = conf->ready_ns;
	o->series.start_ns = (uint64_t)conf->started_ns;
	o->kills = cop_memory_kills("");
	cop_resource_all(0, add_resource, &o->resource);
	o->place = conf->trace->place;
	return o->resource.failed ? -ENOMEM : 0;
}

void cop_otel_follow(struct cop_follow *f, const struct cop_otel_conf *conf)
{
	struct cop_otel *o = calloc(1, sizeof(*o));
	int rc = o ? fill_otel(o, conf) : -ENOMEM;

	if (!rc)
		rc = cop_follow_add(f, &ops, o);
	else if (o)
		destroy(o);
	if (rc)
		cop_log_warn("no OpenTelemetry files are written error=\"%s\"", strerror(-rc));
}
