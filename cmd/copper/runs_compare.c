/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"

#define RUNS_MAX 10

struct args {
	struct runs_common common; /* first */
	struct cop_opt_many ids;
};

static int check(void *into, struct cop_err *err)
{
	struct args *a = into;

	if (a->ids.n < 2 || a->ids.n > RUNS_MAX)
		return cop_err_set(err, EINVAL,
			"two to %d runs can be compared, not %zu; copper runs lists them", RUNS_MAX,
			a->ids.n);
	return cop_cmd_runs_check(into, err);
}

static const struct cop_opt rows[] = {RUNS_ROWS};
static const struct cop_opt_operand operands[] = {
	{.name = "ID", .offset = offsetof(struct args, ids), .required = true, .many = true}};
const struct cop_opt_table cop_cmd_runs_compare_options = {.command = "copper runs compare",
	.summary = "parameters that differ, metrics side by side with their ratio",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_compare_options;

/* The runs, and the keys of one table about them. */
struct compared {
	struct cop_runrec run[RUNS_MAX];
	unsigned runs;
	const char **key; /* sorted, each once */
	size_t keys;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void keep_each_once(struct compared *c)
{
	size_t kept = 0;

	qsort(c->key, c->keys, sizeof(*c->key), by_name);
	for (size_t i = 0; i < c->keys; i++)
		if (!kept || strcmp(c->key[kept - 1], c->key[i]) != 0)
			c->key[kept++] = c->key[i];
	c->keys = kept;
}

/* ---- parameters ---- */

static const char *param_of(const struct compared *c, unsigned run, const char *key)
{
	return cop_runrec_value(&c->run[run], COP_RUNREC_PARAM, key);
}

static bool param_differs(const struct compared *c, const char *key)
{
	const char *first = param_of(c, 0, key);

	for (unsigned i = 1; i < c->runs; i++) {
		const char *other = param_of(c, i, key);

		if (!first != !other || (first && strcmp(first, other) != 0))
			return true;
	}
	return false;
}

/* 0 or -ENOMEM. */
static int find_params(struct compared *c)
{
	size_t most = 1, kept = 0;

	for (unsigned i = 0; i < c->runs; i++)
		most += c->run[i].list[COP_RUNREC_PARAM].n;
	c->key = calloc(most, sizeof(*c->key));
	if (!c->key)
		return -ENOMEM;
	for (unsigned i = 0; i < c->runs; i++)
		for (size_t k = 0; k < c->run[i].list[COP_RUNREC_PARAM].n; k++)
			c->key[c->keys++] = c->run[i].list[COP_RUNREC_PARAM].at[k].key;
	keep_each_once(c);
	for (size_t i = 0; i < c->keys; i++)
		if (param_differs(c, c->key[i]))
			c->key[kept++] = c->key[i];
	c->keys = kept;
	return 0;
}

/* ---- metrics ---- */

static double metric_of(const struct compared *c, unsigned run, const char *key)
{
	const struct cop_runrec_series *s;

	if (strcmp(key, "seconds") == 0)
		return cop_cmd_runs_seconds(&c->run[run]);
	s = cop_runrec_find(&c->run[run], key);
	return s && s->n ? s->point[s->n - 1].value : NAN;
}

/* The ratio of the last run to the first. */
static double metric_ratio(const struct compared *c, const char *key)
{
	double first = metric_of(c, 0, key), last = metric_of(c, c->runs - 1, key);

	return first != 0 ? last / first : NAN;
}

static bool says_something(const struct compared *c, const char *key)
{
	for (unsigned i = 0; i < c->runs; i++) {
		double v = metric_of(c, i, key);

		if (!isnan(v) && v != 0)
			return true;
	}
	return false;
}

static int find_metrics(struct compared *c)
{
	size_t most = 1, kept = 0;

	for (unsigned i = 0; i < c->runs; i++)
		most += c->run[i].series_n;
	free(c->key);
	c->keys = 0;
	c->key = calloc(most, sizeof(*c->key));
	if (!c->key)
		return -ENOMEM;
	c->key[c->keys++] = "seconds";
	for (unsigned i = 0; i < c->runs; i++)
		for (size_t k = 0; k < c->run[i].series_n; k++)
			c->key[c->keys++] = c->run[i].series[k].key;
	keep_each_once(c);
	for (size_t i = 0; i < c->keys; i++)
		if (says_something(c, c->key[i]))
			c->key[kept++] = c->key[i];
	c->keys = kept;
	return 0;
}

/* ---- for people ---- */

static struct cop_grid_cell head_cell(const void *arg, size_t row, unsigned col)
{
	static const char *const names[] = {"name", "status", "start", "nodes", "version"};
	const struct compared *c = arg;
	const struct cop_runrec *r = &c->run[col - (col > 0)];
	static char text[32];

	if (col == 0)
		return runs_text(names[row]);
	switch (row) {
	case 0:
		return runs_text(cop_runrec_get(r, COP_RUNREC_NAME));
	case 1:
		return runs_text(cop_runrec_status_name(r->status));
	case 2:
		return runs_text(cop_cmd_runs_time(r->start_s, text));
	case 3:
		snprintf(text, sizeof(text), "%u", r->nodes);
		return runs_text(text);
	default:
		return runs_text(cop_runrec_get(r, COP_RUNREC_VERSION));
	}
}

static struct cop_grid_cell param_cell(const void *arg, size_t row, unsigned col)
{
	const struct compared *c = arg;
	const char *value = col ? param_of(c, col - 1, c->key[row]) : c->key[row];

	return runs_text(value ? value : "-");
}

static struct cop_grid_cell metric_cell(const void *arg, size_t row, unsigned col)
{
	const struct compared *c = arg;
	const char *key = c->key[row];
	static char text[32];
	double v;

	if (col == 0)
		return runs_text(key);
	v = col > c->runs ? metric_ratio(c, key) : metric_of(c, col - 1, key);
	if (isnan(v))
		return runs_text("-");
	if (col <= c->runs)
		return runs_text(cop_cmd_runs_value(key, v, text));
	snprintf(text, sizeof(text), "%.2f", v);
	return runs_text(text);
}

static void put_grid(const struct compared *c, const char *heading, size_t lines, bool with_ratio,
	struct cop_grid_cell (*cell)(const void *arg, size_t row, unsigned col),
	struct cop_buf *out)
{
	struct cop_grid_col cols[RUNS_MAX + 2] = {{heading, COP_GRID_TEXT}};
	char id[RUNS_MAX][9];
	struct cop_grid grid = {.col = cols,
		.cols = c->runs + 1 + with_ratio,
		.rows = lines,
		.cell = cell,
		.arg = c};

	for (unsigned i = 0; i < c->runs; i++) {
		snprintf(id[i], sizeof(id[i]), "%.8s", c->run[i].id);
		cols[i + 1] = (struct cop_grid_col){id[i], COP_GRID_TEXT};
	}
	cols[c->runs + 1] = (struct cop_grid_col){"RATIO", COP_GRID_TEXT};
	cop_grid_show(&grid, COP_GRID_PLAIN, out);
}

static int put_plain(struct compared *c, struct cop_buf *out)
{
	put_grid(c, "RUN", 5, false, head_cell, out);
	if (find_params(c))
		return -ENOMEM;
	cop_buf_str(out, "\n");
	if (c->keys)
		put_grid(c, "PARAMETER", c->keys, false, param_cell, out);
	else
		cop_buf_str(out, "no parameter differs\n");
	if (find_metrics(c))
		return -ENOMEM;
	cop_buf_str(out, "\n");
	put_grid(c, "METRIC", c->keys, true, metric_cell, out);
	return 0;
}

/* ---- for programs ---- */

static void put_json_params(const struct compared *c, struct cop_json *j)
{
	cop_json_object(j, "parameters");
	for (size_t k = 0; k < c->keys; k++) {
		cop_json_array(j, c->key[k]);
		for (unsigned i = 0; i < c->runs; i++) {
			const char *value = param_of(c, i, c->key[k]);

			if (value)
				cop_json_str(j, NULL, value);
			else
				cop_json_null(j, NULL);
		}
		cop_json_end(j);
	}
	cop_json_end(j);
}

static void put_json_metrics(const struct compared *c, struct cop_json *j)
{
	cop_json_object(j, "metrics");
	for (size_t k = 0; k < c->keys; k++) {
		cop_json_object(j, c->key[k]);
		cop_json_array(j, "values");
		for (unsigned i = 0; i < c->runs; i++)
			cop_json_double(j, NULL, metric_of(c, i, c->key[k]), 6);
		cop_json_end(j);
		cop_json_double(j, "ratio", metric_ratio(c, c->key[k]), 6);
		cop_json_end(j);
	}
	cop_json_end(j);
}

static int put_json(struct compared *c, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_array(&j, "runs");
	for (unsigned i = 0; i < c->runs; i++) {
		cop_json_object(&j, NULL);
		cop_cmd_runs_json_head(&j, &c->run[i]);
		cop_json_end(&j);
	}
	cop_json_end(&j);
	if (find_params(c))
		return -ENOMEM;
	put_json_params(c, &j);
	if (find_metrics(c))
		return -ENOMEM;
	put_json_metrics(c, &j);
	cop_json_end(&j);
	cop_buf_str(out, "\n");
	return 0;
}

static int compare_runs(const void *args, struct cop_store *store)
{
	const struct args *a = args;
	struct compared c = {.runs = 0};
	struct cop_buf out = {0};
	struct cop_err err = {0};
	int code = 0;

	for (size_t i = 0; i < a->ids.n && !code; i++) {
		c.runs++;
		if (cop_cmd_runs_load(store, a->ids.at[i], &c.run[i], &err))
			code = cop_cmd_runs_fail(table, &err);
	}
	if (!code)
		out.failed |= (a->common.json ? put_json(&c, &out) : put_plain(&c, &out)) != 0;
	if (!code)
		code = cop_cmd_print(table->command, &out, NULL);
	for (unsigned i = 0; i < c.runs; i++)
		cop_runrec_free(&c.run[i]);
	free(c.key);
	cop_buf_free(&out);
	return code;
}

int cop_cmd_runs_compare(int argc, char **argv)
{
	struct args a = {0};

	return cop_cmd_runs_answer(table, argc, argv, &a, compare_runs);
}
