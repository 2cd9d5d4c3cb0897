/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/base/grow.h"
#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"

#define RUNS_MAX 10

/* Tolerances for metrics without a spread of their own: counts, and times. */
#define COUNT_SHARE 0.01
#define TIME_SHARE 0.1

struct args {
	struct runs_common common; /* first */
	bool all, csv;
	const char *metric;
	struct cop_opt_many ids;
};

static int check(void *into, struct cop_err *err)
{
	struct args *a = into;

	if (a->ids.n < 2 || a->ids.n > RUNS_MAX)
		return cop_err_set(err, EINVAL,
			"two to %d runs can be compared, not %zu; copper runs lists them", RUNS_MAX,
			a->ids.n);
	if (a->csv && !a->metric)
		return cop_err_set(err, EINVAL, "--csv needs --metric KEY");
	if (a->csv && a->common.json)
		return cop_err_set(err, EINVAL, "--csv and --json contradict each other: give one");
	return cop_cmd_runs_check(into, err);
}

static const struct cop_opt rows[] = {RUNS_ROWS,
	COP_OPT(FLAG, "all", struct args, all,
		"also metrics that differ by no more than their spread"),
	COP_OPT(STRING, "metric", struct args, metric, "this metric of all runs, step by step",
		.arg = "KEY"),
	COP_OPT(FLAG, "csv", struct args, csv, "with --metric: step,ID,...")};
static const struct cop_opt_operand operands[] = {
	{.name = "ID", .offset = offsetof(struct args, ids), .required = true, .many = true}};
