/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base/json.h"
#include "cmd.h"
#include "base/table/table.h"
#include "trace.h"
#include "trace/timeline/timeline.h"

struct args {
	struct trace_select select; /* first */
	uint64_t limit;
	struct cop_opt_many paths;
};

#define AT(field) .offset = offsetof(struct args, field)
static const struct cop_opt rows[] = {
	{.name = "limit",
		.kind = COP_OPT_U64,
		AT(limit),
		.arg = "N",
		.min = 1,
		.help = "only the first N events"},
	TRACE_SELECT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", AT(paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_events_options = {.command = "copper trace events",
	.summary = "the events themselves, in order of time",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_events_options;

struct job {
	struct trace_run run;
	const struct args *args;
	struct cop_order *order;
	uint64_t shown;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	cop_order_free(job->order);
	job->order = cop_order_new(&(struct cop_order_conf){
		.threads = run->threads, .dir = cop_cmd_trace_temp(), .limit = job->args->limit});
	return job->order ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return e->kind == COP_TRACE_META ? 0 : cop_order_add(job->order, worker, e);
}

/* ---- one event ---- */

static const char *const kinds[] = {
	[COP_TRACE_SPAN] = "span",
	[COP_TRACE_AGGREGATE] = "aggregate",
	[COP_TRACE_INSTANT] = "instant",
	[COP_TRACE_COUNTER] = "counter",
	[COP_TRACE_FLOW] = "flow",
	[COP_TRACE_META] = "metadata",
};

static double time_of(const struct job *job, const struct cop_trace_event *e)
{
	return (double)(e->ts_ns - job->run.result.first_ns) / 1e9;
}

static void put_json(const struct job *job, const struct cop_trace_event *e, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_buf_str(out, job->shown ? ",\n" : "[\n");
	cop_json_object(&j, NULL);
	cop_json_double(&j, "time", time_of(job, e), 9);
	cop_json_double(&j, "dur", (double)e->dur_ns / 1e9, 9);
	cop_json_str(&j, "kind", kinds[e->kind]);
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
	cop_json_end(&j);
}

static void put_csv(const struct job *job, const struct cop_trace_event *e, struct cop_buf *out)
{
	const struct cop_trace_str *text[] = {&e->name, &e->cat, &e->pid, &e->tid, &e->host};

	if (!job->shown)
		cop_buf_str(out, "time,dur,kind,count,name,cat,pid,tid,host,size,file\n");
	cop_buf_printf(out, "%.9f,%.9f,%s,%llu", time_of(job, e), (double)e->dur_ns / 1e9,
		kinds[e->kind], (unsigned long long)e->count);
	for (size_t i = 0; i < COP_ARRAY_SIZE(text); i++) {
		cop_buf_str(out, ",");
		cop_csv_field(out, text[i]->at, text[i]->len);
	}
	if (e->has_size)
		cop_buf_printf(out, ",%llu,", (unsigned long long)e->size);
	else
		cop_buf_str(out, ",,");
	cop_csv_field(out, e->file.at, e->file.len);
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

/* The widths fit usual names, since the events to come are not known. */
static void put_row(const struct job *job, const struct cop_trace_event *e, struct cop_buf *out)
{
	if (!job->shown)
		cop_buf_printf(out, "%14s %14s %-9s %-16s %-10s %-8s %-8s %-12s %12s %s\n", "time",
			"dur", "kind", "name", "cat", "pid", "tid", "host", "size", "file");
	cop_buf_printf(out, "%14.6f %14.6f %-9s ", time_of(job, e), (double)e->dur_ns / 1e9,
		kinds[e->kind]);
	put_plain(out, e->name, 16);
	put_plain(out, e->cat, 10);
	put_plain(out, e->pid, 8);
	put_plain(out, e->tid, 8);
	put_plain(out, e->host, 12);
	if (e->has_size)
		cop_buf_printf(out, "%12llu ", (unsigned long long)e->size);
	else
		cop_buf_printf(out, "%12s ", "-");
	put_plain(out, e->file, 0);
	out->data[out->len - 1] = '\n';
}

static int print_event(void *arg, const struct cop_trace_event *e)
{
	struct job *job = arg;
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
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	code = cop_cmd_trace_open(&job.run, table, &a.select, &a.paths);
	if (!code)
		code = cop_cmd_trace_read(&job.run, &(struct trace_reading){.names = true,
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
