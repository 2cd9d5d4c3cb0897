/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists for one tier of a run, such as the largest files and the calls. */
#include <math.h>

#include "trace/checkpoint/checkpoint_priv.h"

static void put_tier(
	struct sheet *s, const struct cop_ckpt_report *r, const struct run *run, unsigned tier)
{
	cop_ckpt_put_str(s, run->name);
	cop_ckpt_put_str(s, r->conf->tier[tier]);
}

static size_t limited(const struct cop_ckpt_report *r, size_t n)
{
	return r->conf->limit && n > r->conf->limit ? (size_t)r->conf->limit : n;
}

/* Lists the first rows in order of a column, with all their keys and values. */
static void list(struct cop_ckpt_report *r, unsigned sheet, struct run *run, unsigned tier,
	unsigned tab, const char *sort)
{
	struct cop_rows *rows = &run->tier[tier].rows[tab];
	struct sheet *s = &r->sheet[sheet];

	cop_rows_sort(rows, sort);
	for (size_t i = 0; i < limited(r, rows->n); i++) {
		put_tier(s, r, run, tier);
		for (unsigned k = 0; k < rows->conf.keys; k++)
			cop_ckpt_put_text(s, rows->row[i].key[k]);
		for (unsigned k = 0; k < rows->conf.cols; k++)
			cop_ckpt_put(s, rows->row[i].value[k]);
	}
}

void cop_ckpt_list_classes(struct cop_ckpt_report *r, struct run *run, unsigned tier)
{
	list(r, SHEET_CLASSES, run, tier, TAB_CLASSES, "dur");
}

void cop_ckpt_list_files(struct cop_ckpt_report *r, struct run *run, unsigned tier)
{
	list(r, SHEET_FILES, run, tier, TAB_FILES, "dur");
}

/* ---- calls ---- */

struct call {
	struct cop_trace_str name;
	double count, dur, size; /* dur and size are maxima over the processes */
};

static int by_dur(const void *p, const void *q)
{
	const struct call *a = p, *b = q;

	if (a->dur != b->dur)
		return a->dur < b->dur ? 1 : -1;
	return cop_row_compare(
		&(struct cop_row){.key[0] = a->name}, &(struct cop_row){.key[0] = b->name}, 1);
}

