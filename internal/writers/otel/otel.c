/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/otel/otel_priv.h"
#include "base/log/log.h"
#include "job/scheduler/scheduler.h"

#include <fcntl.h>
#include <sys/stat.h>

static void start_record(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out)
{
	const struct cop_otlp_attribute nodes = {.key = "copper.nodes", .number = o->nodes};
	struct cop_otlp_record r = {.time_ns = (uint64_t)o->ready_ns,
		.observed_ns = (uint64_t)o->ready_ns,
		.severity = COP_OTLP_INFO,
		.event = "copper.job.ready",
		.body = "the tree is ready",
		.attributes = {&nodes, 1},
		.at = o->place.job};

	(void)now_ns;
	cop_otlp_logs(out, from, &r, 1);
}

/* ---- events of nodes ---- */

/* Records per line; receivers limit the length of a line. */
#define BATCH 64u

struct batch {
	struct cop_otlp_record record[BATCH];
	struct cop_otlp_attribute attribute[BATCH][3];
	char event[BATCH][48], body[BATCH][COP_TELEMETRY_DETAIL + 320];
	size_t n;
};

static enum cop_otlp_severity severity_of(enum cop_telemetry_kind kind)
{
	if (kind == COP_TELEMETRY_STORAGE_ERROR)
		return COP_OTLP_FAILURE;
	return cop_otel_is_trouble(kind) && kind != COP_TELEMETRY_PEER_BACK ? COP_OTLP_WARN
									    : COP_OTLP_INFO;
}

static void add_fact(
	struct batch *b, const struct cop_otel *o, const struct fact *f, int64_t now_ns)
{
	struct cop_otlp_attribute *a = b->attribute[b->n];
	const char *name = cop_telemetry_kind_name(f->kind);

	snprintf(b->event[b->n], sizeof(b->event[0]), "copper.%s", name);
	snprintf(b->body[b->n], sizeof(b->body[0]), "%s%s%s", name, *f->detail ? ": " : "",
		f->detail);
	a[0] = (struct cop_otlp_attribute){.key = "copper.rank", .number = f->rank};
	a[1] = (struct cop_otlp_attribute){.key = "host.name", .text = f->host};
	a[2] = (struct cop_otlp_attribute){.key = "copper.detail", .text = f->detail};
	b->record[b->n] = (struct cop_otlp_record){.time_ns = (uint64_t)f->wall_ns,
		.observed_ns = (uint64_t)now_ns,
		.severity = severity_of(f->kind),
		.event = b->event[b->n],
		.body = b->body[b->n],
		.attributes = {a, *f->detail ? 3 : 2},
		.at = o->place.job};
	b->n++;
}

static void add_facts(const struct cop_otel *o, const struct cop_otlp_source *from, int64_t now_ns,
	struct cop_buf *out)
{
	struct batch b = {0};

	for (size_t i = 0; i < o->facts.n; i++) {
		add_fact(&b, o, &o->facts.fact[i], now_ns);
		if (b.n < BATCH && i + 1 < o->facts.n)
			continue;
		cop_otlp_logs(out, from, b.record, b.n);
		b.n = 0;
	}
}

void cop_otel_end_records(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out)
{
	const struct cop_otlp_attribute attributes[] = {
		{.key = "copper.nodes.missing", .number = o->totals.numbers.missing},
		{.key = "copper.events.dropped", .number = (int64_t)o->facts.dropped}};
	struct cop_otlp_record r = {.time_ns = (uint64_t)now_ns,
		.observed_ns = (uint64_t)now_ns,
		.severity = o->failed ? COP_OTLP_FAILURE : COP_OTLP_INFO,
		.event = o->failed ? "copper.job.failed" : "copper.job.stopped",
		.body = o->reason ? o->reason : "",
		.attributes = {attributes, COP_ARRAY_SIZE(attributes)},
		.at = o->place.job};

	add_facts(o, from, now_ns, out);
	cop_otlp_logs(out, from, &r, 1);
}

/* Opens the file for each line, to notice if it has been removed. Writes each line with one
 * call. */

static void otel_path(const struct files *f, enum file which, char out[PATH_MAX + 16])
{
	static const char *const name[] = {"traces", "metrics", "logs"};

	snprintf(out, PATH_MAX + 16, "%s/%s.jsonl", f->dir, name[which]);
}

static int open_it(const char *path, int flags)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at), fd = -1;

	if (!rc) {
		fd = openat(at.fd, at.name, O_WRONLY | O_APPEND | O_CLOEXEC | at.nofollow | flags,
			0644);
		rc = fd < 0 ? -errno : 0;
	}
	cop_dir_done(&at);
	return rc ? rc : fd;
}

