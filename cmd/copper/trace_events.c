/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/base/json.h"
#include "cmd.h"
#include "base/table/table.h"
#include "trace.h"
#include "trace/timeline/timeline.h"

enum { BY_TIME, BY_DUR, BY_SIZE };
struct args {
	struct trace_select select; /* first */
	uint64_t limit;
	unsigned sort;
	const char *min_dur;
	struct cop_opt_many paths;
};

static const struct cop_opt_word sorts[] = {
	{"time", BY_TIME}, {"dur", BY_DUR}, {"size", BY_SIZE}, {NULL, 0}};
static const struct cop_opt rows[] = {
	COP_OPT(ENUM, "sort", struct args, sort, "the earliest, longest or largest first",
		.arg = "WORD", .words = sorts, .initial = "time"),
	COP_OPT(U64, "limit", struct args, limit, "only the first N events", .arg = "N", .min = 1),
	COP_OPT(STRING, "min-dur", struct args, min_dur, "only spans of at least this duration",
		.arg = "SECONDS"),
	TRACE_SELECT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_events_options = {.command = "copper trace events",
	.summary = "individual events, by time or longest first",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_events_options;

struct job {
	struct trace_run run;
	const struct args *args;
	uint64_t min_dur_ns;
	struct cop_order *order;
	uint64_t shown;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	cop_order_free(job->order);
	job->order = cop_order_new(&(struct cop_order_conf){.threads = run->threads,
		.dir = cop_cmd_trace_temp(),
		.limit = job->args->limit,
		.whole = true});
	return job->order ? 0 : -ENOMEM;
}

/* ---- the order ---- */

/* Events are sorted by ts, then by descending dur. To sort by something else, the negated sort key
 * takes the place of ts, and the time that of dur; when sorting by size, the duration takes the
 * place of size. */
static struct cop_trace_event disguise(const struct cop_trace_event *e, unsigned sort)
{
	struct cop_trace_event d = *e;

	if (sort == BY_TIME)
		return d;
	d.dur_ns = (uint64_t)INT64_MAX - (uint64_t)e->ts_ns;
	d.ts_ns = -(int64_t)e->dur_ns;
	if (sort == BY_SIZE) {
		d.ts_ns = e->has_size ? -1 - (int64_t)e->size : 0;
		d.size = e->dur_ns;
	}
	return d;
}

static struct cop_trace_event undisguise(const struct cop_trace_event *d, unsigned sort)
{
	struct cop_trace_event e = *d;

	if (sort == BY_TIME)
		return e;
	e.ts_ns = (int64_t)((uint64_t)INT64_MAX - d->dur_ns);
	e.dur_ns = (uint64_t)-d->ts_ns;
	if (sort == BY_SIZE) {
		e.dur_ns = d->size;
		e.size = e.has_size ? (uint64_t)(-1 - d->ts_ns) : 0;
	}
	return e;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;
	const struct args *a = job->args;
	bool timed = e->kind == COP_TRACE_SPAN || e->kind == COP_TRACE_AGGREGATE;
	struct cop_trace_event d;

	if (e->kind == COP_TRACE_META)
		return 0;
	if (a->min_dur && (!timed || e->unfinished || e->dur_ns < job->min_dur_ns))
		return 0;
	d = disguise(e, a->sort);
	/* Only JSON shows the arguments; all formats show counter values. */
	if (!a->select.json && e->kind != COP_TRACE_COUNTER)
		d.args.len = d.end_args.len = 0;
	return cop_order_add(job->order, worker, &d);
}

/* ---- one event ---- */

static const char *kind_of(const struct cop_trace_event *e)
{
	static const char *const kinds[] = {
		[COP_TRACE_SPAN] = "span",
		[COP_TRACE_AGGREGATE] = "aggregate",
		[COP_TRACE_INSTANT] = "instant",
		[COP_TRACE_COUNTER] = "counter",
		[COP_TRACE_FLOW] = "flow",
		[COP_TRACE_META] = "metadata",
	};

	return e->unfinished ? "unfinished" : kinds[e->kind];
}

/* Formats seconds with nine decimals or, rounded, with six. It uses integers because a double
 * cannot represent the nanoseconds of more than three months. */
#define SECONDS_MAX 32
static const char *seconds(char text[SECONDS_MAX], bool minus, uint64_t ns, unsigned decimals)
{
	uint64_t unit = decimals == 9 ? 1000000000 : 1000000;

	if (decimals == 6)
		ns = ns / 1000 + (ns % 1000 >= 500);
	snprintf(text, SECONDS_MAX, "%s%llu.%0*llu", minus ? "-" : "",
		(unsigned long long)(ns / unit), (int)decimals, (unsigned long long)(ns % unit));
	return text;
}

/* The time of an event, relative to the first one. */
static const char *time_of(const struct job *job, const struct cop_trace_event *e,
	char text[SECONDS_MAX], unsigned decimals)
{
	int64_t first = job->run.result.first_ns;
	bool minus = e->ts_ns < first;
	uint64_t ns =
		minus ? (uint64_t)first - (uint64_t)e->ts_ns : (uint64_t)e->ts_ns - (uint64_t)first;

	return seconds(text, minus, ns, decimals);
}

/* The value of a counter with a single series. */
static bool value_of(const struct cop_trace_event *e, long double *out)
{
	struct cop_trace_values values = cop_trace_values_of(e);
	struct cop_trace_str series;
	unsigned n = 0;

	while (e->kind == COP_TRACE_COUNTER && cop_trace_values_next(&values, &series, out))
		n++;
	return n == 1;
}

static void put_args(struct cop_json *j, const char *key, struct cop_trace_str object)
{
	if (!object.len)
		return;
	cop_json_value(j, key);
	cop_members_copy(j->out, object);
}

static void put_json(const struct job *job, const struct cop_trace_event *e, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	char text[SECONDS_MAX];
	long double value;

	cop_buf_str(out, job->shown ? ",\n" : "[\n");
	cop_json_object(&j, NULL);
	cop_json_value(&j, "time");
	cop_buf_str(out, time_of(job, e, text, 9));
	cop_json_value(&j, "dur");
	cop_buf_str(out, e->unfinished ? "null" : seconds(text, false, e->dur_ns, 9));
	cop_json_str(&j, "kind", kind_of(e));
	cop_json_u64(&j, "count", e->count);
	cop_json_bytes(&j, "name", e->name.at, e->name.len);
	cop_json_bytes(&j, "cat", e->cat.at, e->cat.len);
	cop_json_bytes(&j, "pid", e->pid.at, e->pid.len);
	cop_json_bytes(&j, "tid", e->tid.at, e->tid.len);
	cop_json_bytes(&j, "host", e->host.at, e->host.len);
	if (e->has_size)
		cop_json_u64(&j, "size", e->size);
	else
		cop_json_null(&j, "size");
	cop_json_bytes(&j, "file", e->file.at, e->file.len);
	cop_json_str(&j, "trace", cop_trace_files_name(job->run.files, e->source));
	if (value_of(e, &value) && isfinite(value)) {
		cop_json_value(&j, "value");
		cop_grid_put_real(value, out);
	}
	put_args(&j, "args", e->args);
	put_args(&j, "end_args", e->end_args);
	cop_json_end(&j);
}

static void put_csv(const struct job *job, const struct cop_trace_event *e, struct cop_buf *out)
{
	const struct cop_trace_str *text[] = {&e->name, &e->cat, &e->pid, &e->tid, &e->host};
	char number[SECONDS_MAX];
	long double value;

	if (!job->shown)
		cop_buf_str(out, "time,dur,kind,count,name,cat,pid,tid,host,size,file,value\n");
	cop_buf_printf(out, "%s,", time_of(job, e, number, 9));
	if (!e->unfinished)
		cop_buf_str(out, seconds(number, false, e->dur_ns, 9));
	cop_buf_printf(out, ",%s,%llu", kind_of(e), (unsigned long long)e->count);
	for (size_t i = 0; i < COP_ARRAY_SIZE(text); i++) {
		cop_buf_str(out, ",");
		cop_csv_field(out, text[i]->at, text[i]->len);
	}
	if (e->has_size)
		cop_buf_printf(out, ",%llu,", (unsigned long long)e->size);
	else
		cop_buf_str(out, ",,");
	cop_csv_field(out, e->file.at, e->file.len);
	cop_buf_str(out, ",");
	if (value_of(e, &value))
		cop_grid_put_real(value, out);
	cop_buf_str(out, "\n");
}

/* Control characters would move the cursor. */
static void put_plain(struct cop_buf *out, struct cop_trace_str s, int width)
{
	size_t from = out->len;

	cop_buf_add(out, s.at, s.len);
	for (size_t i = from; i < out->len && !out->failed; i++)
		if ((unsigned char)out->data[i] < 32 || out->data[i] == 127)
			out->data[i] = '?';
	cop_buf_printf(out, "%*s ", COP_MAX(0, width - (int)s.len), "");
}

/* The widths are those of usual names, because later events are not known yet. */
static void put_row(const struct job *job, const struct cop_trace_event *e, struct cop_buf *out)
{
	char text[SECONDS_MAX];

	if (!job->shown)
		cop_buf_printf(out, "%14s %14s %-10s %-16s %-10s %-8s %-8s %-12s %12s %s\n", "time",
			"dur", "kind", "name", "cat", "pid", "tid", "host", "size", "file");
	cop_buf_printf(out, "%14s ", time_of(job, e, text, 6));
	cop_buf_printf(out, "%14s %-10s ", e->unfinished ? "-" : seconds(text, false, e->dur_ns, 6),
		kind_of(e));
	put_plain(out, e->name, 16);
	put_plain(out, e->cat, 10);
	put_plain(out, e->pid, 8);
	put_plain(out, e->tid, 8);
	put_plain(out, e->host, 12);
	if (e->has_size)
		cop_buf_printf(out, "%12llu ", (unsigned long long)e->size);
	else
		cop_buf_printf(out, "%12s ", "-");
	put_plain(out, e->kind == COP_TRACE_COUNTER ? e->args : e->file, 0);
	out->data[out->len - 1] = '\n';
}

static int print_event(void *arg, const struct cop_trace_event *disguised)
{
	struct job *job = arg;
	const struct cop_trace_event plain = undisguise(disguised, job->args->sort), *e = &plain;
	struct cop_buf text = {0};
	int rc = 0;

	if (job->args->select.json)
		put_json(job, e, &text);
	else if (job->args->select.csv)
		put_csv(job, e, &text);
	else
		put_row(job, e, &text);
	job->shown++;
	if (text.failed || fwrite(text.data, 1, text.len, stdout) != text.len)
		rc = text.failed ? -ENOMEM : -EIO;
	cop_buf_free(&text);
	return rc;
}

static int show(struct job *job)
{
	struct cop_err err = {0};
	int rc = cop_order_each(job->order, print_event, job);

	if (!rc && job->args->select.json)
		fputs(job->shown ? "\n]\n" : "[]\n", stdout);
	if (fflush(stdout) || ferror(stdout))
		cop_err_set(&err, EIO, "cannot write to standard output");
	else if (rc)
		cop_err_set(&err, -rc, "the events cannot be put in order in %s: %s",
			cop_cmd_trace_temp(), strerror(-rc));
	return err.text[0] ? cop_cmd_trace_fail(&job->run, &err) : 0;
}

int cop_cmd_trace_events(int argc, char **argv)
{
	struct args a = {0};
	struct job job = {.args = &a};
	struct cop_err err = {0};
	double min_dur = 0;
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	if (a.min_dur && cop_cmd_trace_seconds("--min-dur", a.min_dur, &min_dur, &err))
		return cop_opt_misuse(table, &err);
	job.min_dur_ns = (uint64_t)(min_dur * 1e9 + 0.5);
	code = cop_cmd_trace_open(&job.run, table, &a.select, &a.paths);
	if (!code)
		code = cop_cmd_trace_read(&job.run, &(struct trace_reading){.names = true,
							    .args = true,
							    .unfinished = true,
							    .make = make,
							    .add = add_event,
							    .arg = &job,
							    .temp = cop_cmd_trace_temp()});
	if (!code)
		code = show(&job);
	cop_order_free(job.order);
	cop_cmd_trace_close(&job.run);
	return code;
}