static bool same_text(struct cop_trace_str a, struct cop_trace_str b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* Sums rows keyed by name, pid and tid, from i through the last with the same name. Returns the row
 * after it. */
static size_t add_up_call(const struct cop_rows *rows, size_t i, struct call *out)
{
	double dur = 0, size = 0;
	size_t from = i;

	*out = (struct call){.name = rows->row[i].key[2]};
	for (; i < rows->n && same_text(rows->row[i].key[2], out->name); i++) {
		const struct cop_row *row = &rows->row[i];

		if (i == from || !same_text(row->key[0], row[-1].key[0]))
			dur = size = 0;
		dur += row->value[1];
		size += row->value[2];
		out->count += row->value[0];
		out->dur = COP_MAX(out->dur, dur);
		out->size = COP_MAX(out->size, size);
	}
	return i;
}

/* Returns the number of calls of this name per file of the tier in the first run; NAN if that run
 * has no files there. */
static double per_file_first(
	const struct cop_ckpt_report *r, unsigned tier, struct cop_trace_str name)
{
	const struct tier *t = &r->run[0].tier[tier];
	const struct cop_rows *rows = &t->rows[TAB_CALLS];
	double count = 0;

	for (size_t i = 0; i < rows->n; i++)
		if (same_text(rows->row[i].key[2], name))
			count += rows->row[i].value[0];
	return t->rows[TAB_FILES].n ? count / (double)t->rows[TAB_FILES].n : NAN;
}

static void put_call(
	struct cop_ckpt_report *r, const struct run *run, unsigned tier, const struct call *c)
{
	double per_file = c->count / (double)run->tier[tier].rows[TAB_FILES].n;
	struct sheet *s = &r->sheet[SHEET_CALLS];

	put_tier(s, r, run, tier);
	cop_ckpt_put_text(s, c->name);
	cop_ckpt_put(s, c->count);
	cop_ckpt_put(s, per_file);
	cop_ckpt_put(s, run == r->run ? NAN : per_file - per_file_first(r, tier, c->name));
	cop_ckpt_put(s, c->dur);
	cop_ckpt_put(s, c->size);
}

void cop_ckpt_list_calls(struct cop_ckpt_report *r, struct run *run, unsigned tier)
{
	struct cop_rows *rows = &run->tier[tier].rows[TAB_CALLS];
	struct call *calls = calloc(rows->n + 1, sizeof(*calls));
	size_t n = 0;

	if (!calls) {
		r->sheet[SHEET_CALLS].failed = true;
		return;
	}
	cop_rows_sort(rows, "name");
	for (size_t i = 0; i < rows->n; n++)
		i = add_up_call(rows, i, &calls[n]);
	qsort(calls, n, sizeof(*calls), by_dur);
	for (size_t i = 0; i < n; i++)
		put_call(r, run, tier, &calls[i]);
	free(calls);
}

/* ---- sizes ---- */

/* */
double cop_ckpt_size_of(const struct cop_row *row)
{
	char copy[32] = "";

	memcpy(copy, row->key[1].at, COP_MIN(row->key[1].len, sizeof(copy) - 1));
	return strtod(copy, NULL);
}

/* Returns the size at a rank, counted from 0, in rows that are sorted by size and have a count
 * each. */
static double ranked(const struct cop_row *row, size_t n, double rank)
{
	double seen = 0;

	for (size_t i = 0; i < n; i++)
		if ((seen += row[i].value[0]) > rank)
			return cop_ckpt_size_of(&row[i]);
	return n ? cop_ckpt_size_of(&row[n - 1]) : NAN;
}

/* Interpolates between two sizes if the rank falls between them. */
static double quantile(const struct cop_row *row, size_t n, double count, double p)
{
	double at = p * (count - 1), low = ranked(row, n, floor(at));

	return low + (ranked(row, n, floor(at) + 1) - low) * (at - floor(at));
}

/* Describes the sizes of one call, in n rows sorted by size. */
static void describe(struct sheet *s, const struct cop_row *row, size_t n)
{
	double count = 0, sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++) {
		count += row[i].value[0];
		sum += row[i].value[0] * cop_ckpt_size_of(&row[i]);
	}
	mean = sum / count;
	for (size_t i = 0; i < n; i++)
		squares += row[i].value[0] * pow(cop_ckpt_size_of(&row[i]) - mean, 2);
	cop_ckpt_put(s, count);
	cop_ckpt_put(s, mean);
	cop_ckpt_put(s, count > 1 ? sqrt(squares / (count - 1)) : NAN);
	cop_ckpt_put(s, cop_ckpt_size_of(row));
	for (unsigned q = 1; q <= 3; q++)
		cop_ckpt_put(s, quantile(row, n, count, q / 4.0));
	cop_ckpt_put(s, cop_ckpt_size_of(&row[n - 1]));
}

/* Returns how many rows from i on have the same first key. */
static size_t alike(const struct cop_rows *r, size_t i)
{
	size_t n = 1;

	while (i + n < r->n && same_text(r->row[i].key[0], r->row[i + n].key[0]))
		n++;
	return n;
}

void cop_ckpt_list_sizes(struct cop_ckpt_report *r, struct run *run, unsigned tier)
{
	struct cop_rows *rows = &run->tier[tier].rows[TAB_SIZES];
	struct sheet *s = &r->sheet[SHEET_SIZES];

	cop_rows_sort(rows, "name");
	for (size_t i = 0, n; i < rows->n; i += n) {
		n = alike(rows, i);
		put_tier(s, r, run, tier);
		cop_ckpt_put_text(s, rows->row[i].key[0]);
		describe(s, &rows->row[i], n);
	}
	list(r, SHEET_FREQUENT, run, tier, TAB_SIZES, "count");
}