/* Creates an empty file. Replaces an earlier job's file instead of truncating it, so that its
 * readers can continue. 0 or -errno with a message. */
static int make_file(struct files *f, enum file which, struct cop_err *err)
{
	char path[PATH_MAX + 16];
	int fd, rc = cop_make_dirs_said(f->dir, 0755, err);

	if (rc)
		return rc;
	otel_path(f, which, path);
	rc = cop_unlink(path);
	fd = rc && rc != -ENOENT ? rc : open_it(path, O_CREAT | O_EXCL);
	if (fd < 0)
		return cop_err_set(err, -fd, "%s: %s", path, strerror(-fd));
	close(fd);
	f->made[which] = true;
	return 0;
}

/* Writes the line. If a full disk cuts it short, removes the partial line. */
static int write_whole(int fd, const struct cop_buf *line)
{
	struct stat before;
	ssize_t n;

	if (fstat(fd, &before))
		return -errno;
	n = cop_write_full(fd, line->data, line->len);
	if (n == (ssize_t)line->len)
		return 0;
	if (ftruncate(fd, before.st_size))
		return -errno;
	return n < 0 ? (int)n : -ENOSPC;
}

static int append_line(
	struct files *f, enum file which, const struct cop_buf *line, struct cop_err *err)
{
	char path[PATH_MAX + 16];
	int fd, rc = 0;

	if (line->failed)
		return cop_err_set(err, ENOMEM, "out of memory");
	if (!f->made[which])
		rc = make_file(f, which, err);
	if (rc)
		return rc;
	otel_path(f, which, path);
	fd = open_it(path, 0);
	rc = fd < 0 ? fd : write_whole(fd, line);
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	return rc ? cop_err_set(err, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* Appends a line in full or not at all. Logs only the first failure. */
static void append(struct files *f, enum file which, const struct cop_buf *line)
{
	struct cop_err err = {0};

	if (append_line(f, which, line, &err) == 0 || f->complained)
		return;
	f->complained = true;
	cop_log_warn("the OpenTelemetry files are incomplete: %s; the job goes on", err.text);
}

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

typedef void writer(const struct cop_otel *o, const struct cop_otlp_source *from, int64_t now_ns,
	struct cop_buf *out);

static void put_line(struct cop_otel *o, enum file which, writer *write, int64_t now_ns)
{
	struct cop_otlp_source from = source_of(o);
	struct cop_buf line = {0};

	if (which == TRACES && !cop_otel_is_sampled(&o->place))
		return;
	write(o, &from, now_ns, &line);
	append(&o->files, which, &line);
	cop_buf_free(&line);
}

static void put_numbers(
	struct cop_otel *o, const struct cop_follow_numbers *n, const struct totals *totals)
{
	struct cop_otlp_source from = source_of(o);
	struct cop_buf line = {0};

	cop_otel_metrics(&line, &from, &o->series, n, totals);
	append(&o->files, METRICS, &line);
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
			(void)make_file(&o->files, f, &why);
	if (why.code)
		cop_err_set(err, why.code, "the OpenTelemetry files cannot be written: %.900s",
			why.text);
	o->begun = true;
	put_line(o, TRACES, cop_otel_start_span, 0);
	put_line(o, LOGS, start_record, 0);
}

static void take_round(void *ctx, const struct cop_follow_numbers *n)
{
	struct cop_otel *o = ctx;

	o->latest = *n;
	o->has_latest = true;
	if (cop_otel_is_due(&o->pace))
		put_numbers(o, n, NULL);
}

/* If no sums arrive at the stop, the last known numbers are final. */
static void end(void *ctx, uint64_t deadline_ms)
{
	struct cop_otel *o = ctx;
	int64_t now_ns = cop_wall_ns();

	(void)deadline_ms;
	/* The job never started. */
	if (!o->begun)
		put_line(o, TRACES, cop_otel_start_span, now_ns);
	if (o->totals.has)
		put_numbers(o, &o->totals.numbers, &o->totals);
	else if (o->has_latest)
		put_numbers(o, &o->latest, NULL);
	put_line(o, LOGS, cop_otel_end_records, now_ns);
	put_line(o, TRACES, cop_otel_end_spans, now_ns);
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

/* Whether the semantic conventions define this attribute as a number: only one is. */
static bool is_number(const char *key)
{
	return strcmp(key, "process.pid") == 0;
}

/* Truncates long values, because every line repeats them: a node list can have thousands of
 * names. */
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
	o->place = *conf->trace;
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