const struct cop_opt_table cop_cmd_runs_compare_options = {.command = "copper runs compare",
	.summary = "what differs: parameters, tags, resource, metrics with their ratio",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_compare_options;

/* The runs, and the keys of one table about them. */
struct compared {
	struct cop_runrec run[RUNS_MAX];
	unsigned runs;
	enum cop_runrec_list list; /* source list of the keys */
	const char **key;          /* sorted, without duplicates */
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

/* ---- parameters, tags, resource ---- */

static const char *param_of(const struct compared *c, unsigned run, const char *key)
{
	return cop_runrec_value(&c->run[run], c->list, key);
}

static bool param_differs(const struct compared *c, const char *key)
{
	const char *first = param_of(c, 0, key);

	/* It differs in every run. */
	if (c->list == COP_RUNREC_RESOURCE && strcmp(key, "process.pid") == 0)
		return false;

	for (unsigned i = 1; i < c->runs; i++) {
		const char *other = param_of(c, i, key);

		if (!first != !other || (first && strcmp(first, other) != 0))
			return true;
	}
	return false;
}

/* Returns 0 or -ENOMEM. */
static int find_params(struct compared *c, enum cop_runrec_list list)
{
	size_t most = 1, kept = 0;

	c->list = list;
	for (unsigned i = 0; i < c->runs; i++)
		most += c->run[i].list[list].n;
	free(c->key);
	c->keys = 0;
	c->key = calloc(most, sizeof(*c->key));
	if (!c->key)
		return -ENOMEM;
	for (unsigned i = 0; i < c->runs; i++)
		for (size_t k = 0; k < c->run[i].list[list].n; k++)
			c->key[c->keys++] = c->run[i].list[list].at[k].key;
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

/* Whether the values are monotonic, like those of a counter or a loss, and so have a trend rather
 * than a spread. */
static bool has_course(const struct cop_runrec_series *s)
{
	bool rises = false, falls = false;

	for (size_t i = 1; i < s->n; i++) {
		rises |= s->point[i].value > s->point[i - 1].value;
		falls |= s->point[i].value < s->point[i - 1].value;
	}
	return !(rises && falls);
}

static double deviation(const struct cop_runrec_series *s)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < s->n; i++)
		sum += s->point[i].value;
	mean = sum / (double)s->n;
	for (size_t i = 0; i < s->n; i++)
		squares += (s->point[i].value - mean) * (s->point[i].value - mean);
	return sqrt(squares / (double)s->n);
}

static bool is_time(const char *key)
{
	size_t len = strlen(key);

	return strstr(key, "seconds") || (len > 3 && strcmp(key + len - 3, "_us") == 0) ||
	       (len > 3 && strcmp(key + len - 3, "_ms") == 0);
}

static double spread_of(const struct compared *c, unsigned run, const char *key)
{
	const struct cop_runrec_series *s = cop_runrec_find(&c->run[run], key);

	if (s && s->n > 2 && !has_course(s))
		return deviation(s);
	return fabs(metric_of(c, run, key)) * (is_time(key) ? TIME_SHARE : COUNT_SHARE);
}

/* Whether the last values differ by more than their spread, or some run has none. */
static bool metric_differs(const struct compared *c, const char *key)
{
	double least = INFINITY, most = -INFINITY, spread = 0;
	bool infinite = false;

	for (unsigned i = 0; i < c->runs; i++) {
		double v = metric_of(c, i, key);

		if (isnan(v))
			return true;
		least = fmin(least, v);
		most = fmax(most, v);
		spread = fmax(spread, spread_of(c, i, key));
		infinite |= isinf(v);
	}
	return infinite ? least < most : most - least > spread;
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

/* ---- text output ---- */

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

static int put_lists(struct compared *c, struct cop_buf *out)
{
	static const struct {
		const char *heading, *none;
	} list[COP_RUNREC_LISTS] = {
		[COP_RUNREC_PARAM] = {"PARAMETER", "no parameter differs\n"},
		[COP_RUNREC_TAG] = {"TAG", "no tag differs\n"},
		[COP_RUNREC_RESOURCE] = {"RESOURCE", "no resource differs\n"},
	};

	for (unsigned l = 0; l < COP_RUNREC_LISTS; l++) {
		if (find_params(c, l))
			return -ENOMEM;
		cop_buf_str(out, "\n");
		if (c->keys)
			put_grid(c, list[l].heading, c->keys, false, param_cell, out);
		else
			cop_buf_str(out, list[l].none);
	}
	return 0;
}

static int put_plain(struct compared *c, bool all, struct cop_buf *out)
{
	size_t kept = 0, left;

	put_grid(c, "RUN", 5, false, head_cell, out);
	if (put_lists(c, out) || find_metrics(c))
		return -ENOMEM;
	for (size_t i = 0; i < c->keys; i++)
		if (all || metric_differs(c, c->key[i]))
			c->key[kept++] = c->key[i];
	left = c->keys - kept;
	c->keys = kept;
	cop_buf_str(out, "\n");
	if (c->keys)
		put_grid(c, "METRIC", c->keys, true, metric_cell, out);
	if (left)
		cop_buf_printf(out,
			"%s%zu metrics differ by no more than their spread; --all shows them\n",
			kept ? "\n" : "", left);
	return 0;
}

/* ---- JSON output ---- */

static void put_json_params(const struct compared *c, const char *name, struct cop_json *j)
{
	cop_json_object(j, name);
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
			cop_cmd_runs_json_number(j, NULL, metric_of(c, i, c->key[k]));
		cop_json_end(j);
		cop_cmd_runs_json_number(j, "ratio", metric_ratio(c, c->key[k]));
		cop_json_bool(j, "differs", metric_differs(c, c->key[k]));
		cop_json_end(j);
	}
	cop_json_end(j);
}

static int put_json(struct compared *c, struct cop_buf *out)
{
	static const char *const names[COP_RUNREC_LISTS] = {[COP_RUNREC_PARAM] = "parameters",
		[COP_RUNREC_TAG] = "tags",
		[COP_RUNREC_RESOURCE] = "resource"};
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_array(&j, "runs");
	for (unsigned i = 0; i < c->runs; i++) {
		cop_json_object(&j, NULL);
		cop_cmd_runs_json_head(&j, &c->run[i]);
		cop_json_end(&j);
	}
	cop_json_end(&j);
	for (unsigned l = 0; l < COP_RUNREC_LISTS; l++) {
		if (find_params(c, l))
			return -ENOMEM;
		put_json_params(c, names[l], &j);
	}
	if (find_metrics(c))
		return -ENOMEM;
	put_json_metrics(c, &j);
	cop_json_end(&j);
	cop_buf_str(out, "\n");
	return 0;
}

/* ---- one metric, step by step ---- */

/* All points of the metric in one run; empty if the run does not have it. */
struct points {
	struct cop_runrec_point *point;
	size_t n, cap, at; /* at: the next one */
	bool failed;       /* memory was short */
};
struct steps {
	char id[RUNS_MAX][COP_RUNREC_ID_LEN + 1];
	struct points of[RUNS_MAX];
	unsigned runs;
};

static void add_point(void *arg, const struct cop_runrec_point *point)
{
	struct points *p = arg;

	p->failed |= !COP_GROW(p->point, p->n, p->cap);
	if (!p->failed)
		p->point[p->n++] = *point;
}

/* Finds the next step of any run. */
static bool next_step(const struct steps *s, uint64_t *step)
{
	bool any = false;

	for (unsigned i = 0; i < s->runs; i++) {
		const struct points *p = &s->of[i];

		if (p->at < p->n && (!any || p->point[p->at].step < *step)) {
			*step = p->point[p->at].step;
			any = true;
		}
	}
	return any;
}

/* Returns the run's value at this step and advances; NAN: none. */
static double take_value(struct steps *s, unsigned run, uint64_t step)
{
	struct points *p = &s->of[run];

	return p->at < p->n && p->point[p->at].step == step ? p->point[p->at++].value : NAN;
}

static void put_steps_json(struct steps *s, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	uint64_t step;

	cop_json_array(&j, NULL);
	while (next_step(s, &step)) {
		cop_json_object(&j, NULL);
		cop_json_u64(&j, "step", step);
		cop_json_array(&j, "values");
		for (unsigned i = 0; i < s->runs; i++)
			cop_cmd_runs_json_number(&j, NULL, take_value(s, i, step));
		cop_json_end(&j);
		cop_json_end(&j);
	}
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

static void put_steps_text(struct steps *s, bool csv, struct cop_buf *out)
{
	uint64_t step;

	cop_buf_str(out, csv ? "step" : "      STEP");
	for (unsigned i = 0; i < s->runs; i++)
		cop_buf_printf(out, csv ? ",%.8s" : "  %14.8s", s->id[i]);
	cop_buf_str(out, "\n");
	while (next_step(s, &step)) {
		cop_buf_printf(out, csv ? "%" PRIu64 : "%10" PRIu64, step);
		for (unsigned i = 0; i < s->runs; i++) {
			double v = take_value(s, i, step);

			if (csv)
				cop_buf_str(out, ",");
			if (csv && !isnan(v))
				cop_grid_put_real(v, out);
			else if (!csv)
				cop_buf_printf(out, isnan(v) ? "               -" : "  %14.7g", v);
		}
		cop_buf_str(out, "\n");
	}
}

/* It is not an error if only some of the runs have the metric. */
static int load_steps(
	const struct args *a, struct cop_store *store, struct steps *s, struct cop_err *err)
{
	size_t have = 0;

	for (size_t i = 0; i < a->ids.n; i++) {
		int rc = cop_store_find(store, a->ids.at[i], s->id[i], err);

		s->runs++;
		if (rc)
			return rc;
		rc = cop_store_history(store, s->id[i], a->metric, add_point, &s->of[i], err);
		if (rc && rc != -ENOENT)
			return rc;
		if (s->of[i].failed)
			return cop_err_set(err, ENOMEM, "no memory to compare these runs");
		have += s->of[i].n;
	}
	return have ? 0
		    : cop_err_set(err, ENOENT,
			      "none of these runs has a metric '%s': copper runs show ID lists those of a run",
			      a->metric);
}

static int compare_steps(const struct args *a, struct cop_store *store)
{
	struct steps s = {.runs = 0};
	struct cop_buf out = {0};
	struct cop_err err = {0};
	int code = load_steps(a, store, &s, &err) ? cop_cmd_runs_fail(table, &err) : 0;

	if (!code && a->common.json)
		put_steps_json(&s, &out);
	else if (!code)
		put_steps_text(&s, a->csv, &out);
	if (!code)
		code = cop_cmd_print(table->command, &out, NULL);
	for (unsigned i = 0; i < s.runs; i++)
		free(s.of[i].point);
	cop_buf_free(&out);
	return code;
}

static int compare_runs(const void *args, struct cop_store *store)
{
	const struct args *a = args;
	struct compared c = {.runs = 0};
	struct cop_buf out = {0};
	struct cop_err err = {0};
	int code = 0;

	if (a->metric)
		return compare_steps(a, store);
	for (size_t i = 0; i < a->ids.n && !code; i++) {
		c.runs++;
		if (cop_cmd_runs_load(store, a->ids.at[i], &c.run[i], &err))
			code = cop_cmd_runs_fail(table, &err);
	}
	if (!code)
		out.failed |=
			(a->common.json ? put_json(&c, &out) : put_plain(&c, a->all, &out)) != 0;
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
