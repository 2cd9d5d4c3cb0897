/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"

/* How long to wait for Slurm's reply to a query about the job. */
#define SACCT_MS 3000

struct args {
	struct runs_common common; /* first */
	const char *id, *metric;
	bool csv;
};

static int check(void *into, struct cop_err *err)
{
	const struct args *a = into;

	if (a->csv && !a->metric)
		return cop_err_set(err, EINVAL, "--csv needs --metric KEY");
	if (a->csv && a->common.json)
		return cop_err_set(err, EINVAL, "--csv and --json contradict each other: give one");
	return cop_cmd_runs_check(into, err);
}

static const struct cop_opt rows[] = {RUNS_ROWS,
	COP_OPT(STRING, "metric", struct args, metric, "all values of this metric", .arg = "KEY"),
	COP_OPT(FLAG, "csv", struct args, csv, "with --metric: step,time,value")};
static const struct cop_opt_operand operands[] = {
	{.name = "ID", .offset = offsetof(struct args, id)}};
const struct cop_opt_table cop_cmd_runs_show_options = {.command = "copper runs show",
	.summary = "one run: its outcome, parameters, tags and metrics",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_show_options;

/* ---- text output ---- */

/* Control characters would move the cursor. */
static void put_plain(struct cop_buf *out, const char *text)
{
	for (const char *c = text; *c; c++)
		cop_buf_add(out, (unsigned char)*c < 32 || *c == 127 ? "?" : c, 1);
}

static void put_line(struct cop_buf *out, const char *name, const char *value)
{
	if (*value)
		cop_buf_printf(out, "%-10s", name);
	put_plain(out, value);
	if (*value)
		cop_buf_str(out, "\n");
}

static void put_head(const struct cop_runrec *r, struct cop_buf *out)
{
	char text[32];

	put_line(out, "run", r->id);
	put_line(out, "name", cop_runrec_get(r, COP_RUNREC_NAME));
	put_line(out, "group", cop_runrec_get(r, COP_RUNREC_GROUP));
	put_line(out, "status", cop_runrec_status_name(r->status));
	put_line(out, "reason", cop_runrec_get(r, COP_RUNREC_REASON));
	put_line(out, "start", cop_cmd_runs_time(r->start_s, text));
	put_line(out, "end", r->end_s > 0 ? cop_cmd_runs_time(r->end_s, text) : "");
	put_line(out, "last seen", r->end_s > 0 ? "" : cop_cmd_runs_time(r->seen_s, text));
	put_line(out, "time", cop_cmd_runs_span(r, text));
	snprintf(text, sizeof(text), "%u", r->nodes);
	put_line(out, "nodes", text);
	put_line(out, "version", cop_runrec_get(r, COP_RUNREC_VERSION));
}

static struct cop_grid_cell pair_cell(const void *arg, size_t row, unsigned col)
{
	const struct cop_runrec_pairs *p = arg;

	return runs_text(col ? p->at[row].value : p->at[row].key);
}

static void put_pairs(const char *heading, const struct cop_runrec_pairs *p, struct cop_buf *out)
{
	const struct cop_grid_col cols[] = {{heading, COP_GRID_TEXT}, {"VALUE", COP_GRID_TEXT}};
	struct cop_grid grid = {.col = cols, .cols = 2, .rows = p->n, .cell = pair_cell, .arg = p};

	if (!p->n)
		return;
	cop_buf_str(out, "\n");
	cop_grid_show(&grid, COP_GRID_PLAIN, out);
}

/* The metrics to show: all except zero counters. */
struct metrics {
	const struct cop_runrec_series **at;
	size_t n;
};

static struct cop_grid_cell metric_cell(const void *arg, size_t row, unsigned col)
{
	const struct metrics *m = arg;
	const struct cop_runrec_series *s = m->at[row];
	static char text[32];

	switch (col) {
	case 0:
		return runs_text(s->key);
	case 1:
		return runs_text(cop_cmd_runs_value(s->key, s->point[s->n - 1].value, text));
	case 2:
		return runs_text(cop_cmd_runs_value(s->key, s->most, text));
	default:
		snprintf(text, sizeof(text), "%" PRIu64, s->points);
		return runs_text(text);
	}
}

/* A value that is not a number is not plotted. */
static void put_nans(const struct cop_runrec_pairs *tags, struct cop_buf *out)
{
	for (size_t i = 0; i < tags->n; i++)
		if (strncmp(tags->at[i].key, "nan.", 4) == 0 &&
			strncmp(tags->at[i].value, "step ", 5) == 0) {
			cop_buf_str(out, "\n");
			put_plain(out, tags->at[i].key + 4);
			cop_buf_str(out, " was NaN first at ");
			put_plain(out, tags->at[i].value);
			cop_buf_str(out, "\n");
		}
}

static void put_metrics(const struct cop_runrec *r, struct cop_buf *out)
{
	static const struct cop_grid_col cols[] = {{"METRIC", COP_GRID_TEXT},
		{"LAST", COP_GRID_TEXT}, {"MOST", COP_GRID_TEXT}, {"POINTS", COP_GRID_TEXT}};
	struct metrics m = {.at = calloc(r->series_n + 1, sizeof(*m.at))};
	struct cop_grid grid = {.col = cols, .cols = 4, .cell = metric_cell, .arg = &m};

	for (size_t i = 0; m.at && i < r->series_n; i++)
		if (r->series[i].n && r->series[i].most != 0)
			m.at[m.n++] = &r->series[i];
	grid.rows = m.n;
	out->failed |= !m.at;
	if (m.n) {
		cop_buf_str(out, "\n");
		cop_grid_show(&grid, COP_GRID_PLAIN, out);
	}
	free(m.at);
	put_nans(&r->list[COP_RUNREC_TAG], out);
}

/* ---- JSON output ---- */

void cop_cmd_runs_json_head(struct cop_json *j, const struct cop_runrec *r)
{
	cop_json_str(j, "id", r->id);
	cop_json_str(j, "name", cop_runrec_get(r, COP_RUNREC_NAME));
	cop_json_str(j, "group", cop_runrec_get(r, COP_RUNREC_GROUP));
	cop_json_str(j, "status", cop_runrec_status_name(r->status));
	cop_json_double(j, "start", r->start_s, 6);
	if (r->end_s > 0)
		cop_json_double(j, "end", r->end_s, 6);
	else
		cop_json_null(j, "end");
	cop_json_double(j, "seen", r->seen_s, 6);
	cop_json_double(j, "seconds", cop_cmd_runs_seconds(r), 6);
	cop_json_u64(j, "nodes", r->nodes);
	cop_json_str(j, "version", cop_runrec_get(r, COP_RUNREC_VERSION));
	cop_json_str(j, "exit_reason", cop_runrec_get(r, COP_RUNREC_REASON));
}

static void put_json(const struct cop_runrec *r, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_cmd_runs_json_head(&j, r);
	for (unsigned l = 0; l < COP_RUNREC_LISTS; l++) {
		cop_json_object(&j, cop_runrec_list_name(l));
		for (size_t i = 0; i < r->list[l].n; i++)
			cop_json_str(&j, r->list[l].at[i].key, r->list[l].at[i].value);
		cop_json_end(&j);
	}
	cop_json_object(&j, "metric");
	for (size_t i = 0; i < r->series_n; i++) {
		const struct cop_runrec_series *s = &r->series[i];

		cop_json_object(&j, s->key);
		cop_cmd_runs_json_number(&j, "last", s->point[s->n - 1].value);
		cop_cmd_runs_json_number(&j, "most", s->most);
		cop_json_u64(&j, "points", s->points);
		cop_json_end(&j);
	}
	cop_json_end(&j);
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

/* ---- the history of a metric ---- */

struct history {
	const char *key;
	bool json, csv;
	struct cop_json *to;
	struct cop_buf *out;
};

static void put_point(void *arg, const struct cop_runrec_point *p)
{
	const struct history *h = arg;
	char time[32];

	if (h->json) {
		cop_json_object(h->to, NULL);
		cop_json_u64(h->to, "step", p->step);
		cop_json_double(h->to, "time", p->time_s, 6);
		cop_cmd_runs_json_number(h->to, "value", p->value);
		cop_json_end(h->to);
	} else if (h->csv) {
		cop_buf_printf(h->out, "%" PRIu64 ",%.6f,", p->step, p->time_s);
		cop_grid_put_real(p->value, h->out);
		cop_buf_str(h->out, "\n");
	} else {
		cop_buf_printf(h->out, "%10" PRIu64 "  %-19s  %.9g\n", p->step,
			cop_cmd_runs_time(p->time_s, time), p->value);
	}
}

static int show_history(const struct args *a, struct cop_store *store)
{
	char id[COP_RUNREC_ID_LEN + 1];
	struct cop_buf out = {0};
	struct cop_json json = cop_json_to(&out);
	struct history h = {a->metric, a->common.json, a->csv, &json, &out};
	struct cop_err err = {0};
	int code = cop_store_find(store, a->id ? a->id : "last", id, &err);

	if (h.json)
		cop_json_array(&json, NULL);
	else
		cop_buf_str(&out,
			h.csv ? "step,time,value\n" : "      STEP  TIME                 VALUE\n");
	code = code ? code : cop_store_history(store, id, a->metric, put_point, &h, &err);
	if (h.json) {
		cop_json_end(&json);
		cop_buf_str(&out, "\n");
	}
	code = code ? cop_cmd_runs_fail(table, &err) : cop_cmd_print(table->command, &out, NULL);
	cop_buf_free(&out);
	return code;
}

static int show_run(const void *args, struct cop_store *store)
{
	static const char *const headings[] = {"PARAMETER", "TAG", "RESOURCE"};
	const struct args *a = args;
	struct cop_runrec r = {0};
	struct cop_buf out = {0};
	struct cop_err err = {0};
	int code;

	if (a->metric)
		return show_history(a, store);
	code = cop_cmd_runs_load(store, a->id ? a->id : "last", &r, &err)
		       ? cop_cmd_runs_fail(table, &err)
		       : 0;
	if (!code)
		cop_cmd_runs_try_account(a->common.store, &r, SACCT_MS);
	if (!code && a->common.json) {
		put_json(&r, &out);
	} else if (!code) {
		put_head(&r, &out);
		for (unsigned l = 0; l < COP_RUNREC_LISTS; l++)
			put_pairs(headings[l], &r.list[l], &out);
		put_metrics(&r, &out);
	}
	if (!code)
		code = cop_cmd_print(table->command, &out, NULL);
	cop_buf_free(&out);
	cop_runrec_free(&r);
	return code;
}

int cop_cmd_runs_show(int argc, char **argv)
{
	struct args a = {0};

	return cop_cmd_runs_answer(table, argc, argv, &a, show_run);
}
