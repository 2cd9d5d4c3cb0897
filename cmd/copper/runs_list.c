/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <time.h>

#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"

struct args {
	struct runs_common common; /* first */
	const char *status, *since;
	struct cop_store_filter filter;
	struct cop_opt_list where;
	bool csv;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "status", struct args, status,
		"only runs with this status: RUNNING, FINISHED, FAILED or LOST", .arg = "STATUS"),
	COP_OPT(STRING, "since", struct args, since, "started since: 90m, 12h, 7d, or 2026-11-20",
		.arg = "TIME"),
	COP_OPT(STRING, "tag", struct args, filter.tag,
		"only runs with this tag, or name, or group", .arg = "KEY=VALUE"),
	COP_OPT(LIST, "where", struct args, where,
		"only runs with 'param.lr < 0.01'; may be repeated", .arg = "TERM"),
	COP_OPT(STRING, "sort", struct args, filter.sort,
		"in this order: metric.val_loss.min; -KEY: largest first", .arg = "KEY",
		.shown = "-start"),
	RUNS_ROWS,
	{.name = "csv",
		.kind = COP_OPT_FLAG,
		.offset = offsetof(struct args, csv),
		.help = "the columns of --json"},
};

/* Parses "7d" as 7 days ago. */
static bool parse_ago(const char *text, double *since_s)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	char number[16];
	size_t len = strspn(text, "0123456789");
	uint64_t n;

	if (!len || len >= sizeof(number) || !text[len] || text[len + 1])
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)len, text);
	if (cop_parse_u64(number, &n))
		return false;
	for (size_t i = 0; i < COP_ARRAY_SIZE(units); i++)
		if (units[i].unit == text[len]) {
			*since_s = (double)cop_wall_ns() / 1e9 - (double)n * units[i].seconds;
			return true;
		}
	return false;
}

/* Parses a day, or a minute of a day, in local time. */
static bool parse_day(const char *text, double *since_s)
{
	static const char *const forms[] = {
		"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(forms); i++) {
		struct tm tm = {.tm_isdst = -1};
		const char *end = strptime(text, forms[i], &tm);

		if (end && !*end) {
			*since_s = (double)mktime(&tm);
			return true;
		}
	}
	return false;
}

static int check(void *into, struct cop_err *err)
{
	struct args *a = into;

	if (a->csv && a->common.json)
		return cop_err_set(err, EINVAL, "--csv and --json contradict each other: give one");
	a->filter.by_status = a->status != NULL;
	if (a->status && cop_runrec_status_of(a->status, &a->filter.status))
		return cop_err_set(err, EINVAL,
			"--status: '%s' is not one of RUNNING, FINISHED, FAILED, LOST", a->status);
	if (a->since && !parse_ago(a->since, &a->filter.since_s) &&
		!parse_day(a->since, &a->filter.since_s))
		return cop_err_set(err, EINVAL,
			"--since: '%s' is not a time: 90m, 12h, 7d, or a day such as 2026-11-20",
			a->since);
	if (a->filter.tag && !strchr(a->filter.tag, '='))
		return cop_err_set(err, EINVAL, "--tag: '%s' is not KEY=VALUE", a->filter.tag);
	a->filter.where = a->where.at;
	a->filter.wheres = a->where.n;
	if (cop_store_check_filter(&a->filter, err))
		return -EINVAL;
	return cop_cmd_runs_check(into, err);
}

const struct cop_opt_table cop_cmd_runs_list_options = {.command = "copper runs list",
	.summary = "the runs of a store, newest first",
	COP_OPT_ROWS(rows),
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_list_options;

/* ---- text output ---- */

static const struct cop_grid_col cols[] = {{"ID", COP_GRID_TEXT}, {"NAME", COP_GRID_TEXT},
	{"GROUP", COP_GRID_TEXT}, {"STATUS", COP_GRID_TEXT}, {"START", COP_GRID_TEXT},
	{"TIME", COP_GRID_TEXT}, {"NODES", COP_GRID_TEXT}, {"REASON", COP_GRID_TEXT}};

static struct cop_grid_cell run_cell(const void *arg, size_t row, unsigned col)
{
	const struct cop_store_runs *runs = arg;
	const struct cop_runrec *r = &runs->at[row];
	static char text[64], time_text[32];

	switch (col) {
	case 0:
		return (struct cop_grid_cell){.text = r->id, .len = 8};
	case 1:
		return runs_text(cop_runrec_get(r, COP_RUNREC_NAME));
	case 2:
		return runs_text(cop_runrec_get(r, COP_RUNREC_GROUP));
	case 3:
		return runs_text(cop_runrec_status_name(r->status));
	case 4:
		return runs_text(cop_cmd_runs_time(r->start_s, time_text));
	case 5:
		return runs_text(cop_cmd_runs_span(r, time_text));
	case 6:
		snprintf(text, sizeof(text), "%u", r->nodes);
		return runs_text(text);
	default:
		return runs_text(cop_runrec_get(r, COP_RUNREC_REASON));
	}
}

/* ---- JSON output ---- */

static void put_text(struct cop_buf *out, const char *text)
{
	cop_buf_str(out, ",");
	cop_csv_field(out, text, strlen(text));
}

static void put_number(struct cop_buf *out, double value, bool known)
{
	cop_buf_printf(out, known ? ",%.6f" : ",", value);
}

static void put_csv(const struct cop_store_runs *runs, struct cop_buf *out)
{
	cop_buf_str(out, "id,name,group,status,start,end,seen,seconds,nodes,version,exit_reason\n");
	for (size_t i = 0; i < runs->n; i++) {
		const struct cop_runrec *r = &runs->at[i];

		cop_buf_str(out, r->id);
		put_text(out, cop_runrec_get(r, COP_RUNREC_NAME));
		put_text(out, cop_runrec_get(r, COP_RUNREC_GROUP));
		put_text(out, cop_runrec_status_name(r->status));
		put_number(out, r->start_s, true);
		put_number(out, r->end_s, r->end_s > 0);
		put_number(out, r->seen_s, true);
		put_number(out, cop_cmd_runs_seconds(r), true);
		cop_buf_printf(out, ",%" PRIu32, r->nodes);
		put_text(out, cop_runrec_get(r, COP_RUNREC_VERSION));
		put_text(out, cop_runrec_get(r, COP_RUNREC_REASON));
		cop_buf_str(out, "\n");
	}
}

static void put_json(const struct cop_store_runs *runs, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_array(&j, NULL);
	for (size_t i = 0; i < runs->n; i++) {
		cop_json_object(&j, NULL);
		cop_cmd_runs_json_head(&j, &runs->at[i]);
		cop_json_end(&j);
	}
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

static int list(const void *args, struct cop_store *store)
{
	const struct args *a = args;
	struct cop_store_runs runs = {0};
	struct cop_buf out = {0};
	struct cop_err err = {0};
	struct cop_grid grid = {
		.col = cols, .cols = COP_ARRAY_SIZE(cols), .cell = run_cell, .arg = &runs};
	int code =
		cop_store_runs(store, &a->filter, &runs, &err) ? cop_cmd_runs_fail(table, &err) : 0;

	grid.rows = runs.n;
	if (a->common.json)
		put_json(&runs, &out);
	else if (a->csv && !code)
		put_csv(&runs, &out);
	else if (runs.n)
		cop_grid_show(&grid, COP_GRID_PLAIN, &out);
	else if (!code)
		fputs("copper runs: no such run\n", stderr);
	if (!code)
		code = cop_cmd_print(table->command, &out, NULL);
	cop_buf_free(&out);
	cop_store_runs_free(&runs);
	return code;
}

int cop_cmd_runs_list(int argc, char **argv)
{
	struct args a = {0};

	return cop_cmd_runs_answer(table, argc, argv, &a, list);
}
